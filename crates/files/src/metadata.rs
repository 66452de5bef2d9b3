//! Metadata of a recording: tags, cue points, the broadcast extension and other chunks.

mod id3;
mod matroska;
mod text;

use super::error::ReadError;
use std::collections::HashSet;
use std::io::{self, Read};
use symphonia::core::formats::FormatReader;
use symphonia::core::formats::well_known::{FORMAT_ID_AIFF, FORMAT_ID_MKV};
use symphonia::core::meta::{RawValue, StandardVisualKey, Tag};

/// Limit on the metadata of a file, bytes; pictures are larger than all the rest together.
const MAX_BYTES: usize = 16 << 20;

/// Bytes of the header of a chunk. A tag counts as many in addition to its name and value, as it takes more memory.
const HEADER_BYTES: usize = 8;

/// Chunks of a WAV file that describe the file, not the recording, and the starts of other recordings.
const STRUCTURE: [&[u8; 4]; 15] = [
    b"fmt ", b"data", b"fact", b"ds64", b"JUNK", b"junk", b"FLLR", b"PAD ", b"PEAK", b"RIFF", b"RIFX",
    b"RF64", b"BW64", b"fLaC", b"OggS",
];

/// FLAC blocks (RFC 9639, section 8) that describe the recording.
const APPLICATION: u8 = 2;
const VORBIS_COMMENT: u8 = 4;
const CUE_SHEET: u8 = 5;
const PICTURE: u8 = 6;

/// The start of an application block in which the reference encoder of FLAC stores a chunk of a WAV file.
const RIFF: &[u8] = b"riff";

/// The longest FLAC block.
const MAX_BLOCK: usize = (1 << 24) - 1;

/// The tag in which FLAC stores the speaker positions of its channels (RFC 9639, section 8.6.2).
const CHANNEL_MASK: &str = "WAVEFORMATEXTENSIBLE_CHANNEL_MASK";

const TITLE: &str = "TITLE";

/// Names of Vorbis comments, and the chunks of the `INFO` list of a WAV file with the same meaning. The first of two
/// chunks for one name is written.
const INFORMATION: [(&str, &[u8; 4]); 13] = [
    (TITLE, b"INAM"),
    ("ARTIST", b"IART"),
    ("ALBUM", b"IPRD"),
    ("COMMENT", b"ICMT"),
    ("DATE", b"ICRD"),
    ("GENRE", b"IGNR"),
    ("COPYRIGHT", b"ICOP"),
    ("TRACKNUMBER", b"ITRK"),
    ("TRACKNUMBER", b"IPRT"),
    ("LANGUAGE", b"ILNG"),
    ("COMPOSER", b"IMUS"),
    ("ENCODED_BY", b"ITCH"),
    ("DESCRIPTION", b"ISBJ"),
];

/// Metadata of a recording.
///
/// Tags are names and values. Whatever else a WAV or FLAC file holds (`bext`, `iXML`, `cue `, ID3, pictures, cue
/// sheets) is kept byte for byte and written to files of the same kind. Pictures of other files are written to FLAC.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    tags: Vec<(String, String)>,
    /// The names of the tags.
    names: HashSet<String>,
    /// Chunks of a WAV file.
    chunks: Vec<([u8; 4], Vec<u8>)>,
    /// Blocks of a FLAC file, by their kind.
    blocks: Vec<(u8, Vec<u8>)>,
    bytes: usize,
}

