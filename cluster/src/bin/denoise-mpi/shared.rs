//! `denoise-mpi denoise` and `denoise-mpi eval`: the program `denoise`, run for many parts of a folder by the ranks that are
//! free. It divides by `--shard` and joins by `denoise merge`, so that nothing is done here that it does not do alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode, Output};
use std::thread;

use alphamf_cluster::{Mpi, share_out};
use alphamf_files::output::write_atomic;
use alphamf_samplers::distributed::Communicator as _;
use anyhow::{Context as _, bail, ensure};
use clap::builder::RangedU64ValueParser;

use crate::folders::{self, beside};
use crate::learning::from_first;
use crate::{INPUT, USAGE};

/// Arguments of the commands that share files.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many parts of equal size the recordings are divided into by their names, 1 to 10,000: a rank that is free is
    /// given the next.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    parts: usize,

    /// The program `denoise`. That beside this program if not given, or else the one on the search path.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// What `denoise`, or `denoise eval`, is given. After the options above.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<OsString>,
}

/// Exit codes of `denoise` for what is wrong with the whole run: its usage, and its dictionary.
const HOPELESS: [i32; 2] = [USAGE as i32, 5];
/// Stands for that of a run that never was, or was killed.
const LOST: i32 = -1;

/// Denoises recordings.
pub fn denoise(arguments: &Arguments, ranks: &mut Mpi) -> anyhow::Result<ExitCode> {
    let mut job = Job::new(arguments, &[]);
    let force = job.arguments.iter().any(|argument| argument == "--force");
    let stats = job.take("--stats")?.map(PathBuf::from);
    // With a folder for them, each recording has statistics of its own: there is nothing to join.
    let is_folder = |path: &PathBuf| path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let (apart, stats) = match stats {
        Some(path) if is_folder(&path) => (Some(path), None),
        path => (None, path),
    };
    job.arguments.extend(apart.into_iter().flat_map(|path| ["--stats".into(), path.into()]));
    // A run of the program may outlive its rank when that is killed: what it writes then is not found by the next.
    let number = String::from_utf8(from_first(ranks, process::id().to_string().as_bytes()))?;
    let folder = stats.as_deref().map(|stats| beside(stats, ".parts"));
    let parts = folder.as_ref().map(|folder| folder.join(number));
    if let (0, Some(stats), Some(folder), Some(parts)) = (ranks.rank(), &stats, &folder, &parts) {
        ensure!(stats != Path::new("-"), "--stats -: expected a file, which ranks write beside");
        ensure!(force || !stats.exists(), "{} exists; --force replaces it", stats.display());
        remove(folder)?;
        fs::create_dir_all(parts).with_context(|| parts.display().to_string())?;
    }
    let file = |part: usize| Some(parts.as_ref()?.join(format!("{part}.json")));
    let code = job.run(ranks, |part| {
        Ok(file(part).into_iter().flat_map(|file| ["--stats".into(), file.into()]).collect())
    })?;
    if let (0, Some(stats), Some(folder)) = (ranks.rank(), &stats, &folder) {
        let made: Vec<PathBuf> = (0..arguments.parts).filter_map(file).filter(|file| file.exists()).collect();
        if made.len() == arguments.parts {
            job.merge(&made, stats)?;
        } else {
            eprintln!("denoise-mpi: {} is not written: some parts failed as a whole", stats.display());
        }
        remove(folder)?;
    }
    Ok(exit_code(code))
}

