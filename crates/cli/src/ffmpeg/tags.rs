//! Correction of the tags that ffmpeg copies.

use alphamf_files::Metadata;
use std::path::Path;
use std::process::Command;

/// Chunks of a WAV file's list whose IDs ffmpeg uses as tag names: ID, name in [`Metadata`], name in ffmpeg.
const UNNAMED_CHUNKS: [(&str, &str, &str); 2] =
    [("ISBJ", "DESCRIPTION", "description"), ("IMUS", "COMPOSER", "composer")];

/// Maximum size of all tags in the arguments of a program, bytes: systems limit each argument, or all together.
const MAX_TAG_BYTES: usize = if cfg!(windows) { 1 << 14 } else { 100 << 10 };

/// Removes the tags that ffmpeg derives from [`UNNAMED_CHUNKS`] of its inputs. Adds the tags of `metadata` that would
/// be missing, or whose text ffmpeg misreads as UTF-8. `original` holds the tags that ffmpeg finds in a file, if any.
/// Returns the number of tags that are too long.
pub(super) fn correct_tags(command: &mut Command, metadata: &Metadata, original: Option<&str>) -> usize {
    let (mut room, mut too_long) = (MAX_TAG_BYTES, 0);
    let mut add = |name: &str, value: &str| match room.checked_sub(name.len() + value.len()) {
        Some(left) => {
            room = left;
            command.arg("-metadata").arg(format!("{name}={value}"));
        }
        None => too_long += 1,
    };
    if original.is_none_or(|tags| tags.contains(char::REPLACEMENT_CHARACTER)) {
        for (name, value) in metadata.tags().filter(|(_, value)| !value.is_ascii()) {
            add(&name.to_lowercase(), value);
        }
    }
    for (chunk, name, own) in UNNAMED_CHUNKS {
        add(chunk, "");
        let value = metadata.tags().find(|(found, _)| *found == name).map(|(_, value)| value);
        if let Some(value) = value.filter(|_| original.is_none_or(|tags| has_tag(tags, chunk))) {
            add(own, value);
        }
    }
    too_long
}

/// Whether a file has a tag of this name, by its tags in ffmpeg's metadata format.
fn has_tag(metadata: &str, name: &str) -> bool {
    metadata.lines().any(|line| line.split_once('=').is_some_and(|(found, _)| found == name))
}

/// Extracts the language and title of audio track `number`, from 0, from tags in ffmpeg's metadata format. These are
/// lines in the section of a stream, in which a backslash escapes the next character.
pub(super) fn audio_tags(metadata: &str, number: usize) -> Vec<String> {
    let Some(stream) = metadata.split("\n[STREAM]\n").nth(number + 1) else { return Vec::new() };
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

/// Whether a file is Ogg by its extension. Ogg stores all tags in the audio stream; other formats store few there, such
/// as its language.
pub(super) fn is_ogg(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["ogg", "oga", "opus"].iter().any(|ogg| extension.eq_ignore_ascii_case(ogg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_the_audio_are_found_among_those_of_the_file() {
        let metadata = ";FFMETADATA1\ntitle=A film\nlanguage=eng\n[STREAM]\ntitle=Comments\n[STREAM]\nhandler_name=x\n\
                        title=One \\= \\\\\\\ntwo\nlanguage=deu\n[CHAPTER]\nTIMEBASE=1/1000\ntitle=First\n";
        assert_eq!(audio_tags(metadata, 0), ["title=Comments"]);
        assert_eq!(audio_tags(metadata, 1), ["title=One = \\\ntwo", "language=deu"]);
        assert!(
            audio_tags(metadata, 2).is_empty() && audio_tags(";FFMETADATA1\ntitle=A film\n", 0).is_empty()
        );
        assert!(audio_tags("", 0).is_empty() && audio_tags("\n[STREAM]\ntitle\\", 0).is_empty());
    }
}
