//! Outputs: files, which appear when they are complete; files that ffmpeg writes; devices and standard output.

use crate::failure::Failure;
use crate::ffmpeg::{Encoding, Ffmpeg, Kind};
use crate::streams::{begin, is_device, is_standard, open_device, seekable_output};
use alphamf_files::output::OutputFile;
use alphamf_files::{Error, Metadata, OutputSpec, WriteError, Writer};
use anyhow::{Context, anyhow};
use std::io;
use std::path::{Path, PathBuf};

/// A file or stream that is being written.
pub(super) struct Output {
    path: PathBuf,
    writer: Writer,
    /// A file that ffmpeg writes.
    encoding: Option<Encoding>,
}

/// A complete output. A file has a temporary name until it is persisted.
pub(super) struct Complete {
    path: PathBuf,
    file: Option<OutputFile>,
    /// Number of clipped samples.
    pub(super) clipped: u64,
}

impl Complete {
    /// Temporary path of a file.
    pub(super) fn content(&self) -> Option<&Path> {
        self.file.as_ref().map(OutputFile::temporary_path)
    }

    /// Gives a file its name.
    pub(super) fn persist(self) -> Result<(), Error> {
        let Self { path, file, .. } = self;
        file.map_or(Ok(()), OutputFile::persist)
            .map_err(|reason| Error::Write { path, reason: WriteError::Io(reason) })
    }
}

/// Suggests a format that can hold the recording.
fn with_remedy(error: Error) -> anyhow::Error {
    match error {
        Error::Write {
            path,
            reason: reason @ (WriteError::SampleRate { .. } | WriteError::Channels { .. }),
        } => {
            anyhow!("{reason}: name a .wav file, or use --format wav with -o").context(Failure::Output(path))
        }
        error => error.into(),
    }
}

impl Output {
    /// Parts of the input that the output lacks, a few words each.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.encoding.as_ref().map(|encoding| encoding.left_out().to_vec()).unwrap_or_default()
    }

    pub(super) fn write_block(&mut self, channels: &[Vec<f32>]) -> Result<(), Error> {
        let written = self.writer.write_block(channels);
        if let Some(encoding) = self.encoding.take_if(|_| written.is_err()) {
            // ffmpeg's own error is more specific than the write error.
            encoding.complete()?;
        }
        written
    }

    /// Completes the content of the output.
    pub(super) fn complete(self) -> Result<Complete, Error> {
        let Self { path, writer, encoding } = self;
        let completed = writer.complete();
        // ffmpeg's own error is more specific than the write error.
        let encoded = encoding.map(Encoding::complete).transpose()?;
        let (clipped, file) = completed?;
        Ok(Complete { path, file: encoded.or(file), clipped })
    }

    /// Opens an output: standard output for `-`, a device, a file of `kind` by ffmpeg, with the tags and pictures of
    /// `original`, or a file. See [`begin`] for `replace`.
    pub(super) fn create(
        path: &Path,
        replace: bool,
        spec: OutputSpec,
        metadata: &Metadata,
        kind: Option<Kind>,
        original: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let plain = |writer| Self { path: path.to_owned(), writer, encoding: None };
        let failed = |path: &Path| {
            let path = path.to_owned();
            |error| Error::Write { path, reason: WriteError::Io(error) }
        };
        if is_standard(path) {
            let name = Path::new("standard output");
            let writer = match seekable_output() {
                Some(file) => Writer::to_seekable(name, spec, metadata, file)?,
                None => Writer::to_stream(name, spec, metadata, io::stdout())?,
            };
            return Ok(plain(writer));
        }
        if is_device(path) {
            let stream = open_device(path)?.map_err(failed(path))?;
            return Ok(plain(Writer::to_stream(path, spec, metadata, stream)?));
        }
        let file = begin(path, replace).map_err(failed(path))?;
        if let Some(kind) = kind {
            let ffmpeg = Ffmpeg::find().context("ffmpeg is not on the PATH any more")?;
            let encoded = ffmpeg.encode(file, path, kind, spec, metadata, original);
            let (writer, encoding) = encoded.map_err(with_remedy)?;
            return Ok(Self { encoding: Some(encoding), ..plain(writer) });
        }
        Ok(plain(Writer::to_file(path, spec, metadata, file).map_err(with_remedy)?))
    }
}
