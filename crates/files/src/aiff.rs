//! AIFF-C samples that the demuxer rejects.

/// Compression types of little-endian samples, with their bits and the big-endian types, from Apple and libsndfile.
const LITTLE_ENDIAN: [(&[u8; 4], u16, &[u8; 4]); 3] =
    [(b"sowt", 24, b"in24"), (b"sowt", 32, b"in32"), (b"42n1", 24, b"in24")];

/// Finds the compression type of little-endian samples of 24 or 32 bits, which the demuxer rejects. Returns its
/// position and eight replacement bytes that declare big-endian samples of this width.
pub(super) fn little_endian(start: &[u8]) -> Option<(u64, [u8; 8])> {
    if !start.starts_with(b"FORM") || start.get(8..12) != Some(b"AIFC") {
        return None;
    }
    let mut at = 12;
    loop {
        let chunk = start.get(at..)?;
        let length = u32::from_be_bytes(*chunk.get(4..)?.first_chunk()?) as usize;
        if chunk.starts_with(b"COMM") {
            let bits = u16::from_be_bytes(*chunk.get(14..)?.first_chunk()?);
            let mut bytes: [u8; 8] = *chunk.get(26..)?.first_chunk()?;
            let is_this = |(name, of, _): &&(&[u8; 4], u16, _)| bytes.starts_with(*name) && bits == *of;
            let (_, _, big_endian) = LITTLE_ENDIAN.iter().find(is_this)?;
            bytes[..4].copy_from_slice(*big_endian);
            return Some((at as u64 + 26, bytes));
        }
        at = at.checked_add(8)?.checked_add(length)?.checked_add(length % 2)?;
    }
}
