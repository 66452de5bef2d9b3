//! Tests of the report of ffmpeg.

use super::*;

#[test]
fn streams_and_durations_are_read_of_every_input() {
    let text = "[info] Input #0, wav, from 'pipe:0':\n\
         [info]   Duration: N/A, bitrate: 512 kb/s\n\
         [info]   Stream #0:0: Audio: pcm_f32le ([3][0][0][0] / 0x0003), 16000 Hz\n\
         [info] Input #1, mov,mp4,m4a,3gp,3g2,mj2, from 'file:/dev/fd/3':\n\
         [info]   Duration: 01:00:04.06, start: 0.000000, bitrate: 103 kb/s\n\
         [info]   Stream #1:0[0x1](und): Audio: aac (LC) (mp4a / 0x6134706D), 16000 Hz, mono\n\
         [info]   Stream #1:1[0x0]: Video: png, rgb24(pc), 64x64, 90k tbr (attached pic)\n\
         [info]   Stream #1:2(eng): Video: h264 (High), yuv420p\n\
         [info]   Stream #1:3: Subtitle: mov_text\n\
         [info] Output #0, null, to 'pipe:':\n\
         [info]   Duration: 00:00:09.00\n\
         [info]   Stream #0:0: Audio: pcm_s16le\n\
         [h264 @ 0x5] [error] mmco: unref short failure\n";
    let report = Report::read(text.as_bytes());
    let kinds = |input: &Input| input.streams.iter().map(|stream| stream.kind).collect::<Vec<_>>();
    let [sound, film] = &report.inputs[..] else { panic!("{report:?}") };
    assert_eq!((sound.duration_seconds, kinds(sound)), (None, vec![StreamKind::Audio]));
    assert_eq!(film.duration_seconds, Some(3604.06));
    use StreamKind::{Audio, Picture, Subtitles, Video};
    assert_eq!(kinds(film), [Audio, Picture, Video, Subtitles(SubtitleKind::TimedText)]);
    assert_eq!((report.errors, &report.reason), (0, &None), "video is not decoded");
}

/// As swresample reports it: a pause of 71664 samples, another of 5000, and the start of the track.
#[test]
fn pauses_are_counted() {
    let silence = |filter: &str, samples: u32| {
        format!("[{filter} @ 0x1] [SWR @ 0x2] [verbose] adding {samples} audio samples of silence\n")
    };
    let text = [("start", 16384), ("pauses", 16384), ("pauses", 16384), ("pauses", 6128), ("pauses", 5000)]
        .map(|(name, samples)| silence(&format!("aresample@{name}"), samples));
    let report = Report::read(text.concat().as_bytes());
    assert_eq!((report.pauses, report.silent_samples), (2, 2 * 16384 + 6128 + 5000));
    assert_eq!(report.errors, 0);
}

#[test]
fn errors_are_counted_and_their_cause_is_kept() {
    let text = "[asf @ 0x1] [warning] Estimating duration from bitrate, this may be inaccurate\n\
         [info] Input #0, asf, from 'file:/dev/fd/0':\n\
         [info]   Duration: 00:00:02.08, start: 0.000000, bitrate: 130 kb/s\n\
         [info]   Stream #0:0: Audio: wmav2\n\
         [warning] file:/dev/fd/0: corrupt input packet in stream 0\n\
         [wmav2 @ 0x2] [error] Input packet size too small (240 < 512)\n\
         [error] Error while decoding stream #0:0: Invalid data found when processing input\n\
         [matroska,webm @ 0x3] [error] File ended prematurely\n";
    let report = Report::read(text.as_bytes());
    assert_eq!(report.inputs[0].duration_seconds, None, "an estimate is no declaration");
    assert_eq!((report.damaged_packets, report.errors, report.ends_early), (2, 3, true));
    let full =
        "[error] av_interleaved_write_frame(): No space left on device\n[error] Error closing file x\n";
    let full = Report::read(full.as_bytes());
    assert!(full.is_unwritten() && full.reason.unwrap().contains("No space"));
    let list =
        "[hls @ 0x1] [error] Format not on whitelist 'wav'\n[error] file:/dev/fd/0: Invalid argument\n";
    assert!(Report::read(list.as_bytes()).reason.unwrap().contains("format hls"));
    assert_eq!(Report::read(&[0xff; 100_000][..]), Report::default());
}

