//! Where the tracks of an Ogg file end, which its demuxer does not tell once a page is damaged.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

/// The start of a page, and the bytes of its header that count here (RFC 3533, section 6).
const CAPTURE: &[u8; 4] = b"OggS";
const HEADER_BYTES: usize = 18;
/// More than the longest page has.
const TAIL_BYTES: u64 = 1 << 17;

/// The last granule position of every track in the last pages of a file, samples per channel from its start, by the number of the
/// track. Empty if it does not begin as Ogg.
pub(super) fn last_granules(file: &mut (impl Read + Seek)) -> io::Result<BTreeMap<u32, u64>> {
    let mut start = Vec::new();
    file.rewind()?;
    file.by_ref().take(CAPTURE.len() as u64).read_to_end(&mut start)?;
    if start != CAPTURE {
        return Ok(BTreeMap::new());
    }
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.by_ref().take(TAIL_BYTES).read_to_end(&mut tail)?;
    let mut found = BTreeMap::new();
    for header in tail.windows(HEADER_BYTES).filter(|window| window.starts_with(CAPTURE)) {
        let (Some(granule), Some(track)) = (header[6..].first_chunk(), header[14..].first_chunk()) else {
            continue;
        };
        // No packet ends on a page without one.
        let (granule, track) = (i64::from_le_bytes(*granule), u32::from_le_bytes(*track));
        let Ok(granule) = u64::try_from(granule) else { continue };
        found.insert(track, granule);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn page(track: u32, granule: i64) -> Vec<u8> {
        [&CAPTURE[..], &[0, 0], &granule.to_le_bytes(), &track.to_le_bytes(), &[7; 20]].concat()
    }

    #[test]
    fn the_last_page_of_each_track_counts() {
        let file = [page(1, 960), page(2, 5), page(1, 1_920), page(1, -1), vec![0; 9]].concat();
        assert_eq!(last_granules(&mut Cursor::new(&file)).unwrap(), BTreeMap::from([(1, 1_920), (2, 5)]));
        for length in 0..file.len() {
            last_granules(&mut Cursor::new(&file[..length])).unwrap();
        }
        let long = [page(1, 3), vec![0; 1 << 18], page(1, 99)].concat();
        assert_eq!(last_granules(&mut Cursor::new(&long)).unwrap(), BTreeMap::from([(1, 99)]));
        assert!(last_granules(&mut Cursor::new(&file[1..])).unwrap().is_empty());
    }
}
