//! Headers of WAV files and related formats: RIFF, RF64 and BW64 (above 4 GiB; EBU Tech 3306, ITU-R BS.2088),
//! big-endian RIFX, Sony's Wave64 and Sun's AU.
//!
//! `hound` 3.5 lacks RF64, RIFX, Wave64, AU, tags, 64-bit float, G.711, chosen speaker positions, open lengths and
//! pipes as output. Every output needs one of them: tags, or space in the header for RF64. Tests compare plain files
//! with `hound`.

mod trailer;

use super::error::ReadError;
use super::metadata::Metadata;
use super::sample::{Encoding, Kind};
use super::source::{self, array_at};
use super::spec::OutputSpec;
use alphamf_signal::{SampleFormat, check_channels, check_sample_rate};
use std::io::{self, Read, Seek, SeekFrom};
use trailer::is_name;
pub(super) use trailer::{Next, Rest, Trailer, read_trailer};

const PCM: u16 = 0x0001;
const IEEE_FLOAT: u16 = 0x0003;
const A_LAW: u16 = 0x0006;
const MU_LAW: u16 = 0x0007;
const ADPCM_TAGS: [u16; 2] = [0x0002, 0x0011];
const EXTENSIBLE: u16 = 0xfffe;
/// The end of every GUID of `WAVEFORMATEXTENSIBLE`, after the format tag.
const GUID_TAIL: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];

/// Reason for rejecting ADPCM here, which the decoders of `compressed` read.
pub(super) const ADPCM: &str = "ADPCM";

/// Default speaker positions of one channel (centre) and of two (left and right), which headers omit.
const MONO: u32 = 0x4;
const STEREO: u32 = 0x3;

/// A length that is stored elsewhere (RF64) or unknown (stream: until its end).
const OPEN_LENGTH: u32 = u32::MAX;

/// Lengths that recorders and converters write before the length is known.
const PLACEHOLDERS: std::ops::RangeInclusive<u32> = 0x7fff_f000..=0x8000_0000;

/// Last bytes of the chunk identifiers of Wave64, whose first four bytes are those of RIFF.
const WAVE64_RIFF: [u8; 12] = *b"\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00";
const WAVE64_TAIL: [u8; 12] = *b"\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a";

/// Contents of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WavHeader {
    pub(super) sample_rate: u32,
    pub(super) channels: usize,
    pub(super) encoding: Encoding,
    /// Samples per channel; `None` if they extend to the end of the file.
    pub(super) length: Option<u64>,
    /// Speaker positions, as the bits of `dwChannelMask`, if the header has them.
    pub(super) channel_mask: Option<u32>,
    pub(super) metadata: Metadata,
    /// Part of the file after the samples, if it can have further chunks.
    pub(super) rest: Option<Rest>,
    /// Declared length of the samples, bytes, if it is one of [`PLACEHOLDERS`].
    pub(super) placeholder_bytes: Option<u64>,
}

/// A 32-bit number.
fn word(bytes: &[u8], big_endian: bool) -> u32 {
    let word = u32_at(bytes, 0);
    if big_endian { word.swap_bytes() } else { word }
}

/// Whether a file with these first bytes is a WAV file.
pub(super) fn is_wav(start: &[u8]) -> bool {
    start.len() >= 12
        && matches!(&start[..4], b"RIFF" | b"RF64" | b"BW64" | b"RIFX")
        && &start[8..12] == b"WAVE"
}

/// Whether a file with these first bytes is a Wave64 file.
pub(super) fn is_wave64(start: &[u8]) -> bool {
    start.len() >= 12 && &start[..4] == b"riff" && start[4..12] == WAVE64_RIFF[..8]
}

/// Whether a file with these first bytes is an AU file.
pub(super) fn is_au(start: &[u8]) -> bool {
    start.starts_with(b".snd")
}

/// Reads a header, up to the first byte of the samples.
pub(super) fn read_header(bytes: &mut impl Read) -> Result<WavHeader, ReadError> {
    read_chunks(bytes, false)
}

