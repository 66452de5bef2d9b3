//! Formats that only ffmpeg reads or writes, through its program if installed.

mod kinds;
mod original;
mod process;
mod report;
mod tags;

use alphamf::signal::{SampleFormat, counted};
use alphamf_files::output::OutputFile;
use alphamf_files::{Container, Error, Losses, Metadata, OutputSpec, ReadError, Reader, WriteError, Writer};
pub use kinds::Kind;
use original::{Original, named};
pub use process::stop_all;
use process::{Running, apart};
use report::{Input, PAUSES, Report, StreamKind};
use std::env::consts::EXE_SUFFIX;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tags::{audio_tags, correct_tags, is_ogg};

/// Time limit of the search for ffmpeg.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The program ffmpeg.
#[derive(Debug, Clone)]
pub struct Ffmpeg(PathBuf);

impl Ffmpeg {
    /// Returns the first ffmpeg on the search path.
    pub fn find() -> Option<Self> {
        static FOUND: OnceLock<Option<Ffmpeg>> = OnceLock::new();
        FOUND
            .get_or_init(|| {
                let path = std::env::var_os("PATH")?;
                Self::search(&mut std::env::split_paths(&path), SEARCH_TIMEOUT)
            })
            .clone()
    }

    /// Returns the first ffmpeg in `folders`. Each program has half of the remaining time of `patience` to answer.
    fn search(folders: &mut dyn Iterator<Item = PathBuf>, patience: Duration) -> Option<Self> {
        let end = Instant::now() + patience;
        let mut programs = folders.map(|folder| folder.join(format!("ffmpeg{}", EXE_SUFFIX)));
        let answers = |program: &PathBuf| {
            let left = end.saturating_duration_since(Instant::now());
            program.is_file() && is_ffmpeg(program, left / 2)
        };
        programs.find(answers).map(Self)
    }

    fn command(&self) -> Command {
        let mut command = apart(&self.0);
        command.args(["-nostdin", "-hide_banner", "-nostats", "-loglevel", "repeat+level+info", "-y"]);
        command
    }

