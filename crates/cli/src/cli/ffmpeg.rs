//! Formats that only ffmpeg reads or writes, by way of its program where it is installed.

use alphamf::signal::SampleFormat;
use alphamf_files::output::OutputFile;
use alphamf_files::{Container, Error, Layout, Metadata, ReadError, Reader, WriteError, Writer};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

/// A kind of file that ffmpeg writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    extension: &'static str,
    muxer: &'static str,
    /// Options of the encoder.
    encoder: &'static [&'static str],
    /// Whether it holds pictures, which are taken from the input.
    has_video: bool,
    /// Options of the subtitles that are taken with them, if it holds any.
    subtitles: &'static [&'static str],
}

const AAC: &[&str] = &["-c:a", "aac", "-b:a", "192k"];
const OPUS: &[&str] = &["-c:a", "libopus", "-b:a", "128k"];
const VORBIS: &[&str] = &["-c:a", "libvorbis", "-q:a", "6"];
const MP3: &[&str] = &["-c:a", "libmp3lame", "-q:a", "2"];
const WMA: &[&str] = &["-c:a", "wmav2", "-b:a", "192k"];
/// Its own chunks hold no more than a title and a comment.
const AIFF: &[&str] = &["-write_id3v2", "1"];

const AS_THEY_ARE: &[&str] = &["-map", "1:s?", "-c:s", "copy"];
const TIMED_TEXT: &[&str] = &["-map", "1:s?", "-c:s", "mov_text"];

const fn sound(extension: &'static str, muxer: &'static str, encoder: &'static [&'static str]) -> Kind {
    Kind { extension, muxer, encoder, has_video: false, subtitles: &[] }
}

const fn video(
    extension: &'static str,
    muxer: &'static str,
    encoder: &'static [&'static str],
    subtitles: &'static [&'static str],
) -> Kind {
    Kind { extension, muxer, encoder, has_video: true, subtitles }
}

const KINDS: [Kind; 16] = [
    sound("mp3", "mp3", MP3),
    sound("m4a", "ipod", AAC),
    sound("aac", "adts", AAC),
    sound("opus", "opus", OPUS),
    sound("ogg", "ogg", VORBIS),
    sound("oga", "ogg", VORBIS),
    sound("mka", "matroska", AAC),
    sound("wma", "asf", WMA),
    sound("aif", "aiff", AIFF),
    sound("aiff", "aiff", AIFF),
    video("mp4", "mp4", AAC, TIMED_TEXT),
    video("m4v", "mp4", AAC, TIMED_TEXT),
    video("mov", "mov", AAC, TIMED_TEXT),
    video("mkv", "matroska", AAC, AS_THEY_ARE),
    video("webm", "webm", OPUS, &[]),
    video("avi", "avi", MP3, &[]),
];

/// A playlist may name what it likes: nothing but files is opened.
const FILES_ONLY: [&str; 2] = ["-protocol_whitelist", "file"];

impl Kind {
    /// The kind that goes with a file's name, if ffmpeg writes it and this program does not.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        KINDS.into_iter().find(|kind| extension.eq_ignore_ascii_case(kind.extension))
    }

    /// Whether it holds pictures.
    pub fn has_video(self) -> bool {
        self.has_video
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".{}", self.extension)
    }
}

/// The program.
#[derive(Debug, Clone)]
pub struct Ffmpeg(PathBuf);

