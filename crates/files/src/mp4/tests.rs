use super::tables::BIG_ENDIAN;
use super::walk::MAX_BOXES;
use super::*;
use std::io::Cursor;

fn boxed(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes(), &name[..], body].concat()
}

fn track(kind: &[u8; 4], time_scale: u32, media_times: &[i32]) -> Vec<u8> {
    let mut list = vec![0; 4];
    list.extend((media_times.len() as u32).to_be_bytes());
    for time in media_times {
        list.extend([0, 0, 1, 0]);
        list.extend(time.to_be_bytes());
        list.extend([0, 1, 0, 0]);
    }
    let mdhd = boxed(b"mdhd", &[&[0; 12][..], &time_scale.to_be_bytes(), &[0; 8]].concat());
    let hdlr = boxed(b"hdlr", &[&[0; 8][..], kind, &[0; 12]].concat());
    let edts = boxed(b"edts", &boxed(b"elst", &list));
    boxed(b"trak", &[edts, boxed(b"mdia", &[mdhd, hdlr].concat())].concat())
}

fn read(file: Vec<u8>) -> Result<Index, ReadError> {
    Index::read(&mut Cursor::new(file))
}

fn start(file: Vec<u8>) -> Option<EditStart> {
    read(file).unwrap().start
}

#[test]
fn the_first_audio_track_counts() {
    let tracks =
        [track(b"vide", 90_000, &[7]), track(b"soun", 48_000, &[-1, 1_024]), track(b"soun", 1, &[5])];
    let file = [boxed(b"ftyp", b"M4A "), boxed(b"mdat", &[0; 99]), boxed(b"moov", &tracks.concat())];
    let file = file.concat();
    let found = start(file.clone()).unwrap();
    assert_eq!(found, EditStart { media_time: 1_024, time_scale: 48_000 });
    assert_eq!((found.samples(48_000), found.samples(24_000)), (1_024, 512));
    for length in 0..file.len() {
        assert_eq!(start(file[..length].to_vec()), None, "{length} bytes");
    }
    assert_eq!(start(boxed(b"moov", &track(b"soun", 48_000, &[]))), None);
}

#[test]
fn the_enabled_track_is_the_one_to_read() {
    let tracks = |enabled: [u8; 3]| {
        let tracks = (1_u8..).zip(enabled).map(|(id, enabled)| {
            let tkhd = boxed(b"tkhd", &[&[0, 0, 0, enabled], &[0; 8][..], &[0, 0, 0, id]].concat());
            let whole = track(if id == 1 { b"vide" } else { b"soun" }, 100, &[id.into()]);
            boxed(b"trak", &[&tkhd, &whole[8..]].concat())
        });
        read(boxed(b"moov", &tracks.collect::<Vec<_>>().concat())).unwrap()
    };
    for (enabled, chosen) in [([3, 2, 3], 3), ([1, 1, 1], 2), ([0, 0, 0], 2), ([1, 7, 0], 2)] {
        let found = tracks(enabled);
        assert_eq!(found.track, Some(chosen), "{enabled:?}");
        assert_eq!(found.start.map(|start| start.media_time), Some(chosen.into()), "{enabled:?}");
    }
}

#[test]
fn edits_count_up_to_one() {
    let file = |media_times: &[i32], rate: u8, fragments: &[u8]| {
        let mut track = track(b"soun", 48_000, media_times);
        if let Some(at) = track.windows(4).rposition(|bytes| bytes == [0, 1, 0, 0]) {
            track[at + 1] = rate;
        }
        let mvhd = boxed(b"mvhd", &[&[0; 12][..], &600_u32.to_be_bytes(), &[0; 8]].concat());
        boxed(b"moov", &[&mvhd[..], &track, fragments].concat())
    };
    let one = read(file(&[-1, 1_024], 1, &[])).unwrap().length.unwrap();
    assert_eq!(one, EditLength { duration: 256, time_scale: 600 });
    assert_eq!(one.samples(48_000), 257 * 80);
    assert_eq!(read(file(&[1_024], 1, &boxed(b"mvex", &[]))).unwrap().length, None);
    assert_eq!(read(file(&[-1], 1, &[])).unwrap().length, None);
    let late = [&[-1; 16][..], &[7, 9]].concat();
    for (media_times, rate) in [(&[0, 9][..], 1), (&[7, -1, 9], 1), (&[7], 2), (&late, 1)] {
        let refused = read(file(media_times, rate, &[]));
        assert!(matches!(refused, Err(ReadError::Unsupported(_))), "{media_times:?}");
    }
}

