//! What the demuxer of Matroska leaves out: the title of a file, which is no tag there (RFC 9559, section 5.1.2).

use std::io::{self, Read, Seek, SeekFrom};

/// The elements on the way to it, and what begins the samples, behind which nobody looks.
const HEADER: u32 = 0x1a45_dfa3;
const SEGMENT: u32 = 0x1853_8067;
const INFO: u32 = 0x1549_a966;
const TITLE: u32 = 0x7ba9;
const CLUSTER: u32 = 0x1f43_b675;

/// More elements than any file has before its samples.
const MAX_ELEMENTS: usize = 1_000;
/// The longest title that is kept, bytes.
const LONGEST: u64 = 1 << 16;

/// The title of a file, if it has one that can be read.
pub(super) fn title(file: &mut (impl Read + Seek)) -> Option<String> {
    find(file).ok().flatten()
}

fn find(file: &mut (impl Read + Seek)) -> io::Result<Option<String>> {
    if number(file, true)? != u64::from(HEADER) {
        return Ok(None);
    }
    file.rewind()?;
    for _ in 0..MAX_ELEMENTS {
        let kind = u32::try_from(number(file, true)?).unwrap_or(0);
        let length = number(file, false)?;
        match kind {
            SEGMENT | INFO => {}
            TITLE if length <= LONGEST => {
                let mut bytes = vec![0; length as usize];
                file.read_exact(&mut bytes)?;
                let text = String::from_utf8_lossy(&bytes);
                return Ok(Some(text.trim_end_matches('\0').to_owned()).filter(|text| !text.is_empty()));
            }
            CLUSTER => return Ok(None),
            _ => {
                let Ok(length) = i64::try_from(length) else { return Ok(None) };
                file.seek(SeekFrom::Current(length))?;
            }
        }
    }
    Ok(None)
}

/// A number of variable size (RFC 8794, section 4), with the mark of its size, as in the names of elements, or without.
fn number(file: &mut impl Read, marked: bool) -> io::Result<u64> {
    let mut first = [0];
    file.read_exact(&mut first)?;
    let more = first[0].leading_zeros() as usize;
    let mut bytes = [0; 8];
    let Some(rest) = bytes.get_mut(1..=more) else {
        return Err(io::Error::other("a number of more than 8 bytes"));
    };
    file.read_exact(rest)?;
    bytes[0] = if marked { first[0] } else { first[0] & (0x7f >> more) };
    Ok(bytes[..=more].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn element(kind: u32, body: &[u8]) -> Vec<u8> {
        let kind = kind.to_be_bytes();
        let start = kind.iter().take_while(|byte| **byte == 0).count();
        [&kind[start..], &[0x40 | (body.len() >> 8) as u8, body.len() as u8], body].concat()
    }

    #[test]
    fn the_title_is_found_before_the_samples_alone() {
        let information =
            element(INFO, &[element(0x2a_d7b1, &[1; 3]), element(TITLE, b"A title\0")].concat());
        let header = element(HEADER, &[7; 300]);
        let file = |parts: &[&[u8]]| [header.clone(), element(SEGMENT, &parts.concat())].concat();
        let found = |file: Vec<u8>| title(&mut Cursor::new(file));
        let whole = file(&[&element(0xec, &[0; 40]), &information, &element(CLUSTER, &[0; 9])]);
        assert_eq!(found(whole.clone()).as_deref(), Some("A title"));
        assert_eq!(found(file(&[&element(CLUSTER, &[0; 9]), &information])), None);
        // Of unknown length, as in a stream.
        let stream = [&header, &[0x18, 0x53, 0x80, 0x67, 0x01][..], &[0xff; 7], &information].concat();
        assert_eq!(found(stream).as_deref(), Some("A title"));
    }

    #[test]
    fn what_is_cut_off_or_made_up_has_no_title() {
        let whole =
            [element(HEADER, &[]), element(SEGMENT, &element(INFO, &element(TITLE, b"A title")))].concat();
        for length in 0..whole.len() {
            assert_eq!(title(&mut Cursor::new(&whole[..length])), None, "{length} bytes");
        }
        for rest in
            [&[0; 16][..], &[0xff; 16], &[0x01; 16], &[0xec, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]
        {
            assert_eq!(title(&mut Cursor::new([&element(HEADER, &[]), rest].concat())), None);
        }
        // Empty elements without end.
        let many = [element(HEADER, &[]), [0xec, 0x80].repeat(MAX_ELEMENTS), element(TITLE, b"A")].concat();
        assert_eq!(title(&mut Cursor::new(many)), None);
    }
}