/// Reads a header for its metadata when another decoder reads the samples, which count as bytes of any kind.
pub(super) fn read_header_of_bytes(bytes: &mut impl Read) -> Result<WavHeader, ReadError> {
    read_chunks(bytes, true)
}

fn read_chunks(bytes: &mut impl Read, of_bytes: bool) -> Result<WavHeader, ReadError> {
    let riff: [u8; 12] = array(bytes)?;
    if !is_wav(&riff) {
        return Err(not_audio("no RIFF WAVE header"));
    }
    let big_endian = &riff[..4] == b"RIFX";
    let riff_length = word(&riff[4..], big_endian);
    let mut position = 12_u64;
    let mut data_length_64 = None;
    let mut format: Option<Format> = None;
    let mut metadata = Metadata::default();
    loop {
        let chunk: [u8; 8] = array(bytes)?;
        let length = word(&chunk[4..], big_endian);
        position += 8;
        let mut body = bytes.by_ref().take(u64::from(length) + u64::from(length % 2));
        match &chunk[..4] {
            b"ds64" if length >= 16 => {
                let sizes: [u8; 16] = array(&mut body)?;
                data_length_64 = Some(u64_at(&sizes, 8));
            }
            b"fmt " if of_bytes => format = Some(Format::BYTES),
            b"fmt " => format = Some(read_format(length.into(), &mut body, big_endian)?),
            b"data" => {
                let format = format.ok_or_else(|| not_audio("its data come before their format"))?;
                // An interrupted or streaming writer leaves zeros or its first value there.
                let is_open =
                    riff_length == 0 || riff_length == OPEN_LENGTH || u64::from(riff_length) + 8 <= position;
                let data_bytes = data_bytes(length, data_length_64, is_open);
                let frame_bytes = (format.encoding.bytes() * format.channels) as u64;
                let rest = data_bytes.map(|bytes| Rest::behind(bytes, frame_bytes, big_endian));
                let mut header = format.header(data_bytes.map(|bytes| bytes / frame_bytes), metadata, rest);
                header.placeholder_bytes = PLACEHOLDERS.contains(&length).then(|| length.into());
                return Ok(header);
            }
            name => {
                // Big-endian numbers in chunks would be wrong in the little-endian files that are written.
                if let (Some(name), false) = (name.first_chunk::<4>(), big_endian) {
                    metadata.read_chunk(*name, length.into(), &mut body)?;
                }
            }
        }
        io::copy(&mut body, &mut io::sink()).map_err(ReadError::Io)?;
        if body.limit() > 0 {
            return Err(not_audio("it ends within its header"));
        }
        position += u64::from(length) + u64::from(length % 2);
    }
}

/// Bytes of samples, from the lengths in the `data` and `ds64` chunks. `None` if the samples extend to the end of the
/// file, as with a length of zero if the length of the file `is_open`.
fn data_bytes(length: u32, length_64: Option<u64>, is_open: bool) -> Option<u64> {
    match (length, length_64) {
        (OPEN_LENGTH, Some(length)) if length > 0 => Some(length),
        (OPEN_LENGTH, _) => None,
        (0, _) if is_open => None,
        (length, _) if PLACEHOLDERS.contains(&length) => None,
        (length, _) => Some(u64::from(length)),
    }
}

/// Accepts a length that may be a placeholder, if the file ends there or another chunk follows. The file must be at its
/// first sample; restores this position.
pub(super) fn confirm_length(file: &mut (impl Read + Seek), header: &mut WavHeader) -> io::Result<()> {
    let Some(data_bytes) = header.placeholder_bytes else { return Ok(()) };
    let start = file.stream_position()?;
    let (behind, end) = (start.saturating_add(data_bytes), file.seek(SeekFrom::End(0))?);
    let mut name = Vec::new();
    if behind < end {
        file.seek(SeekFrom::Start(behind + data_bytes % 2))?;
        file.by_ref().take(4).read_to_end(&mut name)?;
    }
    file.seek(SeekFrom::Start(start))?;
    if behind == end || name.len() == 4 && is_name(&name) {
        let frame_bytes = (header.encoding.bytes() * header.channels) as u64;
        header.length = Some(data_bytes / frame_bytes);
        header.rest = Some(Rest::behind(data_bytes, frame_bytes, header.encoding.big_endian));
    }
    Ok(())
}

