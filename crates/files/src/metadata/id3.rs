//! Text frames of ID3v2 tags (versions 2.3 and 2.4), in which WAV files store texts that have no place in their `INFO`
//! list.

/// Frames and the names of Vorbis comments with the same meaning.
const FRAMES: [(&str, &[u8; 4]); 13] = [
    ("TITLE", b"TIT2"),
    ("ARTIST", b"TPE1"),
    ("ALBUM", b"TALB"),
    ("ALBUMARTIST", b"TPE2"),
    ("COMPOSER", b"TCOM"),
    ("GENRE", b"TCON"),
    ("DATE", b"TDRC"),
    ("DATE", b"TYER"),
    ("TRACKNUMBER", b"TRCK"),
    ("COPYRIGHT", b"TCOP"),
    ("LANGUAGE", b"TLAN"),
    ("ENCODED_BY", b"TENC"),
    ("ENCODER", b"TSSE"),
];
/// The frame of a text with a custom name.
const NAMED: &[u8; 4] = b"TXXX";
const COMMENT: &[u8; 4] = b"COMM";

const HEADER_BYTES: usize = 10;
const UTF_8: u8 = 3;

/// Returns the name of a Vorbis comment for a text frame.
pub(super) fn comment_name(frame: &str) -> Option<&'static str> {
    FRAMES.iter().find(|(_, known)| known.as_slice() == frame.as_bytes()).map(|(name, _)| *name)
}

/// Reads the complete texts of a tag, under the names of Vorbis comments. Returns none from tags with features that no
/// recorder uses (unsynchronisation, extended headers, compression).
pub(super) fn texts(tag: &[u8]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let Some((header, mut rest)) = tag.split_first_chunk::<HEADER_BYTES>() else { return found };
    let (version, flags) = (header[3], header[5]);
    if !header.starts_with(b"ID3") || !(3..=4).contains(&version) || flags & !0x10 != 0 {
        return found;
    }
    while let Some((frame, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let [a, b, c, d] = [4, 5, 6, 7].map(|at| usize::from(frame[at]));
        let size = if version == 4 { a << 21 | b << 14 | c << 7 | d } else { a << 24 | b << 16 | c << 8 | d };
        let Some((body, next)) = after.split_at_checked(size).filter(|_| frame[0] != 0) else { break };
        rest = next;
        let Some((encoding, body)) = body.split_first().filter(|_| frame[8..] == [0, 0]) else { continue };
        let name = frame.first_chunk::<4>().copied().unwrap_or_default();
        let known = FRAMES.iter().find(|(_, known)| **known == name).map(|(name, _)| (*name).to_owned());
        let text = match (known, &name) {
            (Some(name), _) => first(body, *encoding).map(|(value, _)| (name, value)),
            (None, NAMED) => first(body, *encoding)
                .and_then(|(name, body)| first(body, *encoding).map(|(value, _)| (name, value))),
            // After the language and a description.
            (None, COMMENT) => body
                .get(3..)
                .and_then(|body| first(body, *encoding))
                .and_then(|(_, body)| first(body, *encoding))
                .map(|(value, _)| ("COMMENT".to_owned(), value)),
            _ => None,
        };
        found.extend(text.filter(|(name, value)| !name.is_empty() && !value.is_empty()));
    }
    found
}

/// Returns the first text of a frame, and the bytes after its end.
fn first(bytes: &[u8], encoding: u8) -> Option<(String, &[u8])> {
    if matches!(encoding, 1 | 2) {
        let pairs = bytes.chunks_exact(2);
        let end = pairs.clone().position(|pair| pair == [0, 0]);
        let units = end.unwrap_or(pairs.len());
        let big = encoding == 2 || bytes.starts_with(&[0xfe, 0xff]);
        let unit = |pair: &[u8]| {
            let pair = [pair[0], pair[1]];
            if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        };
        let units: Vec<u16> = pairs.take(units).map(unit).filter(|unit| *unit != 0xfeff).collect();
        let after = end.map_or(bytes.len(), |end| 2 * end + 2);
        return Some((String::from_utf16_lossy(&units), bytes.get(after..)?));
    }
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = &bytes[..end.unwrap_or(bytes.len())];
    let text = match encoding {
        0 => text.iter().map(|&byte| char::from(byte)).collect(),
        UTF_8 => String::from_utf8_lossy(text).into_owned(),
        _ => return None,
    };
    Some((text, bytes.get(end.map_or(bytes.len(), |end| end + 1)..)?))
}

/// A tag of version 2.4 with these Vorbis comments; empty if there are none.
pub(super) fn tag<'a>(comments: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut frames = Vec::new();
    for (name, value) in comments {
        let known = FRAMES.iter().find(|(known, _)| *known == name);
        let (frame, body) = match known {
            Some((_, frame)) => (*frame, [&[UTF_8], value.as_bytes()].concat()),
            None => (NAMED, [&[UTF_8], name.as_bytes(), &[0], value.as_bytes()].concat()),
        };
        frames.extend(frame);
        frames.extend(synchsafe(body.len()));
        frames.extend([0, 0]);
        frames.extend(body);
    }
    if frames.is_empty() {
        return frames;
    }
    [b"ID3\x04\0\0", &synchsafe(frames.len())[..], &frames].concat()
}

/// Encodes a size of 28 bits, seven a byte.
fn synchsafe(size: usize) -> [u8; 4] {
    [21, 14, 7, 0].map(|shift| (size >> shift) as u8 & 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_written_are_read_again() {
        let comments = [("COMPOSER", "Jemand"), ("MOOD", "fröhlich"), ("LANGUAGE", "deu")];
        let bytes = tag(comments.into_iter());
        let expected: Vec<_> =
            comments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(texts(&bytes), expected);
        assert!(tag(std::iter::empty()).is_empty());
        for length in 0..bytes.len() {
            assert!(texts(&bytes[..length]).len() < 3, "{length} bytes");
        }
    }

    #[test]
    fn other_encodings_and_versions_are_read() {
        let frame = |name: &str, body: &[u8]| {
            [name.as_bytes(), &(body.len() as u32).to_be_bytes(), &[0, 0], body].concat()
        };
        let frames = [
            frame("TIT2", b"\x01\xff\xfeA\0\xfc\0"),
            frame("TPE2", b"\x02\0B\0\0\0C"),
            frame("COMM", b"\0engwhat\0said \xe4"),
            frame("APIC", b"\0image/png\0\x03\0..."),
        ];
        let tag = [b"ID3\x03\0\0\0\0\x02\0".as_slice(), &frames.concat(), &[0; 40]].concat();
        let expected = [("TITLE", "Aü"), ("ALBUMARTIST", "B"), ("COMMENT", "said ä")];
        assert_eq!(texts(&tag), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let unsynchronised = [b"ID3\x03\0\x80\0\0\x02\0".as_slice(), &frames.concat()].concat();
        assert!(texts(&unsynchronised).is_empty());
    }
}