#[test]
fn big_endian_samples_are_refused() {
    let description = |codec: &[u8; 4], rest: &[u8]| {
        let entry = boxed(codec, &[&[0; 44][..], rest].concat());
        boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1][..], &entry].concat())
    };
    let order = |value: u8| boxed(b"wave", &boxed(b"enda", &[0, value]));
    let file = |kind: &[u8; 4], description: Vec<u8>| {
        let hdlr = |of: &[u8; 4], kind| boxed(b"hdlr", &[&[0; 4][..], of, kind, &[0; 12]].concat());
        // QuickTime names the handler of the data, too.
        let minf = boxed(b"minf", &[hdlr(b"dhlr", b"alis"), boxed(b"stbl", &description)].concat());
        let mdhd = boxed(b"mdhd", &[&[0; 12][..], &48_000_u32.to_be_bytes(), &[0; 8]].concat());
        let mdia = boxed(b"mdia", &[mdhd, hdlr(b"mhlr", kind), minf].concat());
        boxed(b"moov", &[boxed(b"trak", &mdia), track(b"soun", 48_000, &[0])].concat())
    };
    for codec in BIG_ENDIAN {
        for rest in [&[][..], &order(0)] {
            let refused = read(file(b"soun", description(codec, rest)));
            assert!(matches!(refused, Err(ReadError::Unsupported(_))), "{codec:?}");
            assert!(read(file(b"vide", description(codec, rest))).is_ok());
        }
        assert!(read(file(b"soun", description(codec, &order(1)))).is_ok());
    }
    assert!(read(file(b"soun", description(b"twos", &[]))).is_ok());
}

#[test]
fn fragments_cannot_hold_more_packets_than_the_file_has_bytes() {
    let run = |count: u64| boxed(b"trun", &[[0; 4], (count as u32).to_be_bytes()].concat());
    let fragment = |counts: &[u64]| {
        let runs: Vec<_> = counts.iter().flat_map(|&count| run(count)).collect();
        boxed(b"moof", &boxed(b"traf", &runs))
    };
    assert_eq!(start(fragment(&[32])), None);
    assert!(read(fragment(&[33])).is_err());
    // The limit applies to all runs together.
    assert_eq!(start(fragment(&[24, 24])), None);
    assert!(read(fragment(&[24, 25])).is_err());
    assert_eq!(start([fragment(&[40]), fragment(&[24])].concat()), None);
    assert!(read([fragment(&[40]), fragment(&[25])].concat()).is_err());
}

fn full(name: &[u8; 4], flags: u32, numbers: &[u32]) -> Vec<u8> {
    let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    boxed(name, &[&flags.to_be_bytes()[..], &numbers].concat())
}

/// A track with these boxes in its table.
fn track_of(kind: &[u8; 4], id: u8, table: &[u8]) -> Vec<u8> {
    let tkhd = boxed(b"tkhd", &[&[0, 0, 0, 1], &[0; 8][..], &[0, 0, 0, id]].concat());
    let hdlr = boxed(b"hdlr", &[&[0; 8][..], kind, &[0; 12]].concat());
    let mdia = [hdlr, boxed(b"minf", &boxed(b"stbl", table))].concat();
    boxed(b"trak", &[tkhd, boxed(b"mdia", &mdia)].concat())
}

