//! Outputs: files, which appear when they are complete; files that ffmpeg writes; devices and standard output.

use crate::cli::ffmpeg::{Encoding, Ffmpeg, Kind};
use crate::cli::terminal::{check_standard_output, is_device, is_standard, open_device, seekable_output};
use alphamf_files::{Error, Metadata, OutputSpec, WriteError, Writer};
use std::io;
use std::path::Path;

/// A file or stream that is being written.
pub(super) struct Output {
    writer: Writer,
    /// A file that ffmpeg writes.
    encoding: Option<Encoding>,
}

impl Output {
    /// Parts of the input that the output lacks, a few words each.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.encoding.as_ref().map(|encoding| encoding.left_out().to_vec()).unwrap_or_default()
    }

    pub(super) fn write_block(&mut self, channels: &[Vec<f32>]) -> Result<(), Error> {
        let written = self.writer.write_block(channels);
        if let Some(encoding) = self.encoding.take_if(|_| written.is_err()) {
            // Why ffmpeg has ended says more than that it does not read any more.
            encoding.finish()?;
        }
        written
    }

    /// Completes the output. Returns the number of clipped samples.
    pub(super) fn finish(self) -> Result<u64, Error> {
        let clipped = self.writer.finish();
        self.encoding.map(Encoding::finish).transpose()?;
        clipped
    }

    /// Begins an output: standard output if it is `-`, a device, a file by ffmpeg if it is of such a kind, with what the
    /// original holds besides the samples, or a file.
    pub(super) fn create(
        path: &Path,
        spec: OutputSpec,
        metadata: &Metadata,
        kind: Option<Kind>,
        original: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let plain = |writer| Self { writer, encoding: None };
        let failed = |path: &Path| {
            let path = path.to_owned();
            |error| Error::Write { path, reason: WriteError::Io(error) }
        };
        if is_standard(path) {
            let name = Path::new("standard output");
            check_standard_output().map_err(failed(name))?;
            let writer = match seekable_output() {
                Some(file) => Writer::to_seekable_with(name, spec, metadata, file)?,
                None => Writer::to_stream_with(name, spec, metadata, io::stdout())?,
            };
            return Ok(plain(writer));
        }
        if is_device(path) {
            let stream = open_device(path)?.map_err(failed(path))?;
            return Ok(plain(Writer::to_stream_with(path, spec, metadata, stream)?));
        }
        if let Some(kind) = kind
            && let Some(ffmpeg) = Ffmpeg::find()
        {
            let (writer, encoding) = ffmpeg.encode(path, kind, spec, metadata, original)?;
            return Ok(Self { writer, encoding: Some(encoding) });
        }
        Ok(plain(Writer::create_with(path, spec, metadata)?))
    }
}
