//! Names of the tags of Matroska (RFC 9559, section 5.1.8), which depend on the level: album, disc or track.

use super::{TITLE, name_of};
use symphonia::core::meta::Tag;

/// Names of the levels above an album, of a disc, and of a track.
const ABOVE: [&str; 7] = ["COLLECTION", "EDITION", "ISSUE", "VOLUME", "OPUS", "SEASON", "SEQUEL"];
const DISC: [&str; 2] = ["PART", "SESSION"];
const TRACK: [&str; 2] = ["TRACK", "SONG"];

/// Tags that describe the file, not the recording, and the prefix of more such tags.
const STATISTICS: [&str; 5] = ["DURATION", "ENCODER", "BPS", "NUMBER_OF_FRAMES", "NUMBER_OF_BYTES"];
const STATISTICS_START: &str = "_STATISTICS_";

/// The levels at which a file has tags, on which their names depend.
pub(super) struct Levels {
    has_discs: bool,
    has_track_title: bool,
    has_track_artist: bool,
}

impl Levels {
    pub(super) fn of(tags: &[&Tag]) -> Self {
        let has = |is_it: &dyn Fn(&str, &str) -> bool| {
            tags.iter().any(|tag| tag.raw.key.split_once('@').is_some_and(|(level, name)| is_it(level, name)))
        };
        Self {
            has_discs: has(&|level, _| DISC.contains(&level)),
            has_track_title: has(&|level, name| TRACK.contains(&level) && name == TITLE),
            has_track_artist: has(&|level, name| TRACK.contains(&level) && name == "ARTIST"),
        }
    }

    /// Returns the name of a tag in Vorbis comments; `None` if it does not describe the recording.
    ///
    /// Writers without support for levels put all tags at the album level.
    pub(super) fn name<'a>(&self, tag: &'a Tag) -> Option<&'a str> {
        let (level, name) = tag.raw.key.split_once('@').unwrap_or(("", &tag.raw.key));
        // A tag in a language has the language after its name.
        let is_counted = |known: &str| {
            name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        if name.starts_with(STATISTICS_START) || STATISTICS.iter().any(|known| is_counted(known)) {
            return None;
        }
        let is_of_track = TRACK.contains(&level);
        match name {
            "PART_NUMBER" | "TOTAL_PARTS" if ABOVE.contains(&level) => None,
            TITLE if ABOVE.contains(&level) => Some(level),
            "PART_NUMBER" if DISC.contains(&level) => Some("DISCNUMBER"),
            "PART_NUMBER" => Some("TRACKNUMBER"),
            "TOTAL_PARTS" if is_of_track => None,
            // The number of parts at the next level.
            "TOTAL_PARTS" if self.has_discs && !DISC.contains(&level) => Some("DISCTOTAL"),
            "TOTAL_PARTS" => Some("TRACKTOTAL"),
            TITLE if DISC.contains(&level) => Some("DISCSUBTITLE"),
            TITLE if self.has_track_title && !is_of_track => Some("ALBUM"),
            "ARTIST" if self.has_track_artist && !is_of_track => Some("ALBUMARTIST"),
            _ if level.is_empty() => Some(name_of(tag)),
            name => Some(name),
        }
    }
}