impl Metadata {
    /// Names, in capitals as in Vorbis comments, and values, in the order of the file.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Adds a tag, unless Vorbis comments cannot hold it. A value ends at its first zero.
    pub fn push_tag(&mut self, name: &str, value: &str) {
        let value = value.split('\0').next().unwrap_or_default();
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| (0x20..=0x7d).contains(&byte) && byte != b'=');
        if is_name && self.take(name.len() + value.len() + HEADER_BYTES) {
            let name = name.to_ascii_uppercase();
            self.names.insert(name.clone());
            self.tags.push((name, value.to_owned()));
        }
    }

    /// Adds tags, except those whose names are already present. Several of the new tags may share a name.
    fn push_new_tags(&mut self, tags: impl IntoIterator<Item = (String, String)>) {
        let mut tags = Vec::from_iter(tags);
        tags.retain(|(name, _)| !self.names.contains(&name.to_ascii_uppercase()));
        tags.iter().for_each(|(name, value)| self.push_tag(name, value));
    }

    /// Removes the speaker positions from the tags, where FLAC stores them, and returns them.
    pub(super) fn take_channel_mask(&mut self) -> Option<u32> {
        let place = self.tags.iter().position(|(name, _)| name == CHANNEL_MASK)?;
        self.names.remove(CHANNEL_MASK);
        mask_of(&self.tags.remove(place).1)
    }

    /// Adds a title unless there is one.
    pub(super) fn set_title(&mut self, title: &str) {
        self.push_new_tags([(TITLE.to_owned(), title.to_owned())]);
    }

    /// Adds `bytes` to the size of the metadata, if they fit within the limit.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= MAX_BYTES - self.bytes;
        if fits {
            self.bytes += bytes;
        }
        fits
    }

    /// Keeps a chunk of a WAV file if it describes the recording; reads no more of `body` than it needs.
    pub(super) fn read_chunk(
        &mut self,
        name: [u8; 4],
        length: u64,
        body: &mut impl Read,
    ) -> Result<(), ReadError> {
        let is_name = name.iter().all(|byte| (0x20..0x7f).contains(byte));
        let wanted = is_name && !STRUCTURE.contains(&&name) && length <= MAX_BYTES as u64;
        if wanted && self.take(length as usize + HEADER_BYTES) {
            let mut bytes = Vec::new();
            body.take(length).read_to_end(&mut bytes).map_err(ReadError::Io)?;
            if bytes.len() as u64 == length {
                self.push_chunk(name, bytes);
            }
        }
        Ok(())
    }

    fn push_chunk(&mut self, name: [u8; 4], bytes: Vec<u8>) {
        if &name == b"LIST" && bytes.starts_with(b"INFO") {
            for (chunk, text) in texts(&bytes[4..]) {
                if let Some((name, _)) = INFORMATION.iter().find(|(_, known)| **known == chunk) {
                    self.push_tag(name, &text);
                }
            }
        }
        if name.eq_ignore_ascii_case(b"id3 ") {
            self.push_new_tags(id3::texts(&bytes));
        }
        self.chunks.push((name, bytes));
    }

    /// Adds a picture as a block of a FLAC file.
    fn push_picture(&mut self, kind: u32, media_type: &str, image: &[u8]) {
        let length = |bytes: usize| (bytes as u32).to_be_bytes();
        let (media_type, image_length) = (media_type.as_bytes(), length(image.len()));
        // Without a description, dimensions or colours.
        let body =
            [&kind.to_be_bytes(), &length(media_type.len())[..], media_type, &[0; 20], &image_length, image]
                .concat();
        if body.len() <= MAX_BLOCK && self.take(body.len()) {
            self.blocks.push((PICTURE, body));
        }
    }

    /// Number of pictures, which only FLAC files can hold.
    #[must_use]
    pub fn pictures(&self) -> usize {
        self.blocks.iter().filter(|(kind, _)| *kind == PICTURE).count()
    }

    /// Keeps the ID3 tag before a WAV file.
    pub(super) fn push_id3(&mut self, tag: Vec<u8>) {
        if self.take(tag.len()) {
            self.push_new_tags(id3::texts(&tag));
            self.chunks.push((*b"id3 ", tag));
        }
    }

    /// Reads the metadata from a demuxer: those of the whole file, and those of the track with this identifier in
    /// Matroska tags.
    pub(super) fn of_demuxer(reader: &mut dyn FormatReader, uid: Option<u64>) -> Self {
        let mut this = Self::default();
        let is = |format| reader.format_info().format == format;
        let (is_matroska, is_aiff) = (is(FORMAT_ID_MKV), is(FORMAT_ID_AIFF));
        let mut found = reader.metadata();
        // Matroska has one revision per element; an MP3 with both versions of ID3 has two, the first with more tags.
        while let Some(revision) = found.current() {
            for visual in &revision.media.visuals {
                const FRONT_COVER: u32 = 3;
                const OTHER: u32 = 0;
                let is_front = visual.usage == Some(StandardVisualKey::FrontCover);
                let kind = if is_front || revision.media.visuals.len() == 1 { FRONT_COVER } else { OTHER };
                this.push_picture(kind, visual.media_type.as_deref().unwrap_or_default(), &visual.data);
            }
            let of_tracks = revision.per_track.iter().filter(|of| uid == Some(of.track_id));
            let tags = revision.media.tags.iter().chain(of_tracks.flat_map(|track| &track.metadata.tags));
            let tags: Vec<&Tag> = tags.collect();
            let levels = matroska::Levels::of(&tags);
            let named = tags.into_iter().flat_map(|tag| {
                let name = if is_matroska { levels.name(tag) } else { Some(name_of(tag)) };
                let values = name.map_or_else(Vec::new, |_| values_of(tag, is_aiff));
                values.into_iter().map(move |value| (name.unwrap_or_default().to_owned(), value))
            });
            let mut named: Vec<_> = named.collect();
            // Removes duplicates, for example of several levels of Matroska.
            let mut seen = HashSet::new();
            named.retain(|tag| seen.insert(tag.clone()));
            this.push_new_tags(named);
            if found.pop().is_none() {
                break;
            }
        }
        this
    }

    /// Reads metadata and speaker positions from the blocks at the start of a FLAC stream, and no further.
    ///
    /// The decoder reports damage.
    pub(super) fn of_flac(start: &mut impl Read) -> io::Result<(Self, Option<u32>)> {
        let (mut this, mut channel_mask) = (Self::default(), None);
        let mut mark = [0; 4];
        start.read_exact(&mut mark)?;
        loop {
            let mut header = [0; 4];
            start.read_exact(&mut header)?;
            let length = u32::from_be_bytes([0, header[1], header[2], header[3]]).into();
            let mut body = start.by_ref().take(length);
            let kind = header[0] & 0x7f;
            let is_kept = match kind {
                // Comments count as tags.
                VORBIS_COMMENT => true,
                APPLICATION | CUE_SHEET | PICTURE => this.take(length as usize),
                _ => false,
            };
            if is_kept {
                let mut bytes = Vec::new();
                body.read_to_end(&mut bytes)?;
                match kind {
                    VORBIS_COMMENT => {
                        for (name, value) in comments(&bytes) {
                            if name.eq_ignore_ascii_case(CHANNEL_MASK) {
                                channel_mask = mask_of(&value);
                            } else {
                                this.push_tag(&name, &value);
                            }
                        }
                    }
                    _ => this.blocks.push((kind, bytes)),
                }
            }
            io::copy(&mut body, &mut io::sink())?;
            if header[0] & 0x80 != 0 {
                return Ok((this, channel_mask));
            }
        }
    }

    /// Chunks for a WAV file, each of even length.
    pub(super) fn to_chunks(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut add = |name: &[u8; 4], body: &[u8]| {
            bytes.extend(name);
            bytes.extend((body.len() as u32).to_le_bytes());
            bytes.extend(body);
            bytes.resize(bytes.len().next_multiple_of(2), 0);
        };
        let (mut listed, mut has_id3) = (None::<HashSet<String>>, false);
        let kept = self.blocks.iter().filter(|(kind, _)| *kind == APPLICATION).filter_map(|(_, body)| {
            let mut chunk = RiffChunks(body.strip_prefix(RIFF)?);
            chunk.next().filter(|(name, _)| !STRUCTURE.contains(&name))
        });
        for (name, body) in self.chunks.iter().map(|(name, body)| (*name, &body[..])).chain(kept) {
            if &name == b"LIST" && body.starts_with(b"INFO") {
                listed.get_or_insert_default().extend(texts(&body[4..]).map(|(_, text)| text));
            }
            has_id3 |= name.eq_ignore_ascii_case(b"id3 ");
            add(&name, body);
        }
        let mut list = b"INFO".to_vec();
        for (name, value) in &self.tags {
            if let Some((_, chunk)) = information(name) {
                list.extend(*chunk);
                list.extend((value.len() as u32 + 1).to_le_bytes());
                list.extend(value.as_bytes());
                list.push(0);
                list.resize(list.len().next_multiple_of(2), 0);
            }
        }
        if listed.is_none() && list.len() > 4 {
            add(b"LIST", &list);
        }
        // A list that is kept byte for byte takes no further tags: these go into an ID3 tag.
        let others = self.tags().filter(|(name, value)| match information(name) {
            Some(_) => listed.as_ref().is_some_and(|listed| !listed.contains(*value)),
            None => true,
        });
        let id3 = id3::tag(others);
        if !has_id3 && !id3.is_empty() {
            add(b"id3 ", &id3);
        }
        bytes
    }

    /// Returns the blocks at the end of a FLAC header; `channel_mask` is `None` for default speaker positions.
    pub(super) fn to_blocks(&self, channel_mask: Option<u32>) -> Vec<u8> {
        let mut blocks: Vec<(u8, Vec<u8>)> = self.blocks.clone();
        for (name, body) in &self.chunks {
            let length = (body.len() as u32).to_le_bytes();
            blocks.push((APPLICATION, [RIFF, &name[..], &length, body].concat()));
        }
        let mask = channel_mask.map(|mask| format!("{CHANNEL_MASK}=0x{mask:04X}"));
        let comments: Vec<String> =
            self.tags.iter().map(|(name, value)| format!("{name}={value}")).chain(mask).collect();
        if !comments.is_empty() {
            let mut body = Vec::new();
            let encoder = concat!("alphamf ", env!("CARGO_PKG_VERSION"));
            body.extend((encoder.len() as u32).to_le_bytes());
            body.extend(encoder.as_bytes());
            body.extend((comments.len() as u32).to_le_bytes());
            for comment in comments {
                body.extend((comment.len() as u32).to_le_bytes());
                body.extend(comment.as_bytes());
            }
            blocks.push((VORBIS_COMMENT, body));
        }
        blocks.retain(|(_, body)| body.len() <= MAX_BLOCK);
        let last = blocks.len().wrapping_sub(1);
        let mut bytes = Vec::new();
        for (index, (kind, body)) in blocks.iter().enumerate() {
            bytes.push(kind | if index == last { 0x80 } else { 0 });
            bytes.extend(&(body.len() as u32).to_be_bytes()[1..]);
            bytes.extend(body);
        }
        bytes
    }
}