/// Reads the header of a Wave64 file, up to the first byte of the samples.
pub(super) fn read_wave64_header(bytes: &mut impl Read) -> Result<WavHeader, ReadError> {
    let start: [u8; 40] = array(bytes)?;
    if !is_wave64(&start) || start[4..16] != WAVE64_RIFF || &start[24..28] != b"wave" {
        return Err(not_audio("no Wave64 header"));
    }
    let mut format: Option<Format> = None;
    loop {
        let chunk: [u8; 24] = array(bytes)?;
        // The length includes the header of the chunk; chunks are padded to eight bytes.
        let length = u64_at(&chunk, 16)
            .checked_sub(24)
            .ok_or_else(|| not_audio("a chunk of it is shorter than its own header"))?;
        if chunk[4..16] == WAVE64_TAIL && &chunk[..4] == b"data" {
            let format = format.ok_or_else(|| not_audio("its data come before their format"))?;
            let frame_bytes = (format.encoding.bytes() * format.channels) as u64;
            // Writers to a pipe leave zero or the largest length.
            let length = Some(length / frame_bytes).filter(|&n| n > 0 && length < u64::MAX / 4);
            return Ok(format.header(length, Metadata::default(), None));
        }
        let mut body = bytes.by_ref().take(length.saturating_add(7) / 8 * 8);
        if chunk[4..16] == WAVE64_TAIL && &chunk[..4] == b"fmt " {
            format = Some(read_format(length, &mut body, false)?);
        }
        io::copy(&mut body, &mut io::sink()).map_err(ReadError::Io)?;
        if body.limit() > 0 {
            return Err(not_audio("it ends within its header"));
        }
    }
}

/// Reads the header of an AU file, up to the first byte of the samples.
pub(super) fn read_au_header(bytes: &mut impl Read) -> Result<WavHeader, ReadError> {
    let start: [u8; 24] = array(bytes)?;
    let [offset, data_bytes, encoding, sample_rate, channels] =
        [4, 8, 12, 16, 20].map(|at| u32_at(&start, at).swap_bytes());
    check_sample_rate(sample_rate)?;
    let channels = channels as usize;
    check_channels(channels)?;
    let kind = match encoding {
        1 => Kind::MuLaw,
        2 => Kind::Signed8,
        3 => Kind::Signed16,
        4 => Kind::Signed24,
        5 => Kind::Signed32,
        6 => Kind::Float32,
        7 => Kind::Float64,
        27 => Kind::ALaw,
        other => return Err(ReadError::Unsupported(format!("AU encoding {other}"))),
    };
    let comment =
        u64::from(offset).checked_sub(24).ok_or_else(|| not_audio("its samples begin within its header"))?;
    let skipped = io::copy(&mut bytes.by_ref().take(comment), &mut io::sink()).map_err(ReadError::Io)?;
    if skipped < comment {
        return Err(not_audio("it ends within its header"));
    }
    let encoding = Encoding { kind, big_endian: true };
    let frame_bytes = (encoding.bytes() * channels) as u64;
    // Writers to a pipe leave the largest length, interrupted recorders leave zero.
    let length = (![0, OPEN_LENGTH].contains(&data_bytes)).then(|| u64::from(data_bytes) / frame_bytes);
    let metadata = Metadata::default();
    Ok(WavHeader {
        sample_rate,
        channels,
        encoding,
        length,
        channel_mask: None,
        metadata,
        rest: None,
        placeholder_bytes: None,
    })
}

/// Contents of a format chunk.
struct Format {
    sample_rate: u32,
    channels: usize,
    encoding: Encoding,
    channel_mask: Option<u32>,
}