/// Scores a corpus.
pub fn eval(arguments: &Arguments, ranks: &mut Mpi) -> anyhow::Result<ExitCode> {
    let mut job = Job::new(arguments, &["eval"]);
    job.repeats = true;
    let journal = job.take("--resume")?.map(PathBuf::from);
    let journal = journal.context("--resume FILE is needed: beside it, ranks note what they have scored")?;
    for output in ["--json", "--csv", "--report", "--figure"] {
        job.take(output)?;
    }
    let parts = beside(&journal, ".parts");
    let name = journal.file_name().context("--resume: expected the name of a file")?;
    if ranks.rank() == 0 {
        // What a run that was killed has scored need not be scored again, by whatever part it was.
        job.collect(&parts, &journal)?;
        remove(&parts)?;
        fs::create_dir_all(&parts).with_context(|| parts.display().to_string())?;
    }
    let code = job.run(ranks, |part| {
        let own = parts.join(part.to_string());
        fs::create_dir_all(&own)?;
        for known in family(&journal)? {
            fs::copy(&known, own.join(known.file_name().unwrap_or(name)))?;
        }
        Ok(vec!["--resume".into(), own.join(name).into()])
    })?;
    if ranks.rank() > 0 || code.is_some_and(|code| HOPELESS.contains(&code)) {
        return Ok(exit_code(code));
    }
    job.collect(&parts, &journal)?;
    remove(&parts)?;
    // All is scored: this reads the journal, tries again what failed, and writes the reports as one run does.
    let status = job
        .command()
        .args(&arguments.arguments)
        .status()
        .with_context(|| job.program.display().to_string())?;
    Ok(exit_code(status.code().or(Some(1))))
}

/// What is run for every part.
struct Job {
    program: PathBuf,
    parts: usize,
    quiet: bool,
    /// Of the program: its command, and how many threads it has.
    options: Vec<OsString>,
    arguments: Vec<OsString>,
    /// Whether what is wrong with recordings is told at the end again.
    repeats: bool,
}

impl Job {
    fn new(arguments: &Arguments, command: &[&str]) -> Self {
        let beside = || {
            let program = std::env::current_exe().ok()?.with_file_name("denoise");
            program.exists().then_some(program)
        };
        let program = arguments.program.clone().or_else(beside).unwrap_or_else(|| "denoise".into());
        let mut options: Vec<OsString> = command.iter().map(OsString::from).collect();
        let mut arguments_left = arguments.arguments.clone();
        let is_threads = |argument: &OsString| argument.to_string_lossy().starts_with("--threads");
        if !arguments_left.iter().any(is_threads) {
            // As many ranks as cores is what is usual.
            options.extend(["--threads".into(), "1".into()]);
        }
        let before = arguments_left.len();
        arguments_left.retain(|argument| argument != "--quiet" && argument != "-q");
        let quiet = arguments_left.len() < before;
        Self { program, parts: arguments.parts, quiet, options, arguments: arguments_left, repeats: false }
    }

