//! `denoise --live`.

mod shared;

use shared::{Folder, USAGE, demo, denoise, fails, hiss, noisy, read, spec, stderr_of, write};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

/// Mean square, dB.
fn level(samples: &[f32]) -> f32 {
    10.0 * (samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32).log10()
}

#[test]
fn a_file_keeps_its_length_and_loses_its_noise() {
    let folder = Folder::new();
    let (input, output) = (folder.join("noisy.wav"), folder.join("voice.wav"));
    write(&input, spec(16_000, 1), hiss(48_111).map(|x| 0.05 * x));
    for latency in ["4", "16", "32", "48"] {
        let arguments = [input.as_os_str(), output.as_os_str(), "--live".as_ref()];
        denoise(arguments).args(["--latency", latency, "--force", "-q"]).assert().success();
        let (found, samples) = read(&output);
        assert_eq!((found, samples.len()), (spec(16_000, 1), 48_111));
        let (_, before) = read(&input);
        let change = level(&samples[16_000..]) - level(&before[16_000..]);
        assert!(change < -15.0, "{latency} ms: {change} dB");
    }
    // With --mix 0, the output is the recording, without delay.
    let arguments = [input.as_os_str(), output.as_os_str(), "--live".as_ref()];
    denoise(arguments).args(["--mix", "0", "--force", "-q"]).assert().success();
    assert!(read(&output).1 == read(&input).1);
}

#[test]
fn a_pipe_returns_input_without_delay() {
    let mut program = std::process::Command::new(assert_cmd::cargo::cargo_bin!("denoise"))
        .args(["-", "-", "--live", "--raw", "16000:1:s16", "--raw-out", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes: Vec<u8> = noisy(1.0).iter().flat_map(|x| ((x * 32_767.0) as i16).to_le_bytes()).collect();
    let (mut input, mut output) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
    input.write_all(&bytes).unwrap();
    input.flush().unwrap();
    // While the input is open, all samples but the latency of 256 and a part of a hop of 128 are available.
    let mut voice = vec![0; bytes.len() - 2 * (256 + 128)];
    output.read_exact(&mut voice).unwrap();
    drop(input);
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert!(program.wait().unwrap().success());
    assert_eq!(voice.len() + rest.len(), bytes.len());
}

/// Sends packets of 10 ms through a pipe: while the input is open, all samples but the reported latency are available.
/// An impulse keeps its position.
#[test]
fn a_pipe_withholds_the_latency_at_every_rate() {
    for rate in [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000] {
        // With a header that declares a length, and without one.
        let header = if rate % 16_000 == 0 { wav_header(rate, rate / 2) } else { Vec::new() };
        let raw = format!("{rate}:1:s16");
        let folder = Folder::new();
        let stats = folder.join("stats.json");
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("denoise"));
        command.args(["-", "-", "--live", "--raw-out", "-q", "--stats"]).arg(&stats);
        if header.is_empty() {
            command.args(["--raw", &raw]);
        }
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
        let (samples, at) = (rate as usize / 2, rate as usize / 4);
        let mut sound: Vec<f32> = hiss(samples).map(|x| 0.002 * x).collect();
        sound[at] = 0.5;
        let bytes: Vec<u8> = sound.iter().flat_map(|x| ((x * 32_767.0) as i16).to_le_bytes()).collect();
        // 16 ms, rounded up, and one more sample.
        let latency = (16 * rate as usize).div_ceil(1_000) + 1;
        let due = samples - latency;
        let (sender, came) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut voice = vec![0; 2 * due];
            let read = output.read_exact(&mut voice);
            sender.send(()).unwrap();
            read.unwrap();
            output.read_to_end(&mut voice).unwrap();
            voice
        });
        input.write_all(&header).unwrap();
        for packet in bytes.chunks(2 * (rate as usize / 100)) {
            input.write_all(packet).unwrap();
        }
        input.flush().unwrap();
        let in_time = came.recv_timeout(std::time::Duration::from_secs(60)).is_ok();
        drop(input);
        let voice = reader.join().unwrap();
        assert!(in_time, "{rate} Hz: more than {latency} samples are withheld");
        assert!(program.wait().unwrap().success());
        assert_eq!(voice.len(), bytes.len());
        let voice: Vec<i16> = voice.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect();
        let peak = (0..samples).max_by_key(|&n| voice[n].unsigned_abs()).unwrap();
        assert_eq!(peak, at, "{rate} Hz");
        // The reported latency is the withheld one.
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
        let reported = json["files"][0]["latency_seconds"].as_f64().unwrap() * f64::from(rate);
        assert!(reported <= latency as f64 && reported > latency as f64 - 3.0, "{rate} Hz: {reported}");
    }
}

