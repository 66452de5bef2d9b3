//! Parallel reading of a folder of speech, and writing of the trained model.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use alphamf::signal::Signal;
use alphamf_files::output::write_atomic;
use alphamf_files::{FolderContents, check_distinct, read_with_losses};
use alphamf_samplers::distributed::{Communicator, Counted, pack, unpack};
use anyhow::{Context as _, ensure};

use crate::{Failure, INPUT, OUTPUT, checkpoint};

/// Options of training.
#[derive(Debug, clap::Args)]
pub struct Learning {
    /// Folder of clean speech, searched recursively for audio files.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Output file (safetensors).
    ///
    /// FILE.checkpoint holds checkpoints until it is complete.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Seed the random numbers.
    ///
    /// The same seed gives the same file.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Number of threads per process.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,

    /// Overwrite an existing output.
    #[arg(long)]
    force: bool,

    /// Report progress.
    #[arg(short, long)]
    pub verbose: bool,
}

/// Recordings with their lengths in bytes.
pub type Files = Vec<(PathBuf, u64)>;

impl Learning {
    /// Lists recordings in the order of their names; fails early if the output cannot be written.
    pub fn begin(&self, ranks: &mut dyn Communicator) -> anyhow::Result<Files> {
        rayon::ThreadPoolBuilder::new().num_threads(self.threads).build_global()?;
        let files = if ranks.rank() == 0 { self.list()? } else { Vec::new() };
        Ok(serde_json::from_slice(&from_first(ranks, &serde_json::to_vec(&files)?))?)
    }

    fn list(&self) -> anyhow::Result<Files> {
        let Self { folder, output, force, .. } = self;
        let exists = || format!("{} already exists: use --force to overwrite it", output.display());
        ensure!(*force || !output.exists(), Failure(OUTPUT, exists()));
        let unusable = |why: &str| Failure(INPUT, format!("{}: {why}", folder.display()));
        let contents = FolderContents::scan(folder, &[]).with_context(|| unusable("cannot be read"))?;
        for (path, reason) in &contents.unreadable {
            eprintln!("denoise-mpi: skipped: {}: {reason}", path.display());
        }
        ensure!(!contents.audio.is_empty(), unusable("no audio files found"));
        // This check also applies with --force.
        contents.audio.iter().try_for_each(|recording| check_distinct(recording, output))?;
        Ok(contents.audio.into_iter().map(with_length).collect())
    }

    /// Passes the recordings of this process to `add`. Returns the number of invalid ones in all processes, which are reported
    /// once.
    pub fn read(
        &self,
        files: &Files,
        ranks: &mut dyn Communicator,
        mut add: impl FnMut(&Signal) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        let mut bad = Vec::new();
        for (file, _) in share(files, ranks.rank(), ranks.ranks()) {
            let read = read_with_losses(file).map_err(anyhow::Error::from);
            let added = read.and_then(|(speech, losses)| {
                if losses.any() {
                    eprintln!("denoise-mpi: {}: {losses}", file.display());
                }
                add(&speech).with_context(|| file.display().to_string())
            });
            if let Err(error) = added {
                bad.push(format!("{error:#}"));
            }
        }
        let mut left_out = 0;
        for message in ranks.all_gather(&serde_json::to_vec(&bad)?) {
            let bad: Vec<String> = serde_json::from_slice(&message)?;
            left_out += bad.len();
            let reported = bad.iter().filter(|_| ranks.rank() == 0);
            reported.for_each(|reason| eprintln!("denoise-mpi: skipped: {reason}"));
        }
        let none = || Failure(INPUT, format!("{}: no valid recording", self.folder.display()));
        ensure!(left_out < files.len(), none());
        Ok(left_out)
    }

    /// Finds the newest checkpoint of this run; returns its number of sweeps. `sweeps` is the unit in the message.
    pub fn newest(
        &self,
        about: &str,
        sweeps: &str,
        ranks: &mut dyn Communicator,
    ) -> anyhow::Result<Option<usize>> {
        let first = ranks.rank() == 0;
        let newest =
            if first { checkpoint::prepare(&self.output, about).context("the checkpoint")? } else { None };
        let newest: Option<usize> =
            serde_json::from_slice(&from_first(ranks, &serde_json::to_vec(&newest)?))?;
        if let Some(number) = newest.filter(|_| first) {
            eprintln!("denoise-mpi: resuming after {number} {sweeps}");
        }
        Ok(newest)
    }

    /// Writes the output in the first process, and reports it.
    pub fn finish<C: Communicator>(
        &self,
        bytes: &[u8],
        left_out: usize,
        sentence: &str,
        ranks: &mut Counted<C>,
    ) -> anyhow::Result<ExitCode> {
        let sent = pack(&[ranks.bytes]);
        let sent: u64 = ranks.all_gather(&sent).iter().flat_map(|bytes| unpack::<u64>(bytes)).sum();
        if ranks.rank() > 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let output = &self.output;
        let unwritten = || Failure(OUTPUT, format!("{}: cannot be written", output.display()));
        write_atomic(output, bytes).with_context(unwritten)?;
        checkpoint::remove(output).context("the checkpoint")?;
        let (ranks, sent) = (ranks.ranks(), sent as f64 / 1e6);
        let processes = if ranks == 1 { "process" } else { "processes" };
        eprintln!("{}: {sentence}; {ranks} {processes}, {sent:.1} MB sent", output.display());
        Ok(if left_out > 0 { INPUT.into() } else { ExitCode::SUCCESS })
    }
}

/// A file and its length in bytes, 0 if that cannot be read.
pub fn with_length(path: PathBuf) -> (PathBuf, u64) {
    let length = fs::metadata(&path).map_or(0, |file| file.len());
    (path, length)
}

/// Returns the message of the first process.
pub fn from_first(ranks: &mut dyn Communicator, message: &[u8]) -> Vec<u8> {
    let own = if ranks.rank() == 0 { message } else { &[] };
    ranks.all_gather(own).swap_remove(0)
}

/// Files of one process: a consecutive section with about the same number of bytes for each.
pub fn share(files: &Files, rank: usize, ranks: usize) -> &[(PathBuf, u64)] {
    let total: u128 = files.iter().map(|&(_, length)| u128::from(length) + 1).sum();
    let bound = |rank: usize| {
        let mut before = 0;
        let within = |&&(_, length): &&(PathBuf, u64)| {
            before += u128::from(length) + 1;
            before * ranks as u128 <= total * rank as u128
        };
        files.iter().take_while(within).count()
    };
    &files[bound(rank)..bound(rank + 1)]
}