    /// Takes an option with a value out of the arguments.
    fn take(&mut self, name: &str) -> anyhow::Result<Option<OsString>> {
        let with_value = format!("{name}=");
        let starts = |argument: &OsString| argument.as_encoded_bytes().starts_with(with_value.as_bytes());
        let Some(at) = self.arguments.iter().position(|argument| argument == name || starts(argument)) else {
            return Ok(None);
        };
        let argument = self.arguments.remove(at);
        if argument != name {
            let value = argument.to_str().and_then(|argument| argument.strip_prefix(&with_value));
            return Ok(Some(value.with_context(|| format!("{name}: expected a name in UTF-8"))?.into()));
        }
        ensure!(at < self.arguments.len(), "{name}: expected a value");
        Ok(Some(self.arguments.remove(at)))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.options);
        command
    }

    /// Runs the program for all parts, with what `own` adds for each. On the first rank the exit code of the first part
    /// that had another than zero.
    fn run(
        &self,
        ranks: &mut Mpi,
        own: impl Fn(usize) -> io::Result<Vec<OsString>>,
    ) -> anyhow::Result<Option<i32>> {
        // What the first rank has prepared, all can see.
        ranks.all_gather(&[]);
        let (mut lines, mut codes, mut done) = (BTreeSet::new(), BTreeMap::new(), 0);
        let mut begin = |part: usize| {
            let mut command = self.command();
            command.args(["--quiet", "--shard"]).arg(format!("{}/{}", part + 1, self.parts));
            let (own, arguments, program) = (own(part), self.arguments.clone(), self.program.clone());
            thread::spawn(move || {
                let output = own.and_then(|own| command.args(own).args(arguments).output());
                report(&program, output)
            })
        };
        let mut told = |part: usize, report: &[u8]| {
            let (code, said) = report
                .split_first_chunk()
                .map_or((LOST, report), |(code, said)| (i32::from_le_bytes(*code), said));
            // What is wrong with all of them, each part says.
            for line in String::from_utf8_lossy(said).lines() {
                let repeated = self.repeats && [0, i32::from(INPUT)].contains(&code);
                if !repeated && lines.insert(line.to_owned()) {
                    eprintln!("{line}");
                }
            }
            if code != 0 {
                codes.insert(part, code);
            }
            done += 1;
            if !self.quiet && done * 10 / self.parts > (done - 1) * 10 / self.parts {
                eprintln!("denoise-mpi: {done} of {} parts", self.parts);
            }
            if HOPELESS.contains(&code) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        share_out(ranks, self.parts, &mut begin, &mut told);
        if codes.values().any(|&code| code == LOST) {
            bail!("some parts came to no end: the same command does what is missing");
        }
        Ok(codes.into_values().next())
    }

    /// Joins records that the program has made, of which `into` may be one.
    fn merge(&self, records: &[PathBuf], into: &Path) -> anyhow::Result<()> {
        let joined = beside(into, ".joined");
        let mut command = Command::new(&self.program);
        let output = command.args(["merge", "--force", "-o"]).arg(&joined).arg("--").args(records).output();
        let output = output.with_context(|| self.program.display().to_string())?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim_end());
        fs::rename(&joined, into).with_context(|| into.display().to_string())
    }

    /// Adds what the parts have scored to `journal`, or to those beside it if there are several systems.
    fn collect(&self, parts: &Path, journal: &Path) -> anyhow::Result<()> {
        let mut journals: BTreeMap<OsString, Vec<PathBuf>> = BTreeMap::new();
        for part in entries(parts)? {
            for found in entries(&part)? {
                // A line that a killed run has left without its end is none.
                let bytes = fs::read(&found)?;
                let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
                if whole < bytes.len() {
                    write_atomic(&found, &bytes[..whole])?;
                }
                if whole > 0 {
                    let name = found.file_name().unwrap_or_default().to_owned();
                    journals.entry(name).or_default().push(found);
                }
            }
        }
        for (name, mut found) in journals {
            let into = journal.with_file_name(name);
            if into.exists() {
                found.push(into.clone());
            }
            self.merge(&found, &into)?;
        }
        Ok(())
    }
}

/// What the first rank is told of a part: the exit code and what was said.
fn report(program: &Path, output: io::Result<Output>) -> Vec<u8> {
    let (code, said) = match output {
        Ok(Output { status, mut stderr, .. }) => {
            if status.code().is_none() {
                stderr.extend(format!("{}: {status}", program.display()).bytes());
            }
            (status.code().unwrap_or(LOST), stderr)
        }
        Err(error) => (LOST, format!("{}: {error}", program.display()).into_bytes()),
    };
    [&code.to_le_bytes()[..], &said].concat()
}

fn exit_code(code: Option<i32>) -> ExitCode {
    code.map_or(ExitCode::SUCCESS, |code| u8::try_from(code).unwrap_or(1).into())
}

/// What is in a folder, nothing if there is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// A journal and, as they are named for several systems, `run.NAME.jsonl`: those that are there.
fn family(journal: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = journal.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let belongs = |path: &PathBuf| {
        let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let named = |(found, own): (String, String)| {
            found.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        path.extension() == journal.extension()
            && path.is_file()
            && stem(path).zip(stem(journal)).is_some_and(named)
    };
    Ok(entries(folder)?.into_iter().filter(belongs).collect())
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    folders::remove(folder).with_context(|| folder.display().to_string())
}