impl Format {
    const BYTES: Self = Self {
        sample_rate: 8_000,
        channels: 1,
        encoding: Encoding { kind: Kind::Unsigned8, big_endian: false },
        channel_mask: None,
    };

    fn header(self, length: Option<u64>, metadata: Metadata, rest: Option<Rest>) -> WavHeader {
        let Self { sample_rate, channels, encoding, channel_mask } = self;
        WavHeader {
            sample_rate,
            channels,
            encoding,
            length,
            channel_mask,
            metadata,
            rest,
            placeholder_bytes: None,
        }
    }
}

fn read_format(length: u64, body: &mut impl Read, big_endian: bool) -> Result<Format, ReadError> {
    if length < 16 {
        return Err(not_audio("its format chunk is shorter than 16 bytes"));
    }
    let format: [u8; 16] = array(body)?;
    let half = |bytes: &[u8], at: usize| {
        let half = u16_at(bytes, at);
        if big_endian { half.swap_bytes() } else { half }
    };
    let [tag, channels, frame_bytes, bits] = [0, 2, 12, 14].map(|at| half(&format, at));
    let sample_rate = word(&format[4..], big_endian);
    check_sample_rate(sample_rate)?;
    let (tag, channel_mask) = if tag == EXTENSIBLE && length >= 40 {
        let extension: [u8; 24] = array(body)?;
        if extension[10..] != GUID_TAIL {
            return Err(ReadError::Unsupported("a WAV subformat other than Microsoft's".into()));
        }
        (half(&extension, 8), Some(word(&extension[4..], big_endian)))
    } else {
        (tag, None)
    };
    if channels == 0 {
        return Err(not_audio("it has no channels"));
    }
    let channels = usize::from(channels);
    check_channels(channels)?;
    let sample_bytes = usize::from(frame_bytes) / channels;
    let kind = match (tag, bits, sample_bytes) {
        (PCM, 24, 4) => Kind::Signed24In32,
        (PCM, 1..=8, 1) => Kind::Unsigned8,
        (PCM, 9..=16, 2) => Kind::Signed16,
        (PCM, 17..=24, 3) => Kind::Signed24,
        (PCM, 25..=32, 4) => Kind::Signed32,
        (IEEE_FLOAT, 32, 4) => Kind::Float32,
        (IEEE_FLOAT, 64, 8) => Kind::Float64,
        (A_LAW, 8, 1) => Kind::ALaw,
        (MU_LAW, 8, 1) => Kind::MuLaw,
        (tag, ..) if ADPCM_TAGS.contains(&tag) && !big_endian => {
            return Err(ReadError::Unsupported(ADPCM.into()));
        }
        (tag, bits, bytes) => {
            return Err(ReadError::Unsupported(format!(
                "WAV format {tag:#06x} with {bits} bits in {bytes} bytes a sample"
            )));
        }
    };
    Ok(Format { sample_rate, channels, encoding: Encoding { kind, big_endian }, channel_mask })
}