    /// Decodes the audio track that players select by default. With `in_time`, the audio starts with the file, as its
    /// video does, and pauses become silence.
    pub fn decode(&self, input: &Path, in_time: bool) -> Result<Decoded, Error> {
        let refused = |reason| Error::Read { path: input.to_owned(), reason: ReadError::Io(reason) };
        let original = Original::open(input).map_err(refused)?;
        let streams = self.streams(&original).map_err(refused)?;
        if streams.is_silent() {
            let reason = ReadError::NotAudio(NO_AUDIO.to_owned());
            return Err(Error::Read { path: input.to_owned(), reason });
        }
        let mut command = self.command();
        // Damage is detected and counted. Decoding continues at any error rate.
        command.args(["-max_error_rate", "1", "-err_detect", "crccheck"]);
        original.as_stdin(&mut command).map_err(refused)?;
        command.args(["-map", &audio_of(&streams)]);
        if in_time {
            // Inserted silence is reported at this level. The report does not separate pauses from silence before the
            // first sample, so a second filter inserts the latter.
            command.args(["-loglevel", "repeat+level+verbose"]);
            let start = "aresample=async=1:first_pts=0";
            command.args(["-af", &format!("{PAUSES}=async=1,{start}")]);
        }
        command.args(["-c:a", "pcm_f32le", "-f", "wav", "pipe:1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = Running::start(command, None).map_err(refused)?;
        let sound = program.child.stdout.take().ok_or_else(|| refused(io::Error::other("no output")))?;
        let report = DecodeReport::default();
        let reader = Reader::from_stream(input, Decoding { sound, program, report: report.clone() })?;
        let format = streams.audio().and_then(|track| track.format).unwrap_or(reader.format());
        Ok(Decoded { reader, format, report })
    }

    /// Lists the streams of a file; none if ffmpeg cannot read it.
    fn streams(&self, original: &Original) -> io::Result<Input> {
        let mut command = self.command();
        original.as_stdin(&mut command)?;
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        // Without an output, ffmpeg exits with an error.
        let report = Running::start(command, None)?.wait()?.1;
        Ok(report.inputs.into_iter().next().unwrap_or_default())
    }

    /// Reads the streams of a file, and its tags in ffmpeg's metadata format, including those of each audio track.
    fn inspect(&self, original: &Original) -> io::Result<(Input, String)> {
        let mut command = self.command();
        original.as_stdin(&mut command)?;
        command.args(["-map", "0:a", "-c", "copy", "-t", "0", "-f", "ffmetadata", "pipe:1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = Running::start(command, None)?;
        let mut tags = Vec::new();
        if let Some(output) = program.child.stdout.take() {
            output.take(MAX_METADATA_BYTES).read_to_end(&mut tags)?;
        }
        let report = program.wait()?.1;
        let input = report.inputs.into_iter().next().unwrap_or_default();
        Ok((input, String::from_utf8_lossy(&tags).into_owned()))
    }

    /// Adds options that copy streams and tags of the second input, at `path`, to the output. Returns this input, and
    /// descriptions of its parts that the output lacks.
    fn add_copied_streams(
        &self,
        path: &Path,
        output: &Path,
        kind: Kind,
        metadata: &Metadata,
        command: &mut Command,
    ) -> io::Result<(Original, Vec<String>)> {
        let original = Original::open(path)?;
        let (input, tags) = self.inspect(&original)?;
        original.as_second(command)?;
        if kind.has_video() {
            command.args(["-map", "1:v?", "-c:v", "copy", "-map_chapters", "1"]);
        }
        if kind.needs_start_codes() {
            let videos = input
                .streams
                .iter()
                .filter(|stream| matches!(stream.kind, StreamKind::Video | StreamKind::Picture));
            for (number, _) in videos.enumerate().filter(|(_, stream)| stream.is_untagged_h264) {
                command.args([&format!("-bsf:v:{number}"), "h264_mp4toannexb"]);
            }
        }
        command.args(["-map", "0:a"]);
        if kind.has_video() && input.audio().is_some_and(|track| track.is_default) {
            command.args(["-disposition:a:0", "default"]);
        }
        if kind.has_cover() {
            let covers = input.streams.iter().filter(|stream| stream.kind == StreamKind::Picture);
            for (number, cover) in covers.enumerate() {
                command.args(["-map", &format!("1:{}", cover.index)]);
                command.args(["-c:v", "copy", &format!("-disposition:v:{number}"), "attached_pic"]);
            }
        }
        let audio = input.audio().map_or_else(|| "a:0".to_owned(), |track| track.index.to_string());
        command.args(["-map_metadata", "1"]);
        // The first mapping of a tag wins.
        if is_ogg(path) {
            command.args(["-map_metadata", &format!("1:s:{audio}")]);
        }
        command.args(["-map_metadata", "0"]);
        // A tag mapping for one stream disables the automatic mapping for all others: video and subtitles would lose
        // their tags.
        if kind.has_video() {
            for (number, (index, codec)) in kept_subtitles(&input, kind).enumerate() {
                command.args(["-map", &format!("1:{index}"), &format!("-c:s:{number}"), codec]);
            }
            if kind.has_attachments() {
                command.args(["-map", "1:t?", "-c:t", "copy"]);
            }
            for tag in audio_tags(&tags, input.audio_number()) {
                command.arg("-metadata:s:a:0").arg(tag);
            }
        } else if !is_ogg(output) {
            command.args(["-map_metadata:s:a:0", &format!("1:s:{audio}")]);
        }
        let too_long = correct_tags(command, metadata, Some(&tags));
        Ok((original, not_kept(&input, kind, too_long)))
    }

    /// Starts to encode `file` as `kind`, with the tags of `metadata` and `original`, and the video and cover of
    /// `original`.
    pub fn encode(
        &self,
        file: OutputFile,
        output: &Path,
        kind: Kind,
        layout: OutputSpec,
        metadata: &Metadata,
        original: Option<&Path>,
    ) -> Result<(Writer, Encoding), Error> {
        let refused = |reason| Error::Write { path: output.to_owned(), reason: WriteError::Io(reason) };
        // ffmpeg cannot mix more channels: it has no positions for them.
        const MAX_MIXED: usize = 8;
        if kind.max_channels().is_some() && layout.channels > MAX_MIXED {
            let reason = WriteError::Channels { found: layout.channels, maximum: MAX_MIXED };
            return Err(Error::Write { path: output.to_owned(), reason });
        }
        let mut command = self.command();
        command.args(["-f", "wav", "-i", "pipe:0"]);
        let original = original.map(|path| {
            let kept = self.add_copied_streams(path, output, kind, metadata, &mut command);
            kept.map_err(|reason| Error::Read { path: path.to_owned(), reason: ReadError::Io(reason) })
        });
        let (inherited, mut left_out) = match original.transpose()? {
            Some((original, left_out)) => (Some(original), left_out),
            None => {
                let too_long = correct_tags(&mut command, metadata, None);
                let mut left_out = not_kept(&Input::default(), kind, too_long);
                left_out.extend(kind.has_video().then(|| NO_VIDEO.to_owned()));
                (None, left_out)
            }
        };
        command.args(kind.encoder);
        if let Some(filter) = kind.delay_filter(layout.sample_rate) {
            command.args(["-af", &filter]);
        }
        // Samples in the format of the output, or floats, which every encoder rounds itself.
        let (format, dither) = match kind.pcm(layout.format) {
            Some(encoder) => {
                command.args(["-c:a", encoder]);
                (layout.format, layout.dither)
            }
            None => (SampleFormat::Float32, None),
        };
        if let Some(maximum) = kind.max_channels().filter(|&maximum| layout.channels > maximum) {
            command.args(["-ac", &maximum.to_string()]);
            left_out
                .push(format!("{} channels are mixed to {maximum}: {kind} holds no more", layout.channels));
        }
        command.args(["-f", kind.muxer]).arg(named(file.temporary_path()));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut program = Running::start(command, inherited.as_ref()).map_err(refused)?;
        let sound = program.child.stdin.take().ok_or_else(|| refused(io::Error::other("no input")))?;
        let layout = OutputSpec { format, container: Container::Wav, dither, ..layout };
        let encoding = Encoding { program, file, output: output.to_owned(), left_out };
        match Writer::to_stream(output, layout, metadata, sound) {
            Ok(writer) => Ok((writer, encoding)),
            // ffmpeg's own error is more specific than the write error.
            Err(error) => Err(encoding.complete().err().unwrap_or(error)),
        }
    }
}

/// Name of an audio track that is not read, for [`left_out`].
pub const OTHER_TRACKS: &str = "further audio track";

/// Name of a picture of the whole file, for [`left_out`].
pub const PICTURES: &str = "cover picture";

/// Formats a message about `count` parts of an input that an output lacks.
pub fn left_out(count: usize, what: &str) -> String {
    format!("{} left out", counted(count as u64, what))
}

/// Reason to refuse a video without audio.
pub const NO_AUDIO: &str = "it has no audio track";

/// Message about a video output without pictures.
const NO_VIDEO: &str = "sound alone: pictures are copied from a file only";

/// Maximum size of the tags that are read from a file, bytes.
const MAX_METADATA_BYTES: u64 = 1 << 20;

/// Value of `-map` for the audio track that players select by default.
fn audio_of(input: &Input) -> String {
    input.audio().map_or_else(|| "0:a:0".to_owned(), |track| format!("0:{}", track.index))
}

/// Iterates over the subtitle tracks that an output of this kind can hold: their stream indices and output codecs.
fn kept_subtitles(input: &Input, kind: Kind) -> impl Iterator<Item = (usize, &'static str)> {
    input.streams.iter().filter_map(move |stream| match stream.kind {
        StreamKind::Subtitles(subtitles) => Some((stream.index, kind.subtitle_codec(subtitles)?)),
        _ => None,
    })
}

/// Describes the parts of an input that an output of this kind lacks. `tags` is the number of tags that are too long.
fn not_kept(input: &Input, kind: Kind, tags: usize) -> Vec<String> {
    let pictures = if kind.has_video() || kind.has_cover() { 0 } else { input.count(StreamKind::Picture) };
    let of_film = |count: usize| if kind.has_video() { count } else { 0 };
    let is_subtitle = |stream: &&report::Stream| matches!(stream.kind, StreamKind::Subtitles(_));
    let subtitles = input.streams.iter().filter(is_subtitle).count() - kept_subtitles(input, kind).count();
    let attachments = if kind.has_attachments() { 0 } else { input.count(StreamKind::Attachment) };
    let lost = [
        (input.count(StreamKind::Audio).saturating_sub(1), OTHER_TRACKS),
        (pictures, PICTURES),
        (of_film(subtitles), "subtitle track"),
        (of_film(attachments), "attached file"),
        (of_film(input.count(StreamKind::Data)), "data track"),
        (tags, "tag"),
    ];
    lost.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| left_out(count, what)).collect()
}

/// Whether the version output of a program starts as that of ffmpeg, within the time `patience`.
fn is_ffmpeg(program: &Path, patience: Duration) -> bool {
    const MARK: &[u8] = b"ffmpeg version";
    let mut command = apart(program);
    command.arg("-version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let (sender, receiver) = mpsc::sync_channel(1);
    if let Some(output) = child.stdout.take() {
        // Without a thread nothing is received, and the program is not used.
        let _ = thread::Builder::new().spawn(move || {
            let mut start = Vec::new();
            let _ = output.take(MARK.len() as u64).read_to_end(&mut start);
            sender.send(start)
        });
    }
    let start = receiver.recv_timeout(patience).unwrap_or_default();
    // An error means that the program has already ended.
    let _ = child.kill();
    let _ = child.wait();
    start == MARK
}

/// ffmpeg's report on a file that it decodes, available once all audio is read. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct DecodeReport(Arc<OnceLock<Report>>);

impl DecodeReport {
    /// Adds the losses of the file to `losses`. `seconds` of audio were decoded, at `sample_rate` in Hz.
    pub fn add_to(&self, losses: &mut Losses, seconds: f64, sample_rate: u32) {
        let Some(report) = self.0.get() else { return };
        losses.damaged_packets += report.damaged_packets.max(report.pauses);
        losses.silent_samples += report.silent_samples;
        losses.ends_early |= report.ends_early;
        if let Some(declared) = report.inputs.first().and_then(declared_seconds) {
            // Encoders differ in whether durations include delay and padding.
            const SLACK_SECONDS: f64 = 0.15;
            if seconds + SLACK_SECONDS < declared {
                losses.missing_samples += ((declared - seconds) * f64::from(sample_rate)) as u64;
            }
        }
        if report.errors > 0 && !losses.any() {
            losses.damaged_packets = 1;
        }
    }

    /// Number of audio tracks besides the decoded one.
    pub fn other_tracks(&self) -> usize {
        let input = self.0.get().and_then(|report| report.inputs.first());
        input.map_or(0, |input| input.count(StreamKind::Audio).saturating_sub(1))
    }
}

/// Declared duration of the audio, s. None if there are other streams: the declaration is that of the longest.
fn declared_seconds(input: &Input) -> Option<f64> {
    let others = input.streams.len() - input.count(StreamKind::Picture);
    input.duration_seconds.filter(|_| others == 1)
}

/// Audio that ffmpeg decodes to floats.
pub struct Decoded {
    pub reader: Reader,
    /// Sample format of the file, or 16-bit integers if its codec is lossy.
    pub format: SampleFormat,
    /// ffmpeg's report, available once all audio is read.
    pub report: DecodeReport,
}

/// WAV stream from the standard output of ffmpeg.
struct Decoding {
    sound: ChildStdout,
    program: Running,
    report: DecodeReport,
}

impl Read for Decoding {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.sound.read(bytes)?;
        if count == 0 && !bytes.is_empty() {
            // Later calls at the end of the stream leave the first report.
            let _first = self.report.0.set(self.program.finish()?);
        }
        Ok(count)
    }
}

/// A file that ffmpeg writes.
#[derive(Debug)]
pub struct Encoding {
    program: Running,
    file: OutputFile,
    output: PathBuf,
    left_out: Vec<String>,
}

impl Encoding {
    /// Descriptions of the parts of the recording that the file lacks.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Waits for ffmpeg to finish, once all audio has been written. Returns the complete file under its temporary name.
    pub fn complete(mut self) -> Result<OutputFile, Error> {
        let mut complete = || -> io::Result<()> {
            let report = self.program.finish()?;
            // ffmpeg may exit with success although the end of the file is not written.
            if report.is_unwritten() {
                let reason = report.reason.unwrap_or_default();
                return Err(io::Error::other(format!("ffmpeg: {reason}")));
            }
            Ok(())
        };
        match complete() {
            Ok(()) => Ok(self.file),
            Err(reason) => {
                let reason = renamed(reason, self.file.temporary_path(), &self.output);
                Err(Error::Write { path: self.output, reason: WriteError::Io(reason) })
            }
        }
    }
}

/// Replaces the temporary name, which ffmpeg reports in errors, by the name of the output.
fn renamed(reason: io::Error, temporary: &Path, output: &Path) -> io::Error {
    let (words, temporary) = (reason.to_string(), named(temporary).display().to_string());
    if words.contains(&temporary) {
        return io::Error::other(words.replace(&temporary, &output.display().to_string()));
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs named ffmpeg that never answer precede one that does.
    #[test]
    #[cfg(unix)]
    fn the_search_comes_to_an_end() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let program = |name: &str, script: &str| {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("ffmpeg"), script).unwrap();
            std::fs::set_permissions(folder.join("ffmpeg"), PermissionsExt::from_mode(0o755)).unwrap();
            folder
        };
        let silent = [1, 2, 3].map(|n| program(&n.to_string(), "#!/bin/sh\nexec sleep 60\n"));
        let real = program("real", "#!/bin/sh\necho ffmpeg version 7\n");
        let patience = Duration::from_secs(2);
        let began = Instant::now();
        assert!(Ffmpeg::search(&mut silent.iter().cloned(), patience).is_none());
        assert!(began.elapsed() < 2 * patience, "{:?}", began.elapsed());
        let mut folders = [silent[0].clone(), real.clone()].into_iter();
        assert_eq!(Ffmpeg::search(&mut folders, 5 * patience).unwrap().0, real.join("ffmpeg"));
    }

    #[test]
    fn errors_have_the_name_of_the_output() {
        let reason = "ffmpeg: Error writing trailer of file:./.alphamf-a.part: No space left on device";
        let reason = renamed(io::Error::other(reason), Path::new("./.alphamf-a.part"), Path::new("o.m4a"));
        assert_eq!(reason.to_string(), "ffmpeg: Error writing trailer of o.m4a: No space left on device");
        let other = renamed(io::ErrorKind::BrokenPipe.into(), Path::new("a"), Path::new("b"));
        assert_eq!(other.kind(), io::ErrorKind::BrokenPipe);
    }
}