#[test]
fn samples_keep_their_format() {
    use SampleFormat::{Float32, Float64, Int8, Int16, Int24, Int32};
    for (stream, format) in [
        ("Audio: pcm_u8, 8000 Hz, mono, u8, 64 kb/s", Some(Int8)),
        (
            "Audio: pcm_s24be (in24 / 0x34326E69), 48000 Hz, 5.1(side), s32 (24 bit), 2304 kb/s (default)",
            Some(Int24),
        ),
        ("Audio: tta ([1][0][0][0] / 0x0001), 44100 Hz, 2 channels, s16p", Some(Int16)),
        ("Audio: alac (alac / 0x63616C61), 48000 Hz, stereo, s32p (20 bit), 9 kb/s", Some(Int24)),
        ("Audio: wavpack, 48000 Hz, stereo, s32p", Some(Int32)),
        ("Audio: wavpack, 48000 Hz, stereo, fltp", Some(Float32)),
        ("Audio: pcm_f64le, 48000 Hz, stereo, dbl, 6144 kb/s", Some(Float64)),
        ("Audio: aac (HE-AAC) (mp4a / 0x6134706D), 48000 Hz, stereo, fltp, 48 kb/s", Some(Int16)),
        ("Audio: none (twos / 0x736F7774), 48000 Hz, stereo", None),
        ("Video: png, rgb24(pc), 64x64, 90k tbr", None),
    ] {
        assert_eq!(sample_format(stream), format, "{stream}");
    }
}

#[test]
fn the_default_track_is_found_and_what_else_there_is() {
    let text = "[info] Input #0, mov,mp4,m4a,3gp,3g2,mj2, from 'file:/dev/fd/0':\n\
         [info]   Stream #0:0[0x1](und): Video: h264 (avc1 / 0x31637661), yuv444p, 78 kb/s (default)\n\
         [info]   Stream #0:1[0x2](deu): Audio: aac (LC) (mp4a / 0x6134706D), 16000 Hz, mono, 71 kb/s\n\
         [info]   Stream #0:2[0x3](eng): Audio: aac (LC) (mp4a / 0x6134706D), 16000 Hz, mono, 64 kb/s (default)\n\
         [info]   Stream #0:3(eng): Subtitle: hdmv_pgs_subtitle\n\
         [info]   Stream #0:4: Subtitle: ass (default)\n\
         [info]   Stream #0:5: Subtitle: dvb_teletext, 1x1\n\
         [info]   Stream #0:6: Attachment: ttf\n\
         [info]   Stream #0:7(eng): Data: none (gpmd / 0x646D7067), 29 kb/s (default)\n\
         [info]   Stream #0:8(eng): Data: none (tmcd / 0x64636D74)\n\
         [info]   Stream #0:9(eng): Data: bin_data (text / 0x74786574)\n";
    let input = &Report::read(text.as_bytes()).inputs[0];
    assert_eq!(input.audio().map(|track| track.index), Some(2));
    let kinds: Vec<StreamKind> = input.streams[3..].iter().map(|stream| stream.kind).collect();
    use StreamKind::{Attachment, Data, Other, Subtitles};
    let subtitles = [SubtitleKind::Bitmap, SubtitleKind::Text, SubtitleKind::Other].map(Subtitles);
    assert_eq!(kinds, [&subtitles[..], &[Attachment, Data, Other, Other]].concat());
    let unmarked = Report::read(text.replace(" (default)", "").as_bytes());
    assert_eq!(unmarked.inputs[0].audio().map(|track| track.index), Some(1));
    let silent = text.replace("Audio:", "Data:");
    assert!(Report::read(silent.as_bytes()).inputs[0].is_silent() && !input.is_silent());
    assert!(!Input::default().is_silent(), "nothing is known of it");
}

#[test]
fn the_first_error_that_says_anything_is_the_reason() {
    let reason = |text: &str| Report::read(text.as_bytes()).reason.unwrap_or_default();
    let unheld = "[matroska @ 0x1] [error] Subtitle codec 94213 is not supported.\n\
         [error] Could not write header for output file #0 (incorrect codec parameters ?): Function not implemented\n\
         [error] Error initializing output stream 0:3 -- \n[error] \n[error] Conversion failed!\n";
    assert_eq!(reason(unheld), "Subtitle codec 94213 is not supported.");
    let unmapped = "[mp3 @ 0x1] [error] Header missing\n[fatal] Stream map '0:a:7' matches no streams.\n";
    assert_eq!(reason(unmapped), "Stream map '0:a:7' matches no streams.");
    assert_eq!(reason("[error] Conversion failed!\n"), "Conversion failed!", "better than nothing");
    let cut = "[mov @ 0x1] [error] moov atom not found\n[error] file:/dev/fd/0: Invalid data found\n";
    assert!(reason(cut).contains("untrunc"), "{}", reason(cut));
}

/// A tag may have any length and any content.
#[test]
fn the_rest_of_a_long_line_is_no_line() {
    let start = "[info]     comment         : ";
    let tag = "x".repeat(MAX_LINE as usize - start.len()) + "[error] No space left on device";
    let text = format!("{start}{tag}\n[error] Invalid data found\n");
    assert_eq!(Report::read(text.as_bytes()).reason.as_deref(), Some("Invalid data found"));
}