fn is_unsupported(file: Vec<u8>) -> bool {
    match read(file) {
        Ok(_) => false,
        Err(ReadError::Unsupported(_)) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn tables_that_keep_the_demuxer_busy_are_refused() {
    let behind = |file: Vec<u8>, bytes: usize| [file, boxed(b"mdat", &vec![0; bytes])].concat();
    let table = |kind, entries: &[[u32; 2]]| {
        let stts = full(b"stts", 0, &[&[entries.len() as u32], &entries.concat()[..]].concat());
        boxed(b"moov", &track_of(kind, 1, &stts))
    };
    let many = [&[[0, 1]; 60_000][..], &[[400_000, 1]]].concat();
    assert!(is_unsupported(behind(table(b"soun", &many), 400_000)));
    assert!(!is_unsupported(behind(table(b"vide", &many), 400_000)), "hidden from the demuxer");
    // Ten hours of packets of 21 ms of equal duration, and an hour in which no two consecutive ones are equal.
    assert!(!is_unsupported(behind(table(b"soun", &[[1_700_000, 1_024]]), 1_000_000)));
    let unlike: Vec<_> = (0..169_000).map(|n| [1, 1_023 + n % 2]).collect();
    assert!(!is_unsupported(behind(table(b"soun", &unlike), 169_000 * 60)));

    let fragment = |runs: &[Vec<u8>]| {
        let tfhd = full(b"tfhd", 0, &[1]);
        boxed(b"moof", &boxed(b"traf", &[tfhd, runs.concat()].concat()))
    };
    let start = boxed(b"moov", &track_of(b"soun", 1, &[]));
    let whole = |fragments: &[Vec<u8>]| behind([start.clone(), fragments.concat()].concat(), 1 << 18);
    let with_durations =
        |count: u32| full(b"trun", 0x100, &[&[count], &vec![1; count as usize][..]].concat());
    assert!(is_unsupported(whole(&[fragment(&[with_durations(190_000)])])));
    assert!(!is_unsupported(whole(&vec![fragment(&[with_durations(1_000)]); 190])));
    assert!(!is_unsupported(whole(&[fragment(&[full(b"trun", 0, &[190_000])])])));
    let run = full(b"trun", 0, &[8]);
    assert!(is_unsupported(whole(&[fragment(&vec![run.clone(); 30_000])])));
    assert!(!is_unsupported(whole(&vec![fragment(&vec![run; 3]); 10_000])));
    // Fragments of another track.
    let empty = boxed(b"moof", &boxed(b"traf", &full(b"tfhd", 0, &[2])));
    assert!(is_unsupported(whole(&vec![empty.clone(); 90_000])));
    assert!(!is_unsupported(whole(&vec![empty; 9_000])));
}

#[test]
fn other_tracks_are_hidden_from_the_demuxer() {
    let defaults = [full(b"trex", 0, &[1, 1, 0, 0, 0]), full(b"trex", 0, &[2, 1, 0, 0, 0])].concat();
    let tracks = [track_of(b"vide", 1, &[]), track_of(b"soun", 2, &[]), track_of(b"soun", 2, &[])];
    let file = boxed(b"moov", &[tracks.concat(), boxed(b"mvex", &defaults)].concat());
    let mut index = read(file.clone()).unwrap();
    assert_eq!((index.track, index.other_tracks), (Some(2), 1));
    let mut shown = file.clone();
    for (at, bytes) in index.patches() {
        shown[at as usize..][..8].copy_from_slice(&bytes);
    }
    let places = |name: &[u8]| -> Vec<usize> {
        (0..file.len() - 4).filter(|&at| shown[at..].starts_with(name)).collect()
    };
    let [length, free] = [tracks[0].len(), file.len() - 2 * full(b"trex", 0, &[0; 5]).len()];
    assert_eq!(places(b"trak"), [12 + length]);
    assert_eq!(places(b"trex").len(), 1);
    assert_eq!(places(b"free"), [12, 12 + 2 * length, free + 4]);
    // Sizes stay.
    assert!(places(b"free").iter().all(|&at| shown[at - 4..at] == file[at - 4..at]));
    let mut silent = read(boxed(b"moov", &tracks[0])).unwrap();
    assert!(silent.patches().is_empty());
}

#[test]
fn samples_out_of_order_are_refused() {
    let places = |kind, table: Vec<u8>| {
        [boxed(b"moov", &[track_of(kind, 1, &table)].concat()), boxed(b"mdat", &[0; 99])].concat()
    };
    for (offsets, is_refused) in
        [(&[9][..], false), (&[1, 2, 9], false), (&[1, 9, 2], true), (&[9, 1], true), (&[7, 7], true)]
    {
        let count = [offsets.len() as u32];
        let short = full(b"stco", 0, &[&count[..], offsets].concat());
        let long: Vec<u32> = offsets.iter().flat_map(|&offset| [offset, 0]).collect();
        let long = full(b"co64", 0, &[&count[..], &long].concat());
        for table in [short, long] {
            assert_eq!(is_unsupported(places(b"soun", table.clone())), is_refused, "{offsets:?}");
            assert!(!is_unsupported(places(b"vide", table)));
        }
    }
    let run = |at: u32| full(b"trun", 1, &[2, at]);
    let part = |id: u32, runs: Vec<u8>| boxed(b"traf", &[full(b"tfhd", 0, &[id]), runs].concat());
    let file = |parts: &[Vec<u8>]| {
        let fragment = boxed(b"moof", &parts.concat());
        [boxed(b"moov", &track_of(b"soun", 1, &[])), fragment.clone(), fragment].concat()
    };
    assert!(!is_unsupported(file(&[part(1, [run(5), run(9)].concat()), part(2, run(2))])));
    assert!(is_unsupported(file(&[part(1, [run(9), run(5)].concat())])));
    // The second fragment has its samples before those of the first.
    let back = |at: u64| boxed(b"traf", &[full(b"tfhd", 1, &[1, 0, at as u32]), run(0)].concat());
    let start = boxed(b"moov", &track_of(b"soun", 1, &[]));
    let both =
        |first, second| [start.clone(), boxed(b"moof", &back(first)), boxed(b"moof", &back(second))].concat();
    assert!(!is_unsupported(both(100, 200)) && is_unsupported(both(200, 100)));
    // The demuxer reads the last part.
    assert!(is_unsupported(file(&[part(1, run(5)), part(1, run(9))])));
}

#[test]
fn missing_fragments_are_found_by_their_times() {
    let fragment = |id: u32, time: u32, count: u32, own: Option<u32>, default: Option<u32>| {
        let header = match default {
            Some(duration) => full(b"tfhd", 8, &[id, duration]),
            None => full(b"tfhd", 0, &[id]),
        };
        let run = match own {
            Some(duration) => {
                full(b"trun", 0x300, &[&[count], &[duration, 77].repeat(count as usize)[..]].concat())
            }
            None => full(b"trun", 0, &[count]),
        };
        boxed(b"moof", &boxed(b"traf", &[header, full(b"tfdt", 0, &[time]), run].concat()))
    };
    let defaults = [full(b"trex", 0, &[2, 1, 9, 0, 0]), full(b"trex", 0, &[1, 1, 20, 0, 0])].concat();
    let start = boxed(b"moov", &[track_of(b"soun", 1, &[]), boxed(b"mvex", &defaults)].concat());
    let gaps = |fragments: &[Vec<u8>]| {
        let file = [start.clone(), fragments.concat(), boxed(b"mdat", &[0; 99])].concat();
        read(file).unwrap().gaps
    };
    let whole = [
        fragment(1, 1_000, 2, None, None),
        fragment(2, 0, 5, None, None),
        fragment(1, 1_040, 3, Some(7), None),
        fragment(1, 1_061, 4, None, Some(10)),
        fragment(1, 1_101, 1, None, None),
        fragment(1, 1_121, 1, None, None),
    ];
    assert_eq!(gaps(&whole), []);
    let without = |number: usize| gaps(&[&whole[..number], &whole[number + 1..]].concat());
    assert_eq!(without(0), []);
    assert_eq!(without(2), [(40, 21)]);
    assert_eq!(without(3), [(61, 40)]);
    assert_eq!(gaps(&[&whole[..2], &whole[3..4], &whole[5..]].concat()), [(40, 21), (80, 20)]);
    // A repeated fragment is no gap.
    assert_eq!(gaps(&[&whole[..1], &whole].concat()), []);
}

#[test]
fn the_declared_end_of_the_audio_is_found_and_a_cut_is_noticed() {
    let mdhd = |version: u8, duration: &[u8]| {
        let times = vec![0; if version == 1 { 16 } else { 8 }];
        boxed(b"mdhd", &[&[version, 0, 0, 0][..], &times, &1_000_u32.to_be_bytes(), duration].concat())
    };
    let hdlr = boxed(b"hdlr", &[&[0; 8][..], b"soun", &[0; 12]].concat());
    let track = |mdhd: Vec<u8>| boxed(b"trak", &boxed(b"mdia", &[mdhd, hdlr.clone()].concat()));
    let seconds = |tracks: &[Vec<u8>], rest: &[u8]| {
        read([boxed(b"ftyp", b"M4A "), boxed(b"moov", &[&tracks.concat(), rest].concat())].concat())
            .unwrap()
            .seconds
    };
    assert_eq!(seconds(&[track(mdhd(0, &[0, 0, 0x13, 0x88]))], &[]), Some(5.0));
    assert_eq!(seconds(&[track(mdhd(1, &[0, 0, 0, 0, 0, 0, 0x13, 0x88]))], &[]), Some(5.0));
    assert_eq!(seconds(&[track(mdhd(0, &[0xff; 4]))], &[]), None, "unknown");
    // A fragmented file declares the duration of all fragments, which is not that of one track among several.
    let mvhd = boxed(b"mvhd", &[&[0; 12][..], &500_u32.to_be_bytes(), &[0; 8]].concat());
    let mehd = boxed(b"mvex", &boxed(b"mehd", &[[0; 4], 2_000_u32.to_be_bytes()].concat()));
    let all = [mvhd, mehd].concat();
    let open = track(mdhd(0, &[0; 4]));
    assert_eq!(seconds(std::slice::from_ref(&open), &all), Some(4.0));
    assert_eq!(seconds(&[open.clone(), open], &all), None);

    let whole = [boxed(b"ftyp", b"M4A "), boxed(b"mdat", &[7; 99])].concat();
    let cut = |file: &[u8]| read(file.to_vec()).unwrap().cut;
    assert_eq!(cut(&whole), None);
    assert_eq!(cut(&whole[..whole.len() - 1]), Some((12, *b"\0\0\0\x6amdat")));
    let long = [&b"\0\0\0\x01moof\0\0\0\0\0\0\x01\0"[..], &[0; 4]].concat();
    assert_eq!(cut(&long), Some((8, [0, 0, 0, 0, 0, 0, 0, 20])));
    assert_eq!(cut(&[&whole[..], b"\0\0\x01\0moof"].concat()), Some((119, *b"\0\0\0\x08free")));
    assert_eq!(None, cut(&[&whole[..], b"\0\0\x09\0junk"].concat()), "what is behind it is no part of it");
}

#[test]
fn boxes_within_boxes_come_to_an_end() {
    let mut nested = Vec::new();
    for _ in 0..10_000 {
        nested = boxed(b"mdia", &nested);
    }
    assert_eq!(start(nested), None);
    assert_eq!(start([0, 0, 0, 1, b'm', b'o', b'o', b'v'].repeat(9)), None);
    let many = boxed(b"free", &[]).repeat(MAX_BOXES as usize + 1);
    assert!(read(many).is_err());
}
