//! Detection of spectral band replication in AAC that the container does not declare (implicit signalling, ISO/IEC
//! 14496-3, 1.6.5.2). The decoder of symphonia skips it, and its output is muffled and at half the sample rate.

/// Identifiers of the elements of a packet, 3 bits (ISO/IEC 14496-3, table 4.85).
const FILL: u32 = 6;
const END: u32 = 7;

/// Types of the content of a fill element, 4 bits (table 4.121).
const SBR_TYPES: [u32; 2] = [0xd, 0xe];
const OTHER_TYPES: [u32; 3] = [0x0, 0x1, 0xb];

/// Limit on the fill elements after the one with spectral band replication.
const MAX_FOLLOWING: u32 = 2;

/// Whether a packet ends with a fill element of spectral band replication. About one in a hundred packets without it
/// matches, too.
pub(super) fn has_sbr(packet: &[u8]) -> bool {
    let Some(last) = packet.last() else { return false };
    let end = 8 * packet.len() - last.trailing_zeros().min(8) as usize;
    end >= 3 && bits(packet, end - 3, 3) == END && ends_with_sbr(packet, end - 3, MAX_FOLLOWING)
}

/// Like [`has_sbr`], for elements that end at bit `end`, with at most `following` further fill elements.
fn ends_with_sbr(packet: &[u8], end: usize, following: u32) -> bool {
    (0..=14 + 255).any(|bytes: usize| {
        let header = if bytes < 15 { 7 } else { 15 };
        let Some(start) = end.checked_sub(header + 8 * bytes) else { return false };
        let is_fill = bits(packet, start, 3) == FILL
            && bits(packet, start + 3, 4) as usize == bytes.min(15)
            && (bytes < 15 || bits(packet, start + 7, 8) as usize == bytes - 14);
        if !is_fill {
            return false;
        }
        let kind = if bytes > 0 { bits(packet, start + header, 4) } else { 0 };
        let is_other = || following > 0 && OTHER_TYPES.contains(&kind);
        bytes > 0 && SBR_TYPES.contains(&kind) || is_other() && ends_with_sbr(packet, start, following - 1)
    })
}

/// Reads `count` bits from bit `start`.
fn bits(bytes: &[u8], start: usize, count: usize) -> u32 {
    (start..start + count).fold(0, |number, at| number << 1 | u32::from(bytes[at / 8] >> (7 - at % 8) & 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of random bits, then fill elements of these types and lengths in bytes, then its end.
    fn packet(length: usize, fills: &[(u32, usize)]) -> Vec<u8> {
        let mut state = length as u32;
        let mut bits: Vec<bool> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 31 == 1
            })
            .collect();
        let mut push = |number: usize, count: usize| {
            bits.extend((0..count).rev().map(|at| number >> at & 1 == 1));
        };
        for &(kind, bytes) in fills {
            push(6, 3);
            push(bytes.min(15), 4);
            if bytes >= 15 {
                push(bytes - 14, 8);
            }
            if bytes > 0 {
                push(kind as usize, 4);
                (0..8 * bytes - 4).for_each(|_| push(0, 1));
            }
        }
        push(7, 3);
        bits.resize(bits.len().next_multiple_of(8), false);
        bits.chunks(8).map(|byte| byte.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit))).collect()
    }

    #[test]
    fn band_replication_is_found_at_the_end() {
        for length in 400..480 {
            for bytes in [1, 2, 14, 15, 16, 100, 269] {
                assert!(has_sbr(&packet(length, &[(0xd, bytes)])), "{length} bits, {bytes} bytes");
                assert!(has_sbr(&packet(length, &[(0xe, bytes), (0, 0), (1, 20)])), "{length} bits");
            }
        }
    }

    #[test]
    fn packets_without_it_rarely_look_like_it() {
        let found = (400..4_400).filter(|&length| has_sbr(&packet(length, &[]))).count();
        assert!(found < 160, "{found} of 4000");
        let filled = (400..4_400).filter(|&length| has_sbr(&packet(length, &[(0, 9)]))).count();
        assert!(filled < 320, "{filled} of 4000");
        for bytes in [&[][..], &[0], &[0xe0], &[0; 9], &[0xff; 9]] {
            assert!(!has_sbr(bytes), "{bytes:?}");
        }
    }
}