/// Header of a WAV file with one channel of 16 bits that declares `samples` samples.
fn wav_header(rate: u32, samples: u32) -> Vec<u8> {
    let mut header = b"RIFF".to_vec();
    header.extend((36 + 2 * samples).to_le_bytes());
    header.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    header.extend(rate.to_le_bytes());
    header.extend((2 * rate).to_le_bytes());
    header.extend(b"\x02\0\x10\0data");
    header.extend((2 * samples).to_le_bytes());
    header
}

#[test]
fn stats_tell_where_speech_is() {
    let folder = Folder::new();
    let (output, stats) = (folder.join("voice.wav"), folder.join("stats.json"));
    let arguments = [demo("demo-noisy.wav"), output];
    denoise(&arguments).args(["--live", "-q", "--stats"]).arg(&stats).assert().success();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    let file = &json["files"][0];
    let duration = file["duration_seconds"].as_f64().unwrap();
    let sections: Vec<[f64; 2]> = serde_json::from_value(file["speech_sections_seconds"].clone()).unwrap();
    assert!(!sections.is_empty(), "{json}");
    let times: Vec<f64> = sections.concat();
    assert!(times.is_sorted() && times[0] >= 0.0 && times[times.len() - 1] <= duration, "{times:?}");
    let spoken: f64 = sections.iter().map(|[start, end]| end - start).sum();
    assert!(spoken > 0.3 * duration, "{spoken} of {duration} s");
    // Offline runs report no speech sections.
    denoise(&arguments).args(["--force", "-q", "--stats"]).arg(&stats).assert().success();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    assert!(json["files"][0]["speech_sections_seconds"].is_null(), "{json}");
}

#[test]
fn stats_have_no_counts_that_are_not_taken() {
    let folder = Folder::new();
    let (input, output, stats) = (folder.join("in.wav"), folder.join("out.wav"), folder.join("s.json"));
    write(&input, spec(16_000, 1), noisy(1.0).into_iter().map(|x| (5.0 * x).clamp(-0.5, 0.5)));
    let file = |options: &[&str]| {
        let mut command = denoise([&input, &output]);
        command.args(options).args(["--force", "-q", "--stats"]).arg(&stats).assert().success();
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
        json["files"][0].clone()
    };
    let (live, offline) = (file(&["--live"]), file(&["--quality", "fast"]));
    assert!(offline["clipped_input_samples"].as_u64().is_some_and(|count| count > 100), "{offline}");
    assert_eq!(live["clipped_input_samples"], offline["clipped_input_samples"]);
    for key in ["restored_samples", "clicks", "heavy_tailed_blocks"] {
        assert!(live.get(key).is_some_and(serde_json::Value::is_null) && offline[key].is_u64(), "{key}");
    }
}

/// An option with its default value does not change the settings.
#[test]
fn a_latency_that_is_the_default_is_up_to_date() {
    let folder = Folder::new();
    write(&folder.join("a.wav"), spec(16_000, 1), noisy(0.3));
    let run = |options: &[&str]| {
        let mut command = denoise(["a.wav", "-o", "out", "--live"]);
        command.args(options).current_dir(folder.0.path());
        stderr_of(command, 0)
    };
    assert!(run(&[]).contains("1 denoised"));
    assert!(run(&["--latency", "16"]).contains("1 skipped"));
    assert!(run(&["--latency", "8"]).contains("1 denoised"));
}