/// Parses a comment with a channel mask.
fn mask_of(value: &str) -> Option<u32> {
    u32::from_str_radix(value.trim_start_matches("0x").trim_start_matches("0X"), 16).ok()
}

/// The chunk of an `INFO` list for a Vorbis comment.
fn information(name: &str) -> Option<&'static (&'static str, &'static [u8; 4])> {
    INFORMATION.iter().find(|(known, _)| *known == name)
}

/// Returns the values of a tag. The demuxer of AIFF decodes all texts as Latin-1.
fn values_of(tag: &Tag, is_aiff: bool) -> Vec<String> {
    match &tag.raw.value {
        RawValue::String(value) if is_aiff => {
            vec![text::mended(value).unwrap_or_else(|| value.to_string())]
        }
        RawValue::String(value) => vec![value.to_string()],
        RawValue::StringList(values) => values.to_vec(),
        RawValue::UnsignedInt(value) => vec![value.to_string()],
        RawValue::SignedInt(value) => vec![value.to_string()],
        _ => Vec::new(),
    }
}

/// The name of a tag in Vorbis comments.
fn name_of(tag: &Tag) -> &str {
    /// Frames of ID3 for custom tags, whose name is stored beside the value.
    const NAMED_BESIDE: [&str; 2] = ["TXXX", "TXX"];
    const NAME: &str = "DESCRIPTION";
    let beside = || {
        let mut fields = tag.raw.sub_fields.iter().flatten();
        let field = fields.find(|field| field.field == NAME)?;
        match &field.value {
            RawValue::String(name) if NAMED_BESIDE.contains(&tag.raw.key.as_str()) => Some(name.as_str()),
            _ => None,
        }
    };
    let of_id3 = || id3::comment_name(&tag.raw.key);
    tag.std.as_ref().and_then(standard_name).or_else(beside).or_else(of_id3).unwrap_or(&tag.raw.key)
}

