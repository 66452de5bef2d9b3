use super::*;

/// Frames of MPEG-1 layer III, 128 kbit/s at 44.1 kHz, or of AAC-LC, one channel at 16 kHz; each filled by its
/// number.
fn frames(is_adts: bool, count: u8) -> Vec<Vec<u8>> {
    let frame = |number: u8| {
        let header: &[u8] =
            if is_adts { &[0xff, 0xf1, 0x60, 0x40, 0x0a, 0x1f, 0xfc] } else { &[0xff, 0xfb, 0x90, 0x00] };
        let mut bytes = vec![number; if is_adts { 80 } else { 417 }];
        bytes[..header.len()].copy_from_slice(header);
        bytes
    };
    (1..=count).map(frame).collect()
}

fn mended(bytes: &[u8]) -> (Vec<u8>, u64, u64, bool) {
    let lost = Arc::<Lost>::default();
    let mut mended = MendedFrames::counting(bytes, Arc::clone(&lost));
    let mut result = Vec::new();
    mended.read_to_end(&mut result).unwrap();
    assert_eq!(survey(bytes).unwrap().is_damaged, lost.any());
    (result, lost.gaps.load(Relaxed), lost.samples.load(Relaxed), lost.ends_early.load(Relaxed))
}

/// A search of a megabyte for the end of each would take minutes.
#[test]
fn lyrics_without_an_end_are_damage() {
    let damaged: Vec<u8> =
        (0..1 << 12).flat_map(|_| [LYRICS.to_vec(), frames(true, 2).concat()].concat()).collect();
    let start = std::time::Instant::now();
    let (result, gaps, ..) = mended(&[frames(true, 3).concat(), damaged].concat());
    assert!(gaps > 1 << 11, "{gaps} gaps");
    assert!(!result.windows(LYRICS.len()).any(|bytes| bytes == LYRICS));
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn sound_streams_stay_what_they_are() {
    let mut tag = b"ID3\x03\0\0\0\0\x01\x02".to_vec();
    tag.resize(140, 7);
    let mut id3v1 = b"TAG".to_vec();
    id3v1.resize(128, b' ');
    for is_adts in [false, true] {
        let frames = frames(is_adts, 200).concat();
        let joined = [&tag[..], &frames, &id3v1, &tag, &frames, &id3v1].concat();
        for bytes in [&frames, &joined, &[&frames[..], b"LYRICSBEGIN"].concat(), &b"OggS and so on".to_vec()]
        {
            assert_eq!(mended(bytes), (bytes.clone(), 0, 0, false));
        }
    }
}

#[test]
fn tags_behind_frames_are_no_damage() {
    let mut id3v1 = b"TAG".to_vec();
    id3v1.resize(128, b' ');
    // Items, which may be longer than several frames, with a header and a footer.
    let ape = |has_header: bool, item_bytes: usize| {
        let size = (item_bytes as u32 + 32).to_le_bytes();
        let part = |flags: u32| {
            [&b"APETAGEX\xd0\x07\0\0"[..], &size, &[1, 0, 0, 0], &flags.to_le_bytes(), &[0; 8]].concat()
        };
        let header = if has_header { part(0xa000_0000) } else { Vec::new() };
        let footer = part(if has_header { 0x8000_0000 } else { 0 });
        [header, vec![b'x'; item_bytes], footer].concat()
    };
    let lyrics = [&b"LYRICSBEGININD0000210LYR03000"[..], &[b'a'; 3_000], b"003029LYRICS200"].concat();
    let text = [LYRICS, &[b'a'; 5_100], b"LYRICSEND"].concat();
    let tags = [ape(true, 40), ape(true, 9_000), ape(false, 9_000), lyrics.clone(), text, vec![0; 5_000]];
    for is_adts in [false, true] {
        let frames = frames(is_adts, 200).concat();
        for tag in &tags {
            let whole = [&frames[..], tag, &id3v1].concat();
            assert_eq!(mended(&whole), (whole.clone(), 0, 0, false));
            let samples = if is_adts { 200 * 1_024 } else { 200 * 1_152 };
            assert_eq!(survey(&whole[..]).unwrap().samples, Some(samples));
        }
        let mut declared = frames.clone();
        declared[36..40].copy_from_slice(b"Info");
        assert_eq!(survey(&declared[..]).unwrap().samples, None);
        for tag in [&tags[1], &[&lyrics[..], &id3v1].concat(), &[&tags[4][..], &id3v1].concat()] {
            let joined = [&frames[..], tag, &frames].concat();
            assert_eq!(mended(&joined), (joined.clone(), 0, 0, false));
        }
        // Lyrics without an end do not cause damage to later lyrics.
        let mut damaged = [&frames[..], LYRICS, &frames, &lyrics, &id3v1, &frames].concat();
        assert_eq!(mended(&damaged).1, 1);
        damaged.drain(frames.len()..frames.len() + LYRICS.len());
        assert_eq!(mended(&damaged).0, damaged);
    }
}

#[test]
fn silent_frames_replace_damaged_ones() {
    for is_adts in [false, true] {
        let samples = if is_adts { 1024 } else { 1152 };
        let sound = frames(is_adts, 200);
        for (first, count) in [(2, 1), (50, 3), (100, 90)] {
            for fill in [0, 0x55, 0xff] {
                let mut bytes = sound.clone();
                bytes[first..first + count].iter_mut().for_each(|frame| frame.fill(fill));
                let (result, gaps, lost, _) = mended(&bytes.concat());
                assert_eq!((gaps, lost), (1, count as u64 * samples), "{first} {count} {fill}");
                let silent = Frame::parse(&sound[0]).unwrap().silent();
                assert_eq!(Frame::parse(&silent).unwrap().bytes, silent.len());
                assert_eq!(
                    result,
                    [sound[..first].concat(), silent.repeat(count), sound[first + count..].concat()].concat()
                );
            }
        }
    }
}

#[test]
fn damage_behind_the_start_of_a_tag_is_mended() {
    let starts = [
        &b"ID3\x04\0\0\x40\0\0\0"[..],
        b"ID3\x03\0\0\0\0\x20\0",
        b"ID3\x03\0\0\0\0\xa0\0",
        b"APETAGEX\xd0\x07\0\0\0\x20\0\0\x01\0\0\0\0\0\0\xa0\0\0\0\0\0\0\0\0",
        LYRICS,
        b"LYRICSBEGININD00002ab",
    ];
    for is_adts in [false, true] {
        let samples = if is_adts { 1024 } else { 1152 };
        let mut sound = frames(is_adts, 200);
        sound[80..84].iter_mut().for_each(|frame| frame.fill(0));
        for start in starts {
            for end in [&b"LYRICS200"[..], b"LYRICSEND", b""] {
                let bytes = [&sound[..30].concat(), start, &sound[30..].concat(), end].concat();
                let (_, gaps, lost, _) = mended(&bytes);
                assert_eq!((gaps, lost), (2, 4 * samples), "{start:?}");
            }
        }
    }
}

#[test]
fn damage_at_the_start_does_not_hide_further_damage() {
    for is_adts in [false, true] {
        let samples = if is_adts { 1024 } else { 1152 };
        let sound = frames(is_adts, 200);
        for (first, count) in [(0, 1), (0, 2), (1, 1), (1, 3), (0, 0)] {
            for before in [&b""[..], &[0; 500], &b"HTTP/1.0 200 OK\r\n\r\n".repeat(3_000)] {
                let mut bytes = sound.clone();
                bytes[first..first + count].iter_mut().for_each(|frame| frame.fill(0x55));
                bytes[50..53].iter_mut().for_each(|frame| frame.fill(0x55));
                let (result, gaps, lost, _) = mended(&[before, &bytes.concat()].concat());
                // The number of frames lost before the first is unknown.
                let mended_at_start = if first == 1 && before.is_empty() { count as u64 } else { 0 };
                let expected = (1 + u64::from(mended_at_start > 0), (3 + mended_at_start) * samples);
                assert_eq!((gaps, lost), expected, "{first} {count} {}", before.len());
                assert!(result.ends_with(&bytes[53..].concat()));
            }
        }
        // The frames in a container are those of a track.
        let contained = [&b"\x1a\x45\xdf\xa3"[..], &sound[..9].concat(), &[0; 900], &sound.concat()];
        assert_eq!(mended(&contained.concat()), (contained.concat(), 0, 0, false));
    }
}

#[test]
fn a_recording_of_another_rate_ends_the_first() {
    let first = frames(false, 50).concat();
    // 48 kHz in place of 44.1.
    let mut second = frames(false, 50).concat();
    let length = Frame::parse(&{
        second[2] |= 4;
        second.clone()
    })
    .unwrap()
    .bytes;
    let second: Vec<u8> =
        (0..20).flat_map(|_| second[..4].iter().copied().chain(vec![0; length - 4])).collect();
    let lost = Arc::<Lost>::default();
    let joined = [&first[..], &second].concat();
    let mut result = Vec::new();
    MendedFrames::counting(&joined[..], Arc::clone(&lost)).read_to_end(&mut result).unwrap();
    assert!(lost.other_recording.load(Relaxed) && result == first);
    assert!(survey(&joined[..]).unwrap().is_damaged);
}

#[test]
fn a_cut_frame_is_reported() {
    let bytes = frames(true, 20).concat();
    for missing in [30, 79] {
        let cut = &bytes[..bytes.len() - missing];
        assert_eq!(mended(cut), (cut.to_vec(), 0, 0, true));
    }
}

#[test]
fn consecutive_frames_are_distinguished_from_stray_headers() {
    for is_adts in [false, true] {
        let frames = frames(is_adts, 6).concat();
        let rubbish = vec![0x11; 5_000];
        assert!(has_frames(&frames, true) && has_frames(&[&rubbish[..], &frames].concat(), true));
        let length = frames.len() / 6;
        assert!(has_frames(&frames[..length], true), "a single frame");
        assert!(has_frames(&frames[..2 * length - 9], true), "cut off");
        assert!(has_frames(&[&frames[..length], b"TAG and more"].concat(), true));
        assert!(!has_frames(&frames[..3 * length], false), "as far as read");
        let stray: Vec<u8> =
            (0..6).flat_map(|n| [&frames[..2 * length], &rubbish[..100 + n]].concat()).collect();
        assert!(!has_frames(&stray, true), "none follow");
    }
    assert!(has_frames(b"ID3\x03\0\0\0\0\x01\x02", false) && !has_frames(b"", true));
}

#[test]
fn damage_anywhere_is_as_long_as_what_replaces_it() {
    for is_adts in [false, true] {
        let sound = frames(is_adts, 60).concat();
        let frame = Frame::parse(&sound).unwrap();
        for seed in 0_usize..600 {
            let mut bytes = sound.clone();
            let at = seed * 7_919 % bytes.len();
            let end = bytes.len().min(at + 1 + seed * 31 % (9 * frame.bytes));
            // A partly overwritten header may declare another length.
            if [at, end].iter().any(|place| (1..HEADER).contains(&(place % frame.bytes))) {
                continue;
            }
            bytes[at..end].fill([0, 0x55, 0xff, b'T'][seed % 4]);
            let (result, gaps, lost, _) = mended(&bytes);
            let replaced = (lost / frame.samples) as usize;
            let found = result.len() + replaced * (frame.bytes - frame.silent().len());
            assert_eq!(found, bytes.len(), "{seed}: {at} to {end}");
            // Number of damaged headers, except the first and those at the end.
            let headers = (1..60).filter(|n| (at..end).contains(&(n * frame.bytes))).count();
            let is_last = end > 57 * frame.bytes;
            assert!(at < frame.bytes || is_last || (replaced, gaps > 0) == (headers, headers > 0), "{seed}");
        }
    }
}

/// Any bytes are returned, or silence for some of them, without an endless loop or a panic.
#[test]
fn garbage_is_survived() {
    let sound = frames(false, 40).concat();
    for seed in 0_usize..2000 {
        let mut bytes = sound.clone();
        for k in 0..1 + seed % 7 {
            let at = (seed * 7919 + k * 104_729) % bytes.len();
            bytes[at] = (seed * 31 + k * 17) as u8;
        }
        bytes.truncate(bytes.len() - seed % 500);
        let (result, ..) = mended(&bytes);
        assert!(result.len() <= 2 * bytes.len());
    }
}