/// Creates a header for the samples of `spec`, with an even number of bytes.
///
/// `samples` is the length per channel, `None` if it is unknown and cannot be filled in later. `reserve` adds space for
/// the 64-bit lengths of RF64, which replaces RIFF above 4 GiB. The header contains `chunks`; `behind` is the number of
/// bytes of the chunks after the samples.
pub(super) fn header(
    spec: &OutputSpec,
    samples: Option<u64>,
    reserve: bool,
    chunks: &[u8],
    behind: usize,
) -> Vec<u8> {
    let format = spec.format;
    let frame_bytes = spec.channels as u32 * u32::from(format.bits() / 8);
    let fmt = format_chunk(spec, frame_bytes);
    let fact = !format.is_integer();

    const DS64: u32 = 28;
    let header_bytes = 12
        + if reserve { 8 + u64::from(DS64) } else { 0 }
        + (8 + fmt.len() as u64)
        + if fact { 12 } else { 0 }
        + chunks.len() as u64
        + 8;
    let data_bytes = samples.map(|samples| samples * u64::from(frame_bytes));
    let riff_bytes = data_bytes.map(|data| header_bytes - 8 + data + data % 2 + behind as u64);
    let short =
        |length: Option<u64>| length.and_then(|length| u32::try_from(length).ok()).unwrap_or(OPEN_LENGTH);
    let rf64 = reserve && riff_bytes.is_some_and(|bytes| bytes > u64::from(OPEN_LENGTH) - 1);

    let mut header = Vec::with_capacity(128 + chunks.len());
    header.extend(if rf64 { b"RF64" } else { b"RIFF" });
    header.extend(if rf64 { OPEN_LENGTH } else { short(riff_bytes) }.to_le_bytes());
    header.extend(b"WAVE");
    if reserve {
        header.extend(if rf64 { b"ds64" } else { b"JUNK" });
        header.extend(DS64.to_le_bytes());
        let sizes = if rf64 { [riff_bytes, data_bytes, samples] } else { [None; 3] };
        for size in sizes {
            header.extend(size.unwrap_or(0).to_le_bytes());
        }
        header.extend([0; 4]); // no table of further chunks
    }
    header.extend(b"fmt ");
    header.extend((fmt.len() as u32).to_le_bytes());
    header.extend(fmt);
    if fact {
        header.extend(b"fact");
        header.extend(4_u32.to_le_bytes());
        header.extend(short(samples).to_le_bytes());
    }
    header.extend(chunks);
    header.extend(b"data");
    header.extend(if rf64 { OPEN_LENGTH } else { short(data_bytes) }.to_le_bytes());
    header
}

/// The body of a format chunk.
fn format_chunk(spec: &OutputSpec, frame_bytes: u32) -> Vec<u8> {
    let OutputSpec { sample_rate, format, .. } = *spec;
    let channels = spec.channels as u16;
    let tag = if format.is_integer() { PCM } else { IEEE_FLOAT };
    let channel_mask = spec.channel_mask.unwrap_or(0);
    let usual = matches!((channels, channel_mask), (1, 0 | MONO) | (2, 0 | STEREO));
    let extensible = !usual || (format.is_integer() && format.bits() > 16);
    let mut fmt = Vec::with_capacity(40);
    fmt.extend(if extensible { EXTENSIBLE } else { tag }.to_le_bytes());
    fmt.extend(channels.to_le_bytes());
    fmt.extend(sample_rate.to_le_bytes());
    fmt.extend(sample_rate.wrapping_mul(frame_bytes).to_le_bytes());
    fmt.extend((frame_bytes as u16).to_le_bytes());
    fmt.extend(format.bits().to_le_bytes());
    if extensible {
        fmt.extend(22_u16.to_le_bytes());
        fmt.extend(format.bits().to_le_bytes());
        fmt.extend(channel_mask.to_le_bytes());
        fmt.extend(tag.to_le_bytes());
        fmt.extend(GUID_TAIL);
    } else if tag != PCM {
        fmt.extend(0_u16.to_le_bytes());
    }
    fmt
}

/// Whether a plain header can hold the length of these samples, beside `chunk_bytes` bytes of other chunks.
pub(super) fn fits(samples: u64, channels: u16, format: SampleFormat, chunk_bytes: usize) -> bool {
    const HEADER: u64 = 128; // more than any header takes
    let frame_bytes = u64::from(channels) * u64::from(format.bits() / 8);
    samples.saturating_mul(frame_bytes) < u64::from(OPEN_LENGTH) - HEADER - chunk_bytes as u64
}

/// The next `N` bytes of a header.
fn array<const N: usize>(bytes: &mut impl Read) -> Result<[u8; N], ReadError> {
    source::array(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => not_audio("it ends within its header"),
        _ => ReadError::Io(error),
    })
}

fn not_audio(reason: &str) -> ReadError {
    ReadError::NotAudio(reason.into())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests;