impl Ffmpeg {
    /// The program on the search path, if it is there.
    pub fn find() -> Option<Self> {
        let name = format!("ffmpeg{}", std::env::consts::EXE_SUFFIX);
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|path| path.is_file()).map(Self)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command.args(["-nostdin", "-hide_banner", "-loglevel", "error", "-y"]);
        command
    }

    /// Reads the sound of a file; with `in_time` it begins with the file, as its pictures do, and keeps its pauses.
    pub fn decode(&self, input: &Path, in_time: bool) -> Result<Reader, Error> {
        let refused = |reason| Error::Read { path: input.to_owned(), reason: ReadError::Io(reason) };
        let mut command = self.command();
        command.args(FILES_ONLY).arg("-i").arg(named(input)).args(["-map", "0:a:0"]);
        if in_time {
            command.args(["-af", "aresample=async=1:first_pts=0"]);
        }
        command.args(["-c:a", "pcm_f32le", "-f", "wav", "pipe:1"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = Running::start(command).map_err(refused)?;
        let sound = program.child.stdout.take().ok_or_else(|| refused(io::Error::other("no output")))?;
        Reader::from_stream(input, Decoded { sound, program })
    }

    /// The language and the title of a file's sound, as `key=value`, as far as they are known.
    fn said_of_sound(&self, original: &Path) -> Vec<String> {
        let mut command = self.command();
        command.args(FILES_ONLY).arg("-i").arg(named(original));
        command.args(["-map", "0:a:0", "-c", "copy", "-t", "0", "-f", "ffmetadata", "pipe:1"]);
        let said = command.stdin(Stdio::null()).output().map(|output| output.stdout).unwrap_or_default();
        sound_tags(&String::from_utf8_lossy(&said))
    }

    /// Begins to write a file of a kind, with what is said of the recording in `metadata` and in `original`, and the
    /// pictures of that.
    pub fn encode(
        &self,
        output: &Path,
        kind: Kind,
        layout: Layout,
        metadata: &Metadata,
        original: Option<&Path>,
    ) -> Result<(Writer, Encoding), Error> {
        let refused = |reason| Error::Write { path: output.to_owned(), reason: WriteError::Io(reason) };
        let file = OutputFile::create(output).map_err(refused)?;
        let mut command = self.command();
        command.args(["-f", "wav", "-i", "pipe:0"]);
        if let Some(original) = original {
            command.args(FILES_ONLY).arg("-i").arg(named(original));
            if kind.has_video {
                command.args(["-map", "1:v?", "-c:v", "copy", "-map_chapters", "1"]);
            }
            command.args(["-map", "0:a", "-map_metadata", "1"]);
            // What was said first counts.
            if is_ogg(original) {
                command.args(["-map_metadata", "1:s:a:0"]);
            }
            command.args(["-map_metadata", "0"]);
            // Once that of one stream is mapped, that of no other is taken: pictures and subtitles would lose theirs.
            if kind.has_video {
                command.args(kind.subtitles);
                for tag in self.said_of_sound(original) {
                    command.arg("-metadata:s:a:0").arg(tag);
                }
            } else if !is_ogg(output) {
                command.args(["-map_metadata:s:a:0", "1:s:a:0"]);
            }
        }
        command.args(kind.encoder).args(["-f", kind.muxer]).arg(named(file.temporary_path()));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut program = Running::start(command).map_err(refused)?;
        let sound = program.child.stdin.take().ok_or_else(|| refused(io::Error::other("no input")))?;
        let layout =
            Layout { format: SampleFormat::Float32, container: Container::Wav, dither: None, ..layout };
        let writer = Writer::to_stream_with(output, layout, metadata, sound)?;
        Ok((writer, Encoding { program, file, output: output.to_owned() }))
    }
}

/// Those of ffmpeg's metadata format: lines of the section of the one stream, in which a backslash stands before what would
/// otherwise mean something.
fn sound_tags(metadata: &str) -> Vec<String> {
    let Some((_, stream)) = metadata.split_once("\n[STREAM]\n") else { return Vec::new() };
    let mut lines = vec![String::new()];
    let mut characters = stream.chars();
    while let Some(character) = characters.next() {
        match character {
            '\n' => lines.push(String::new()),
            '\\' => lines.last_mut().zip(characters.next()).into_iter().for_each(|(line, it)| line.push(it)),
            it => lines.last_mut().into_iter().for_each(|line| line.push(it)),
        }
    }
    let is_section = |line: &String| line.starts_with('[') && line.ends_with(']');
    let of_sound = |line: &String| ["language=", "title="].iter().any(|key| line.starts_with(key));
    lines.into_iter().take_while(|line| !is_section(line)).filter(of_sound).collect()
}

/// Whether a file is Ogg by its name: in that, all is said of the sound; in others no more than its language and the like.
fn is_ogg(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["ogg", "oga", "opus"].iter().any(|ogg| extension.eq_ignore_ascii_case(ogg))
}

/// A name that is no option, address or protocol.
fn named(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}

/// The program at work, and what it complains of. Dropped, it is stopped.
#[derive(Debug)]
struct Running {
    child: Child,
    complaints: Option<JoinHandle<String>>,
}

impl Running {
    fn start(mut command: Command) -> io::Result<Self> {
        /// More is not told, bytes.
        const LONGEST: u64 = 1 << 16;
        let mut child = command.spawn()?;
        let errors = child.stderr.take();
        let complaints = errors.map(|mut errors| {
            thread::spawn(move || {
                let mut text = Vec::new();
                let _ = errors.by_ref().take(LONGEST).read_to_end(&mut text);
                // It must not wait for a reader.
                let _ = io::copy(&mut errors, &mut io::sink());
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        Ok(Self { child, complaints })
    }

    /// Waits for its end.
    fn finish(&mut self) -> io::Result<()> {
        let status = self.child.wait()?;
        let complaints = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        if status.success() {
            return Ok(());
        }
        let reason = complaints.lines().next_back().unwrap_or("it says nothing").trim().to_owned();
        Err(io::Error::other(format!("ffmpeg: {reason}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sound from the program.
struct Decoded {
    sound: ChildStdout,
    program: Running,
}

impl Read for Decoded {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.sound.read(bytes)?;
        if count == 0 && !bytes.is_empty() {
            self.program.finish()?;
        }
        Ok(count)
    }
}

/// A file that the program writes.
#[derive(Debug)]
pub struct Encoding {
    program: Running,
    file: OutputFile,
    output: PathBuf,
}

impl Encoding {
    /// Gives the file its name, once all of the sound has been written.
    pub fn finish(mut self) -> Result<(), Error> {
        let complete = self.program.finish().and_then(|()| self.file.persist());
        complete.map_err(|reason| Error::Write { path: self.output, reason: WriteError::Io(reason) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_sound_is_found_among_what_is_said_of_all() {
        let metadata = ";FFMETADATA1\ntitle=A film\nlanguage=eng\n[STREAM]\nhandler_name=x\ntitle=One \\= \\\\\\\ntwo\nlanguage=deu\n\
                        [CHAPTER]\nTIMEBASE=1/1000\ntitle=First\n";
        assert_eq!(sound_tags(metadata), ["title=One = \\\ntwo", "language=deu"]);
        assert!(sound_tags(";FFMETADATA1\ntitle=A film\n").is_empty() && sound_tags("").is_empty());
        assert!(sound_tags("\n[STREAM]\ntitle\\").is_empty());
    }
}