#[test]
fn what_is_not_live_is_refused() {
    let folder = Folder::new();
    let (input, output) = (demo("demo-noisy.wav"), folder.join("voice.wav"));
    for (options, words) in [
        (["--live", "--residual", "r.wav"].as_slice(), ["--live", "--residual"]),
        (&["--live", "--noise-from", "0..1"], ["--live", "--noise-from"]),
        (&["--live", "--speech-format", "rttm"], ["--live", "--speech-format"]),
        (&["--live", "--latency", "100"], ["--latency", "4 to 64"]),
        (&["--latency", "8"], ["--latency has no effect without --live: omit it", ""]),
        (&["--live", "--quality", "fast"], ["--quality has no effect", "omit it"]),
        (&["--live", "--sampler", "sgld"], ["--sampler has no effect", "omit it"]),
        (&["--live", "--iterations", "4"], ["--iterations has no effect", "omit it"]),
        (&["--live", "--em-iterations", "4"], ["--em-iterations has no effect", "omit it"]),
        (&["--live", "--positivity", "log"], ["--positivity has no effect", "omit it"]),
        (&["--live", "--dereverb", "0.5"], ["--dereverb has no effect", "omit it"]),
        (&["--live", "--noise-rank", "2"], ["--noise-rank has no effect", "omit it"]),
        (&["--live", "--method", "published"], ["--method has no effect", "omit it"]),
        (&["--live", "--channels", "separate"], ["--channels has no effect", "omit it"]),
    ] {
        let mut command = denoise([&input, &output]);
        command.args(options);
        let message = stderr_of(command, USAGE);
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    assert!(!output.exists());
    // The `live` command refuses these options, too, with or without audio devices.
    for (option, value) in [("--quality", "fast"), ("--noise-rank", "2"), ("--seed", "1")] {
        let assert = denoise(["live", option, value]).assert().code(USAGE);
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(message.contains(&format!("{option} has no effect")), "{message}");
    }
    let missing: [&Path; 2] = [&folder.join("missing.wav"), &output];
    fails(&missing, &["--live"], shared::INPUT, &["missing.wav"]);
}

#[test]
fn eval_scores_what_comes_live_in_time() {
    let folder = Folder::new();
    for (name, file) in [("clean", "demo-clean.wav"), ("noisy", "demo-noisy.wav")] {
        std::fs::create_dir(folder.join(name)).unwrap();
        std::fs::copy(demo(file), folder.join(name).join("demo.wav")).unwrap();
    }
    let result = folder.join("result.json");
    denoise(["eval", "--live", "--latency", "8", "-q"])
        .args(["--clean".as_ref(), folder.join("clean").as_os_str()])
        .args(["--noisy".as_ref(), folder.join("noisy").as_os_str()])
        .args(["--json".as_ref(), result.as_os_str()])
        .assert()
        .success();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    let evaluation = &json["evaluations"][0];
    assert_eq!(evaluation["provenance"]["settings"]["live"]["latency_seconds"], 0.008, "{json}");
    let scores = &evaluation["summary"][0]["metrics"];
    let gained = |name: &str| {
        let metrics = scores.as_array().unwrap().iter();
        let row = metrics.into_iter().find(|row| row["metric"] == name).unwrap();
        row["improvement"]["mean"].as_f64().unwrap()
    };
    // A delay of a single sample reduces SI-SDR.
    assert!(gained("si_sdr") > 3.0, "{scores}");
}

/// Every accepted option changes the output.
#[test]
fn options_that_are_taken_live_have_an_effect() {
    let folder = Folder::new();
    let (input, output) = (folder.join("noisy.wav"), folder.join("voice.wav"));
    write(&input, spec(16_000, 1), noisy(1.0));
    let run = |options: &[&str]| {
        let arguments = [input.as_os_str(), output.as_os_str(), "--live".as_ref()];
        denoise(arguments).args(["--force", "-q"]).args(options).assert().success();
        std::fs::read(&output).unwrap()
    };
    let plain = run(&[]);
    for options in [
        ["--strength", "gentle"].as_slice(),
        &["--floor-db", "-6"],
        &["--mix", "0.5"],
        &["--seed", "1"],
        &["--no-dither"],
        &["--no-neural"],
        &["--alpha-speech", "1.5"],
        &["--alpha-noise", "1.2"],
        &["--latency", "32"],
    ] {
        assert!(run(options) != plain, "{options:?}");
    }
}