/// The name in Vorbis comments of a tag that other formats name differently.
fn standard_name(tag: &symphonia::core::meta::StandardTag) -> Option<&'static str> {
    use symphonia::core::meta::StandardTag as Tag;
    Some(match tag {
        Tag::TrackTitle(_) => TITLE,
        Tag::Artist(_) => "ARTIST",
        Tag::Album(_) => "ALBUM",
        Tag::AlbumArtist(_) => "ALBUMARTIST",
        Tag::Comment(_) => "COMMENT",
        Tag::Composer(_) => "COMPOSER",
        Tag::Copyright(_) => "COPYRIGHT",
        Tag::Description(_) => "DESCRIPTION",
        Tag::Genre(_) => "GENRE",
        Tag::TrackNumber(_) => "TRACKNUMBER",
        Tag::ReleaseDate(_) | Tag::RecordingDate(_) => "DATE",
        _ => return None,
    })
}

/// Iterator over the complete chunks of a list.
struct RiffChunks<'a>(&'a [u8]);

impl<'a> Iterator for RiffChunks<'a> {
    type Item = ([u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.0.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let body = rest.get(..length)?;
        self.0 = rest.get(length.next_multiple_of(2)..).unwrap_or_default();
        Some((*name, body))
    }
}

/// Returns the texts of an `INFO` list. A zero ends each text; some programs leave arbitrary bytes after it.
fn texts(list: &[u8]) -> impl Iterator<Item = ([u8; 4], String)> {
    let text = |text: &[u8]| text::decoded(text.split(|byte| *byte == 0).next().unwrap_or_default());
    RiffChunks(list).map(move |(name, bytes)| (name, text(bytes)))
}

/// Complete comments of a block.
fn comments(mut bytes: &[u8]) -> Vec<(String, String)> {
    /// Reads a text that follows its length.
    fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        *bytes = rest;
        Some(text)
    }
    let _encoder = text(&mut bytes);
    // The number of comments is not needed.
    bytes = bytes.get(4..).unwrap_or_default();
    let mut found = Vec::new();
    while let Some(comment) = text(&mut bytes) {
        if let Some((name, value)) = String::from_utf8_lossy(comment).split_once('=') {
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn texts_of_a_tag_are_added_under_names_that_are_not_taken() {
        let mut metadata = Metadata::default();
        metadata.push_tag("title", "first");
        let later = [("TITLE", "second"), ("MOOD", "glad"), ("MOOD", "sad")];
        metadata.push_chunk(*b"id3 ", id3::tag(later.into_iter()));
        metadata.set_title("third");
        let expected = [("TITLE", "first"), ("MOOD", "glad"), ("MOOD", "sad")];
        assert!(metadata.tags().eq(expected), "{:?}", metadata.tags);
    }

    #[test]
    fn comments_count_once_towards_the_limit() {
        let mut metadata = Metadata::default();
        metadata.push_tag("COMMENT", &"x".repeat(MAX_BYTES / 2));
        let last = metadata.to_blocks(None);
        let first = [&[last[0] & 0x7f][..], &last[1..]].concat();
        // The second of two such blocks is beyond the limit.
        for blocks in [last.clone(), [first, last].concat()] {
            let bytes = [b"fLaC", &blocks[..]].concat();
            assert_eq!(Metadata::of_flac(&mut &bytes[..]).unwrap().0.tags().count(), 1);
        }
    }

    /// Lists of all names for each chunk would take minutes.
    #[test]
    fn many_tags_and_many_chunks_take_no_longer_together() {
        let start = Instant::now();
        let mut metadata = Metadata::default();
        (0..1 << 16).for_each(|n| metadata.push_tag(&format!("N{n}"), "v"));
        let chunk = id3::tag([("N7", "again")].into_iter());
        (0..1 << 16).for_each(|_| metadata.push_chunk(*b"id3 ", chunk.clone()));
        assert_eq!(metadata.tags().count(), 1 << 16);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}
