//! `denoise-mpi denoise` and `denoise-mpi eval`: idle processes run the program `denoise` on parts of a folder, divided by
//! `--shard` and joined by `denoise merge`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode, Output};
use std::slice;
use std::thread;

use alphamf_cluster::{Mpi, share_out};
use alphamf_files::output::write_atomic;
use alphamf_samplers::distributed::Communicator as _;
use anyhow::{Context as _, bail, ensure};
use clap::builder::RangedU64ValueParser;

use crate::folders::{self, beside};
use crate::learning::from_first;
use crate::{Failure, INPUT, OUTPUT, USAGE};

const MAX_PARTS: usize = 10_000;
/// Enough parts that processes finish almost together; every part costs a start of the program.
const PARTS_PER_PROCESS: usize = 16;

/// Arguments of both commands.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Divide the recordings into N parts [default: 16 for each process].
    ///
    /// Range: 1 to 10000. Files are assigned by a hash of their name; each part goes to the next idle process.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_PARTS as u64))]
    parts: Option<usize>,

    /// The program `denoise` [default: the one beside this program, or else in PATH].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// Arguments of `denoise` or `denoise eval`, after the options above.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<OsString>,
}

/// File of the statistics of an earlier run, in the folder of the parts.
const EARLIER: &str = "earlier.json";
/// Exit codes of `denoise` that stop the whole run: wrong usage, invalid dictionary.
const FATAL_CODES: [i32; 2] = [USAGE as i32, 5];
/// Replaces the exit code of a run that did not start, or was killed.
const NO_EXIT_CODE: i32 = -1;

/// Denoises recordings.
pub fn denoise(arguments: &Arguments, ranks: &mut Mpi) -> anyhow::Result<ExitCode> {
    let mut job = Job::new(arguments, &[], ranks.ranks());
    let force = job.arguments.iter().any(|argument| argument == "--force");
    let stats = job.take("--stats")?.map(PathBuf::from);
    // In a folder, each recording has its own statistics file: there is nothing to join.
    let is_folder = |path: &PathBuf| path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let (apart, stats) = match stats {
        Some(path) if is_folder(&path) => (Some(path), None),
        path => (None, path),
    };
    job.arguments.extend(apart.into_iter().flat_map(|path| ["--stats".into(), path.into()]));
    // A program may outlive its killed process: the next run must not find its output.
    let number = String::from_utf8(from_first(ranks, process::id().to_string().as_bytes()))?;
    let folder = stats.as_deref().map(|stats| beside(stats, ".parts"));
    let parts = folder.as_ref().map(|folder| folder.join(number));
    if let (0, Some(stats), Some(folder), Some(parts)) = (ranks.rank(), &stats, &folder, &parts) {
        ensure!(stats != Path::new("-"), "--stats is -; expected a file");
        remove(folder)?;
        fs::create_dir_all(parts).with_context(|| parts.display().to_string())?;
        if stats.exists() && !force {
            let modified = fs::metadata(stats)?.modified()?;
            let earlier = parts.join(EARLIER);
            job.merge(slice::from_ref(stats), &earlier).map_err(|_| {
                let taken = "already exists and holds no statistics: remove it or name another";
                Failure(OUTPUT, format!("{} {taken}", stats.display()))
            })?;
            fs::File::options().append(true).open(earlier)?.set_modified(modified)?;
        }
    }
    let file = |part: usize| Some(parts.as_ref()?.join(format!("{part}.json")));
    let code = job.run(ranks, |part| {
        // Statistics of skipped recordings.
        if let (Some(file), Some(earlier)) = (file(part), parts.as_ref().map(|parts| parts.join(EARLIER)))
            && earlier.exists()
        {
            fs::copy(&earlier, &file)?;
            let modified = fs::metadata(&earlier)?.modified()?;
            fs::File::options().append(true).open(file)?.set_modified(modified)?;
        }
        Ok(file(part).into_iter().flat_map(|file| ["--stats".into(), file.into()]).collect())
    })?;
    if let (0, Some(stats), Some(folder)) = (ranks.rank(), &stats, &folder) {
        let made: Vec<PathBuf> = (0..job.parts).filter_map(file).filter(|file| file.exists()).collect();
        if made.len() == job.parts {
            job.merge(&made, stats)?;
        } else {
            eprintln!("denoise-mpi: {} not written: some parts failed", stats.display());
        }
        remove(folder)?;
    }
    Ok(exit_code(code))
}

/// Scores a corpus.
pub fn eval(arguments: &Arguments, ranks: &mut Mpi) -> anyhow::Result<ExitCode> {
    let mut job = Job::new(arguments, &["eval"], ranks.ranks());
    job.repeats = true;
    let journal = job.take("--resume")?.map(PathBuf::from);
    let journal = journal.context("--resume FILE is required: processes keep their journals beside it")?;
    for output in ["--json", "--csv", "--report", "--figure"] {
        job.take(output)?;
    }
    let parts = beside(&journal, ".parts");
    let name = journal.file_name().context("--resume: expected a file name")?;
    if ranks.rank() == 0 {
        // Scores of a killed run are kept, from any part.
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
    if ranks.rank() > 0 {
        return Ok(exit_code(code));
    }
    job.collect(&parts, &journal)?;
    remove(&parts)?;
    if code.is_some_and(|code| FATAL_CODES.contains(&code)) {
        return Ok(exit_code(code));
    }
    // All parts are scored: one run reads the journal, retries failures, and writes the reports.
    let status = job
        .command()
        .args(&arguments.arguments)
        .status()
        .with_context(|| job.program.display().to_string())?;
    Ok(exit_code(status.code().or(Some(1))))
}

/// Command that is run for every part.
struct Job {
    program: PathBuf,
    parts: usize,
    quiet: bool,
    /// Subcommand and number of threads.
    options: Vec<OsString>,
    arguments: Vec<OsString>,
    /// Whether invalid recordings are reported again at the end.
    repeats: bool,
}

impl Job {
    fn new(arguments: &Arguments, command: &[&str], processes: usize) -> Self {
        let beside = || {
            let program = std::env::current_exe().ok()?.with_file_name("denoise");
            program.exists().then_some(program)
        };
        let program = arguments.program.clone().or_else(beside).unwrap_or_else(|| "denoise".into());
        let mut options: Vec<OsString> = command.iter().map(OsString::from).collect();
        let mut arguments_left = arguments.arguments.clone();
        let is_threads = |argument: &OsString| argument.to_string_lossy().starts_with("--threads");
        if !arguments_left.iter().any(is_threads) {
            // Usually there are as many processes as cores.
            options.extend(["--threads".into(), "1".into()]);
        }
        let before = arguments_left.len();
        arguments_left.retain(|argument| argument != "--quiet" && argument != "-q");
        let quiet = arguments_left.len() < before;
        let parts = arguments.parts.unwrap_or((PARTS_PER_PROCESS * processes).min(MAX_PARTS));
        Self { program, parts, quiet, options, arguments: arguments_left, repeats: false }
    }

    /// Removes an option with a value from the arguments.
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

    /// Runs the program for all parts, with the additional arguments `own`. Returns, in the first process, the first exit code
    /// other than 0, in the order of parts.
    fn run(
        &self,
        ranks: &mut Mpi,
        own: impl Fn(usize) -> io::Result<Vec<OsString>>,
    ) -> anyhow::Result<Option<i32>> {
        // Wait until the first process has prepared the folders.
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
        let mut on_report = |part: usize, report: &[u8]| {
            let (code, messages) = report
                .split_first_chunk()
                .map_or((NO_EXIT_CODE, report), |(code, messages)| (i32::from_le_bytes(*code), messages));
            // Messages common to all parts are printed once.
            for line in String::from_utf8_lossy(messages).lines() {
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
            if FATAL_CODES.contains(&code) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        share_out(ranks, self.parts, &mut begin, &mut on_report);
        if codes.values().any(|&code| code == NO_EXIT_CODE) {
            bail!("some parts did not finish: run the same command again to complete them");
        }
        Ok(codes.into_values().next())
    }

    /// Joins records of the program; `into` may be one of them.
    fn merge(&self, records: &[PathBuf], into: &Path) -> anyhow::Result<()> {
        let joined = beside(into, ".joined");
        let mut command = Command::new(&self.program);
        let output = command.args(["merge", "--force", "-o"]).arg(&joined).arg("--").args(records).output();
        let output = output.with_context(|| self.program.display().to_string())?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim_end());
        fs::rename(&joined, into).with_context(|| into.display().to_string())
    }

    /// Adds the scores of the parts to `journal`, or to the journals beside it for several systems.
    fn collect(&self, parts: &Path, journal: &Path) -> anyhow::Result<()> {
        let mut journals: BTreeMap<OsString, Vec<PathBuf>> = BTreeMap::new();
        for part in entries(parts)? {
            for found in entries(&part)? {
                // A killed run may leave an incomplete last line.
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

/// Report of a part to the first process: exit code and messages.
fn report(program: &Path, output: io::Result<Output>) -> Vec<u8> {
    let (code, messages) = match output {
        Ok(Output { status, mut stderr, .. }) => {
            if status.code().is_none() {
                stderr.extend(format!("{}: {status}", program.display()).bytes());
            }
            (status.code().unwrap_or(NO_EXIT_CODE), stderr)
        }
        Err(error) => (NO_EXIT_CODE, format!("{}: {error}", program.display()).into_bytes()),
    };
    [&code.to_le_bytes()[..], &messages].concat()
}

fn exit_code(code: Option<i32>) -> ExitCode {
    code.map_or(ExitCode::SUCCESS, |code| u8::try_from(code).unwrap_or(1).into())
}

/// Entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Existing journals: the journal itself and, for several systems, `run.NAME.jsonl`.
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
