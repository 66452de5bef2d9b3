//! The program as its users meet it: files in, files out, one-line errors and exit codes.

mod shared;

use alphamf_files::Reader;
use assert_cmd::Command;
use hound::{SampleFormat, WavSpec};
use shared::*;
use std::f32::consts::TAU;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Scale-invariant signal-to-distortion ratio, dB.
fn si_sdr(reference: &[f32], estimate: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let scale = dot(reference, estimate) / dot(reference, reference);
    let target = scale * scale * dot(reference, reference);
    10.0 * (target / (dot(estimate, estimate) - target)).log10()
}

#[test]
fn the_demo_clip_gets_cleaner_and_keeps_its_format() {
    let folder = Folder::new();
    let (input, output) = (demo("demo-noisy.wav"), folder.join("voice.wav"));
    let assert = denoise([&input, &output]).assert().success();
    let summary = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    for word in ["voice.wav", "s of audio", "SNR", "noise", "dBFS before", "dBFS after"] {
        assert!(summary.contains(word), "{summary}");
    }
    assert_eq!(summary.lines().count(), 1, "no progress bar in a pipe: {summary}");
    assert_eq!(folder.names(), ["voice.wav"], "no temporary file stays");
    let ((noisy_spec, noisy), (spec, voice)) = (read(&input), read(&output));
    assert_eq!((spec, voice.len()), (noisy_spec, noisy.len()));
    let (_, clean) = read(&demo("demo-clean.wav"));
    let (before, after) = (si_sdr(&clean, &noisy), si_sdr(&clean, &voice));
    assert!(after > before + 2.0, "{before:.2} dB before, {after:.2} dB after");
}

#[test]
fn the_output_depends_on_the_seed_and_not_on_threads() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    let noisy = voice(16_000, 1.0, 130.0).into_iter().zip(hiss(16_000)).map(|(s, n)| s + 0.05 * n);
    write(&input, spec(16_000, 1), noisy);
    let run = |name: &str, options: &[&str]| {
        let output = folder.join(name);
        denoise([&input, &output])
            .args(["-q", "--em-iterations", "6"])
            .args(options)
            .assert()
            .success()
            .stderr("");
        fs::read(output).unwrap()
    };
    let sampled = ["--iterations", "6", "--impulses", "sampled", "--seed"];
    let one = run("a.wav", &[&sampled[..], &["3", "--threads", "1"]].concat());
    let three = run("b.wav", &[&sampled[..], &["3", "--threads", "3"]].concat());
    assert!(one == three);
    assert!(one != run("c.wav", &[&sampled[..], &["4", "--threads", "1"]].concat()));
}

#[test]
fn inputs_of_no_use_are_named_and_leave_no_output() {
    let folder = Folder::new();
    let output = folder.join("out.wav");
    let input = folder.join("in.wav");
    fails(&[&input, &output], &[], INPUT, &["in.wav", "no such file"]);
    fs::write(&input, []).unwrap();
    fails(&[&input, &output], &[], INPUT, &["in.wav", "empty"]);
    fs::write(&input, "Not a recording, though it is long enough to be one.").unwrap();
    fails(&[&input, &output], &[], INPUT, &["in.wav", "not an audio file"]);
    write(&input, spec(16_000, 1), voice(16_000, 0.2, 120.0));
    let whole = fs::read(&input).unwrap();
    fs::write(&input, &whole[..whole.len() / 2]).unwrap();
    fails(&[&input, &output], &[], INPUT, &["in.wav", "truncated"]);
    fs::write(&input, &whole[..20]).unwrap();
    fails(&[&input, &output], &[], INPUT, &["in.wav"]);
    fails(&[folder.0.path(), &output], &[], USAGE, &["is a folder"]);
    let float = WavSpec { bits_per_sample: 32, sample_format: SampleFormat::Float, ..spec(16_000, 2) };
    for (value, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        write(&input, float, (0..2_000).map(|n| if n == 1_001 { value } else { 0.1 }));
        fails(&[&input, &output], &[], INPUT, &["in.wav", "sample 500 of channel 1", name]);
    }
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
fn outputs_of_no_use_are_named_and_nothing_is_overwritten() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    write(&input, spec(16_000, 1), voice(16_000, 0.2, 120.0));
    let bytes = fs::read(&input).unwrap();
    fails(&[&input, &input], &[], OUTPUT, &["in.wav", "same file"]);
    fails(&[&input, &folder.join(".").join("in.wav")], &[], OUTPUT, &["same file"]);
    fails(
        &[&input, &folder.join("missing").join("out.wav")],
        &["-q"],
        OUTPUT,
        &["out.wav", "cannot be written"],
    );
    fails(&[&input, folder.0.path()], &["-q"], USAGE, &["is a folder"]);
    #[cfg(unix)]
    {
        let link = folder.join("link.wav");
        std::os::unix::fs::symlink(&input, &link).unwrap();
        fails(&[&input, &link], &[], OUTPUT, &["link.wav", "same file"]);
        fs::remove_file(link).unwrap();
    }
    assert_eq!(folder.names(), ["in.wav"]);
    assert!(fs::read(&input).unwrap() == bytes);

    let (output, broken) = (folder.join("out.wav"), folder.join("broken.wav"));
    fs::write(&output, "precious").unwrap();
    fs::write(&broken, &bytes[..bytes.len() - 100]).unwrap();
    fails(&[&broken, &output], &["--force"], INPUT, &["truncated"]);
    fails(&[&input, &output], &["--floor-db", "1"], USAGE, &[]);
    assert_eq!(fs::read(&output).unwrap(), b"precious");
    denoise([&input, &output]).args(["-q", "--force"]).assert().success();
    assert_eq!(read(&output).1.len(), 3_200);
    assert_eq!(folder.names(), ["broken.wav", "in.wav", "out.wav"]);
}

#[test]
fn options_out_of_range_are_told_their_range() {
    let folder = Folder::new();
    let (input, output) = (demo("demo-noisy.wav"), folder.join("out.wav"));
    for (options, words) in [
        (["--floor-db", "3"], ["--floor-db is 3", "-100 to 0"]),
        (["--dereverb", "1.5"], ["--dereverb is 1.5", "0 to 1"]),
        (["--floor-db", "-101"], ["--floor-db", "-100 to 0"]),
        (["--floor-db", "nan"], ["NaN", "-100 to 0"]),
        (["--alpha-noise", "2.5"], ["--alpha-noise is 2.5", "0.2 to 2"]),
        (["--alpha-speech", "0.1"], ["0.1", "0.2 to 2"]),
        (["--noise-rank", "65"], ["65", "1 to 64"]),
        (["--noise-rank", "0"], ["0", "1 to 64"]),
        (["--em-iterations", "10001"], ["--em-iterations is 10001", "0 to 10000"]),
        (["--burn-in", "20"], ["--burn-in is 20", "0 to 7"]),
        (["--mix", "1.1"], ["--mix is 1.1", "0 to 1"]),
        (["--iterations", "2000000"], ["iterations", "1 to 1000000"]),
    ] {
        fails(&[&input, &output], &options, USAGE, &words);
    }
    // What would have no effect.
    for (options, words) in [
        (["--quality", "fast", "--sampler", "hamcmc"], ["--sampler", "no effect without Gibbs sweeps"]),
        (["--quality", "fast", "--step-size", "0.1"], ["--step-size", "no effect without Gibbs sweeps"]),
        (["--iterations", "0", "--burn-in", "0"], ["--burn-in", "no effect without Gibbs sweeps"]),
        (["--sampler", "nmc", "--step-size", "0.1"], ["--step-size", "nmc"]),
        (["--sampler", "hmc", "--minibatch", "0.5"], ["minibatch", "hmc"]),
        (["--sampler", "nmc", "--minibatch", "0.5"], ["minibatch", "nmc"]),
        (["--sampler", "nmc", "--positivity", "mirrored"], ["positivity", "nmc"]),
        (
            ["--quality", "fast", "--positivity", "mirrored"],
            ["--positivity", "no effect without Gibbs sweeps"],
        ),
        (["--iterations", "0", "--impulses", "sampled"], ["--impulses", "no effect without Gibbs sweeps"]),
        (["--iterations", "0", "--minibatch", "0.5"], ["--minibatch", "no effect without Gibbs sweeps"]),
    ] {
        fails(&[&input, &output], &options, USAGE, &words);
    }
    // These are the argument parser's own.
    for options in [["--threads", "0"], ["--seed", "x"], ["--sampler", "none"], ["--nonsense", "1"]] {
        denoise([&input, &output]).args(options).assert().code(USAGE);
    }
    denoise([&input]).assert().code(USAGE);
    denoise([""; 0]).assert().code(USAGE);
    assert!(folder.names().is_empty());
}

/// The record of a run on a quarter of a second of the demo clip, and what was said besides.
fn record_of(options: &[&str]) -> (serde_json::Value, String) {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let (demo_spec, samples) = read(&demo("demo-noisy.wav"));
    write(&input, demo_spec, samples[16_000..20_000].iter().copied());
    let assert = denoise([&input, &output]).args(options).args(["--stats", "-"]).assert().success();
    let output = assert.get_output();
    (serde_json::from_slice(&output.stdout).unwrap(), String::from_utf8(output.stderr.clone()).unwrap())
}

#[test]
fn the_record_tells_what_the_samplers_did() {
    let (record, said) = record_of(&[]);
    assert_eq!(record["settings"]["sampling"]["sampler"], "hamcmc");
    let moves = &record["files"][0]["moves"];
    assert!(moves["step_size"].as_f64().is_some_and(|step| step > 0.0), "{moves}");
    // Of the two pairs between three chains.
    assert!(moves["usable_pairs"].as_f64().is_some_and(|pairs| (0.5..=2.0).contains(&pairs)), "{moves}");
    assert!(moves["mirrored_fraction"].is_null() && moves["impulse_acceptance"].is_null(), "{moves}");
    assert!(!said.contains("trained with alpha"), "{said}");

    let (record, said) = record_of(&["--method", "published", "--seed", "3"]);
    let settings = &record["settings"];
    let sampling = &settings["sampling"];
    assert_eq!((&settings["seed"], &sampling["sampler"]), (&3.into(), &"hamcmc".into()));
    assert_eq!((&sampling["iterations"], &sampling["impulses"]), (&2500.into(), &"sampled".into()));
    assert_eq!(
        (&settings["model"]["alpha_speech"], &sampling["positivity"]),
        (&1.2.into(), &"mirrored".into())
    );
    assert_eq!(record["options"], serde_json::json!({"method": "published", "seed": 3}));
    let moves = &record["files"][0]["moves"];
    let within = |key: &str, low: f64, high: f64| {
        assert!(moves[key].as_f64().is_some_and(|value| (low..high).contains(&value)), "{key}: {moves}");
    };
    within("step_size", 7.99e-4, 8.01e-4);
    // Of four; and what was measured, with room for other processors and samplers.
    within("usable_pairs", 1.5, 2.6);
    within("mirrored_fraction", 0.004, 0.016);
    within("impulse_acceptance", 0.75, 0.85);
    assert!(said.contains("trained with alpha 0.8") && said.contains("expects 1.2"), "{said}");
}

#[test]
fn a_method_and_what_it_fixes_exclude_each_other() {
    let folder = Folder::new();
    let (input, output) = (demo("demo-noisy.wav"), folder.join("out.wav"));
    let excluded = |options: &[&str; 4]| {
        let given = options.iter().filter(|word| !word.is_empty());
        let assert = denoise([&input, &output]).args(given).assert().code(USAGE);
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        for words in [options[0], options[2], "cannot be used with"] {
            assert!(message.contains(words), "{words}: {message}");
        }
    };
    for (option, value) in [
        ("--no-neural", ""),
        ("--quality", "normal"),
        ("--strength", "gentle"),
        ("--floor-db", "-20"),
        ("--dereverb", "0.5"),
        ("--sampler", "sgld"),
        ("--iterations", "10"),
        ("--burn-in", "5"),
        ("--em-iterations", "5"),
        ("--step-size", "0.1"),
        ("--minibatch", "0.5"),
        ("--positivity", "log"),
        ("--impulses", "integrated"),
        ("--alpha-speech", "1.2"),
        ("--alpha-noise", "1.9"),
        ("--noise-rank", "5"),
    ] {
        excluded(&["--method", "published", option, value]);
    }
    excluded(&["--strength", "gentle", "--floor-db", "-20"]);
    assert!(folder.names().is_empty());
}

#[test]
fn what_is_not_a_dictionary_is_refused() {
    let folder = Folder::new();
    let (input, output, model) = (demo("demo-noisy.wav"), folder.join("out.wav"), folder.join("model"));
    let options = ["--model", model.to_str().unwrap()];
    fails(&[&input, &output], &options, DICTIONARY, &["model"]);
    fs::write(&model, "not a dictionary").unwrap();
    fails(&[&input, &output], &options, DICTIONARY, &["model", "not a dictionary"]);
    let shipped =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("models").join("speech-16k.safetensors");
    let bytes = fs::read(shipped).unwrap();
    fs::write(&model, &bytes[..bytes.len() / 2]).unwrap();
    fails(&[&input, &output], &options, DICTIONARY, &["model", "truncated"]);
    assert_eq!(folder.names(), ["model"]);
}

#[test]
fn silence_stays_silence() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(44_100, 2), std::iter::repeat_n(0.0, 30_000));
    let assert = denoise([&input, &output]).assert().success();
    assert!(String::from_utf8_lossy(&assert.get_output().stderr).contains("digital silence"));
    assert!(fs::read(&input).unwrap() == fs::read(&output).unwrap());
}

#[test]
fn every_length_rate_and_number_of_channels_is_kept() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    for (rate, channels, frames) in [(16_000, 1, 1), (8_000, 2, 777), (48_000, 3, 5_000), (22_050, 2, 2)] {
        let count = frames * usize::from(channels);
        write(&input, spec(rate, channels), hiss(count).map(|x| 0.3 * x));
        denoise([&input, &output]).args(["-q", "--force", "--em-iterations", "4"]).assert().success();
        let (found, samples) = read(&output);
        assert_eq!((found, samples.len()), (spec(rate, channels), count));
    }
}

#[test]
fn what_would_take_much_memory_is_refused_before_it_does() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(192_000, 256), hiss(256 * 96).map(|x| 0.3 * x));
    for mode in ["shared", "separate"] {
        let words = ["in.wav", "256 channels at 192000 Hz", "expected 16 at most"];
        fails(&[&input, &output], &["--channels", mode], INPUT, &words);
    }
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
fn stereo_keeps_its_image() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let left: Vec<f32> =
        voice(16_000, 1.0, 140.0).into_iter().zip(hiss(16_000)).map(|(s, n)| s + 0.02 * n).collect();
    write(&input, spec(16_000, 2), left.iter().flat_map(|&x| [x, 0.5 * x]));
    denoise([&input, &output]).args(["-q", "--em-iterations", "10"]).assert().success();
    let (_, samples) = read(&output);
    let (pairs, _) = samples.as_chunks::<2>();
    assert!(pairs.iter().any(|[left, _]| left.abs() > 0.05));
    for [left, right] in pairs {
        assert!((0.5 * left - right).abs() < 3.0 / 32_768.0, "{left} {right}");
    }
}

#[test]
fn a_dictionary_learned_from_a_folder_denoises() {
    let folder = Folder::new();
    let speech = folder.join("speech");
    fs::create_dir_all(speech.join("more")).unwrap();
    write(&speech.join("low.wav"), spec(16_000, 1), voice(16_000, 2.0, 110.0));
    write(&speech.join("more").join("HIGH.WAV"), spec(48_000, 1), voice(48_000, 2.0, 190.0));
    fs::write(speech.join("notes.txt"), "not a recording").unwrap();
    let (model, again) = (folder.join("mine.safetensors"), folder.join("again.safetensors"));
    let train = |model: &Path, threads: &str| {
        denoise([Path::new("train"), &speech, Path::new("-o"), model])
            .args(["--rank", "8", "--iterations", "12", "--threads", threads])
            .assert()
            .success()
    };
    let summary = train(&model, "1");
    let summary = String::from_utf8_lossy(&summary.get_output().stderr).into_owned();
    assert!(summary.contains("8 spectra of 513 bins") && summary.contains("2 files"), "{summary}");
    train(&again, "3");
    assert!(fs::read(&model).unwrap() == fs::read(&again).unwrap());

    // What has nothing above the dictionary's band is of no use to its continuation, the other recording is.
    let continued = folder.join("continued.safetensors");
    let summary = denoise([Path::new("train"), &speech, Path::new("-o"), &continued])
        .args(["--continue", model.to_str().unwrap(), "--iterations", "3"])
        .assert()
        .code(3);
    let summary = String::from_utf8_lossy(&summary.get_output().stderr).into_owned();
    assert!(summary.contains("low.wav: no content above 8000 Hz"), "{summary}");
    assert!(
        summary.contains("mine.safetensors with its spectra extended") && summary.contains("1 files"),
        "{summary}"
    );
    assert!(fs::metadata(&continued).unwrap().len() > fs::metadata(&model).unwrap().len());
    denoise([Path::new("train"), &speech, Path::new("-o"), &model])
        .args(["--continue", model.to_str().unwrap(), "--force"])
        .assert()
        .failure();

    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let clean = voice(16_000, 2.0, 150.0);
    let noisy: Vec<f32> = clean.iter().zip(hiss(32_000)).map(|(s, n)| s + 0.08 * n).collect();
    write(&input, spec(16_000, 1), noisy.iter().copied());
    denoise([&input, &output]).args(["-q", "--model", continued.to_str().unwrap()]).assert().success();
    let (before, after) = (si_sdr(&clean, &noisy), si_sdr(&clean, &read(&output).1));
    assert!(after > before + 3.0, "{before:.2} dB before, {after:.2} dB after");
    assert_eq!(
        folder.names(),
        ["again.safetensors", "continued.safetensors", "in.wav", "mine.safetensors", "out.wav", "speech"]
    );
}

#[test]
fn folders_of_no_use_are_named() {
    let folder = Folder::new();
    let (speech, model) = (folder.join("speech"), folder.join("model"));
    let fails = |options: &[&str], code: i32, words: &[&str]| {
        fails(&[Path::new("train"), &speech, Path::new("-o"), &model], options, code, words);
    };
    fails(&[], INPUT, &["speech"]);
    fs::create_dir(&speech).unwrap();
    fails(&[], INPUT, &["speech", "no audio file"]);
    write(&speech.join("a.wav"), spec(16_000, 1), voice(16_000, 0.5, 120.0));
    fails(&["--strict", "--rate", "48000", "--rank", "2"], INPUT, &["a.wav", "16000 Hz", "48000 Hz"]);
    fails(&["--rate", "4000"], USAGE, &["4000", "8000 to 192000"]);
    fails(&["--rank", "0"], USAGE, &["rank", "1 to 1000"]);
    fails(&["--rank", "900"], INPUT, &["900"]);
    fails(&["--alpha", "3"], USAGE, &["0.2 to 2"]);
    fails(&["--iterations", "0"], USAGE, &["1 to 100000"]);
    fails(&["--window", "2"], USAGE, &["0.001 to 1"]);
    fs::write(speech.join("b.wav"), "not audio").unwrap();
    fails(&["--strict", "--rank", "2"], INPUT, &["b.wav"]);
    fs::remove_file(speech.join("b.wav")).unwrap();
    let nowhere = folder.join("missing").join("model");
    self::fails(
        &[Path::new("train"), &speech, Path::new("-o"), &nowhere],
        &["-q", "--rank", "2", "--iterations", "2"],
        OUTPUT,
        &["model", "cannot be written"],
    );
    assert_eq!(folder.names(), ["speech"]);
}

/// The samples of a WAV or FLAC stream, channel by channel.
fn decode(bytes: Vec<u8>) -> Vec<Vec<f32>> {
    Reader::from_stream("stdout", Cursor::new(bytes)).unwrap().read_all().unwrap().into_channels()
}

#[test]
fn pipes_and_raw_samples_give_what_files_give() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(16_000, 1), noisy(1.0));
    denoise([&input, &output]).args(FAST).assert().success();
    let expected = vec![read(&output).1];
    let bytes = fs::read(&input).unwrap();
    let piped = |options: &[&str], bytes: &[u8]| {
        let assert =
            denoise(["-", "-"]).args(FAST).args(options).write_stdin(bytes).assert().success().stderr("");
        assert.get_output().stdout.clone()
    };
    assert!(decode(piped(&[], &bytes)) == expected);
    assert!(decode(piped(&["--raw", "16000:1:s16"], &bytes[44..])) == expected);
    let flac = piped(&["--format", "flac"], &bytes);
    assert!(flac.starts_with(b"fLaC") && decode(flac) == expected);
    let assert = denoise(["-", "-"]).args(FAST).write_stdin("not audio").assert().code(INPUT);
    let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(message.starts_with("denoise: standard input: not an audio file"), "{message}");
    denoise(["-", "-"]).args(FAST).args(["--raw", "16000:1:s16"]).write_stdin("odd").assert().code(INPUT);
}

#[test]
fn formats_are_those_asked_for_or_the_inputs() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    write(
        &input,
        WavSpec { bits_per_sample: 32, sample_format: SampleFormat::Float, ..spec(16_000, 1) },
        noisy(0.5),
    );
    for (name, options, bits, float) in [
        ("a.wav", &[][..], 32, true),
        ("b.wav", &["--format", "s24"], 24, false),
        ("c.wav", &["--format", "u8"], 8, false),
        ("d.flac", &[], 24, false),
        ("e.flac", &["--format", "s16"], 16, false),
        ("f.flac", &["--format", "wav:s32"], 32, false),
        ("g.wav", &["--format", "flac:s16"], 16, false),
    ] {
        let output = folder.join(name);
        denoise([&input, &output]).args(FAST).args(options).assert().success();
        let bytes = fs::read(&output).unwrap();
        let flac = name != "f.flac" && (name.ends_with(".flac") || name == "g.wav");
        assert!(bytes.starts_with(if flac { b"fLaC" } else { b"RIFF" }), "{name}");
        let format = Reader::open(&output).unwrap().format();
        assert_eq!((format.bits(), !format.is_integer()), (bits, float), "{name}");
    }
    let compressed = folder.join("x.MP3");
    let without_ffmpeg = denoise([&input, &compressed]).env("PATH", "").assert().code(USAGE);
    let message = String::from_utf8_lossy(&without_ffmpeg.get_output().stderr).into_owned();
    assert!(message.contains("x.MP3: only WAV and FLAC") && message.contains("ffmpeg"), "{message}");
    denoise([&input, &compressed]).args(FAST).args(["--format", "wav"]).assert().success();
    fails(&[&input, &folder.join("x.flac")], &["--format", "f32"], USAGE, &["x.flac", "24 bits"]);
    for format in ["s17", "s16:s24", "wav:flac", "", "S16", "flac:s32", "f32:flac"] {
        denoise([&input, &folder.join("x.wav")]).args(["--format", format]).assert().code(USAGE);
    }
}

#[test]
fn faint_noise_is_dithered_unless_told_not_to() {
    // Peaks of 6 codes, -75 dBFS: what is left of it is below half a code.
    let folder = Folder::new();
    let [input, output] = ["in.wav", "out.wav"].map(|name| folder.join(name));
    write(&input, spec(8_000, 1), hiss(16_000).map(|x| x * 6.5 / 32_768.0));
    let longest_silence = |options: &[&str]| {
        denoise([&input, &output]).args(FAST).args(options).assert().success();
        let samples = read(&output).1;
        samples.split(|&x| x != 0.0).map(<[f32]>::len).max().unwrap()
    };
    let (dithered, plain) = (longest_silence(&[]), longest_silence(&["--no-dither"]));
    assert!(dithered < 80 && plain > 400, "{dithered} and {plain} samples of silence");
}

#[test]
fn the_mix_and_the_residual_add_up_to_the_recording() {
    let folder = Folder::new();
    let [input, output, residual] = ["in.wav", "out.wav", "residual.wav"].map(|name| folder.join(name));
    write(&input, spec(16_000, 2), noisy(1.0).into_iter().flat_map(|x| [x, 0.5 * x]));
    let (_, recorded) = read(&input);
    let run = |options: &[&str]| {
        let residual = ["--residual", residual.to_str().unwrap()];
        denoise([&input, &output])
            .args(FAST)
            .arg("--no-dither")
            .args(residual)
            .args(options)
            .assert()
            .success();
        (read(&output).1, read(Path::new(residual[1])).1)
    };
    let (wet, removed) = run(&[]);
    let step = 1.0 / 32_768.0;
    let close = |a: f32, b: f32| (a - b).abs() < 1.1 * step;
    assert!(wet.iter().zip(&removed).zip(&recorded).all(|((a, b), c)| close(a + b, *c)));
    assert!(removed.iter().any(|x| x.abs() > 100.0 * step));
    let (dry, nothing) = run(&["--mix", "0"]);
    assert!(dry == recorded && nothing.iter().all(|&x| x == 0.0));
    let (half, _) = run(&["--mix", "0.5"]);
    assert!(half.iter().zip(&wet).zip(&recorded).all(|((h, w), r)| close(*h, 0.5 * (w + r))));
    for mix in ["1.1", "-0.1", "nan", "x"] {
        denoise([&input, &output]).arg(format!("--mix={mix}")).assert().code(USAGE);
    }
    fails(&[&input, &output], &["--residual", input.to_str().unwrap()], OUTPUT, &["same file"]);
    fails(&[&input, &output], &["--residual", output.to_str().unwrap()], USAGE, &["twice"]);
}

#[test]
fn separate_channels_are_as_if_alone() {
    let folder = Folder::new();
    let [input, left, output] = ["in.wav", "left.wav", "out.wav"].map(|name| folder.join(name));
    let (first, second) = (noisy(1.0), voice(16_000, 1.0, 200.0));
    write(&left, spec(16_000, 1), first.iter().copied());
    write(&input, spec(16_000, 2), first.iter().zip(&second).flat_map(|(&a, &b)| [a, b]));
    let left_of = |output: &Path| -> Vec<f32> { read(output).1.chunks(2).map(|pair| pair[0]).collect() };
    denoise([&input, &output]).args(FAST).args(["--channels", "separate"]).assert().success();
    let separate = left_of(&output);
    denoise([&input, &output]).args(FAST).assert().success();
    assert!(separate != left_of(&output));
    denoise([&left, &output]).args(FAST).assert().success();
    assert!(separate == read(&output).1);
}

#[test]
fn the_strength_decides_how_much_noise_stays() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(16_000, 1), hiss(16_000).map(|x| 0.2 * x));
    let power = |options: &[&str]| {
        denoise([&input, &output]).args(FAST).args(options).assert().success();
        read(&output).1.iter().map(|x| x * x).sum::<f32>()
    };
    let [gentle, normal, strong] = ["gentle", "normal", "strong"].map(|how| power(&["--strength", how]));
    // Where there is nothing but noise, a normal strength may take out all that a strong one does.
    assert!(gentle > 2.0 * normal && normal >= strong, "{gentle} {normal} {strong}");
    assert_eq!(gentle, power(&["--floor-db", "-12"]));
    denoise([&input, &output]).args(["--strength", "strong", "--floor-db", "-12"]).assert().code(USAGE);
}

/// Noise under a voice that never pauses: only the stretch without it tells the two apart.
#[test]
fn the_noise_can_be_learned_from_a_stretch() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let tones = |time: f32| (1..20).map(|k| (TAU * 200.0 * k as f32 * time).sin() / k as f32).sum::<f32>();
    let clean: Vec<f32> =
        (0..64_000).map(|n| if n < 48_000 { 0.1 * tones(n as f32 / 16_000.0) } else { 0.0 }).collect();
    let noisy: Vec<f32> = clean.iter().zip(hiss(64_000)).map(|(s, n)| s + 0.1 * n).collect();
    write(&input, spec(16_000, 1), noisy.iter().copied());
    // The listener knows by itself that tones are no voice.
    let quality = |options: &[&str]| {
        denoise([&input, &output]).args(FAST).arg("--no-neural").args(options).assert().success();
        si_sdr(&clean[..48_000], &read(&output).1[..48_000])
    };
    let (without, with) = (quality(&[]), quality(&["--noise-from", "3.1..0:04"]));
    assert!(with > without + 1.0, "{without:.2} dB without, {with:.2} dB with");

    for (stretch, words) in
        [("9..10", "ends at 4.00 s"), ("3.5..4.5", "ends at 4.00 s"), ("1..1.01", "shorter")]
    {
        fails(&[&input, &output], &["--force", "--noise-from", stretch], USAGE, &["in.wav", words]);
    }
    for stretch in ["", "1", "1..1", "2..1", "-1..2", "a..b", "1:75..2:00", "0..nan", "1:2:3:4..9"] {
        denoise([&input, &output]).arg(format!("--noise-from={stretch}")).assert().code(USAGE);
    }
    fails(&[Path::new("-"), &output], &["--force", "--noise-from", "0..1"], USAGE, &["needs a file"]);
    write(&input, spec(16_000, 1), noisy.iter().enumerate().map(|(n, &x)| if n < 9_000 { 0.0 } else { x }));
    fails(&[&input, &output], &["--force", "--noise-from", "..0.5"], USAGE, &["in.wav", "silent"]);
}

#[test]
fn levels_are_a_table_of_bands_and_slots() {
    let folder = Folder::new();
    let (input, output, levels) = (folder.join("in.wav"), folder.join("out.wav"), folder.join("levels.csv"));
    write(&input, spec(16_000, 2), noisy(1.0).into_iter().flat_map(|x| [x, 0.5 * x]));
    let file = levels.to_str().unwrap();
    denoise([&input, &output]).args(FAST).args(["--levels", file]).assert().success();
    let table = fs::read_to_string(&levels).unwrap();
    let mut rows = table.lines();
    let header = "channel,start_seconds,low_hz,high_hz,level_dbfs,lower_dbfs,upper_dbfs";
    assert_eq!(rows.next(), Some(header));
    let rows: Vec<Vec<f64>> =
        rows.map(|row| row.split(',').map(|value| value.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), 10 * 18);
    for (index, row) in rows.iter().enumerate() {
        let &[channel, start, low, high, level, lower, upper] = row.as_slice() else { panic!("{row:?}") };
        assert_eq!((channel, start), (1.0, (index / 18) as f64 / 10.0));
        assert!((high / low - 2.0_f64.cbrt()).abs() < 0.01 && lower < level && level < upper, "{row:?}");
    }
    // The voice is of the size of the recording.
    let sum: f64 = rows.iter().map(|row| 10.0_f64.powf(row[4] / 10.0)).sum::<f64>() / 10.0;
    let (_, samples) = read(&output);
    let square = samples.iter().map(|x| f64::from(x * x)).sum::<f64>() / samples.len() as f64;
    assert!((10.0 * (sum / square).log10()).abs() < 3.0, "{sum} {square}");
    // The same output without it; channels by themselves; no input is replaced.
    let voice = fs::read(&output).unwrap();
    denoise([&input, &output]).args(FAST).assert().success();
    assert!(fs::read(&output).unwrap() == voice);
    let separate = ["--channels", "separate", "--levels", file];
    denoise([&input, &output]).args(FAST).args(separate).assert().success();
    assert_eq!(fs::read_to_string(&levels).unwrap().lines().count(), 1 + 2 * 180);
    fails(&[&input, &output], &["--force", "--levels", input.to_str().unwrap()], OUTPUT, &["in.wav"]);
    write(&input, spec(8_000, 1), [0.0; 1_000]);
    denoise([&input, &output]).args(FAST).args(["--levels", file]).assert().success();
    assert!(fs::read_to_string(&levels).unwrap().lines().skip(1).all(|row| row.ends_with(",,,")));
}

#[test]
fn statistics_and_figures_tell_what_was_found() {
    let folder = Folder::new();
    let [input, output, stats, svg, png] =
        ["in.wav", "out.wav", "stats.json", "figure.svg", "figure.png"].map(|name| folder.join(name));
    write(&input, spec(16_000, 2), noisy(1.0).into_iter().flat_map(|x| [x, 3.0 * x]));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    denoise([&input, &output])
        .args(["-q", "--em-iterations", "6", "--iterations", "20", "--seed", "5"])
        .args(["--stats", &path(&stats), "--plot", &path(&svg)])
        .assert()
        .success();
    let record: serde_json::Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(record["settings"]["seed"], 5);
    assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(record["dictionary_sha256"].as_str().unwrap().len(), 64);
    // Nothing is refined where a listener hears.
    let file = &record["files"][0];
    for (key, value) in [("sample_rate", 16_000), ("channels", 2), ("samples", 16_000), ("clicks", 0)] {
        assert_eq!(file[key], value, "{key}");
    }
    for key in [
        "snr_before_db",
        "snr_after_db",
        "expected_sdr_db",
        "noise_before_dbfs",
        "noise_after_dbfs",
        "real_time_factor",
        "clipped_samples",
        "clipped_input_samples",
        "damaged_packets",
    ] {
        assert!(file[key].is_number(), "{key}");
    }
    assert_eq!(file["reverberation_seconds"].as_array().map(Vec::len), Some(6));
    let precision = &file["monte_carlo"];
    assert_eq!(precision["draws"], 10);
    let error = precision["gain_standard_error"].as_f64().unwrap();
    assert!(error > 1e-4 && error < 0.1, "{error}");
    assert!(precision["effective_draws"].as_f64().is_some_and(|draws| (1.0..20.0).contains(&draws)));
    let figure = fs::read_to_string(&svg).unwrap();
    for title in ["Before", "After", "Removed", "90 % interval", "in.wav", "0:01.0, 16 kHz, stereo"] {
        assert!(figure.contains(title), "{title}");
    }
    assert!(!figure.contains("Posterior standard deviation"), "ten draws do not say much of it");
    denoise([&input, &output])
        .args(["--force", "--em-iterations", "6", "--iterations", "40", "--plot", &path(&svg)])
        .args(["--plot-scale", "mel"])
        .assert()
        .success();
    assert!(fs::read_to_string(&svg).unwrap().contains("Posterior standard deviation"));
    // Nothing is sampled: there is no posterior to show.
    let assert = denoise([&input, &output])
        .args(["--force", "--quality", "fast", "--stats", "-", "--plot", &path(&png)])
        .assert()
        .success();
    let record: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert!(record["files"][0]["monte_carlo"].is_null());
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    fails(&[&input, &output], &["--plot", "figure.gif"], USAGE, &["figure.gif", "SVG or PNG"]);
    let nowhere = path(&folder.join("missing").join("stats.json"));
    fails(&[&input, &output], &["--force", "--stats", &nowhere], OUTPUT, &["stats.json", "missing"]);
}

#[test]
fn folders_are_worked_through_whatever_is_in_them() {
    let folder = Folder::new();
    let (recordings, results) = (folder.join("in"), folder.join("in").join("out"));
    fs::create_dir_all(recordings.join("more")).unwrap();
    write(&recordings.join("a.wav"), spec(16_000, 1), noisy(0.5));
    write(&recordings.join("more").join("b.WAV"), spec(8_000, 2), hiss(4_000));
    fs::write(recordings.join("c.flac"), "not audio").unwrap();
    fs::write(recordings.join("notes.txt"), "not a recording").unwrap();
    let arguments = |results: &Path, options: &[&str]| {
        let mut command = denoise([recordings.as_path(), Path::new("-o"), results]);
        command.args(["--quality", "fast"]).args(options);
        command
    };
    let table = |command: &mut Command, code: i32| {
        let assert = command.assert().code(code);
        assert!(assert.get_output().stdout.is_empty());
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let stats = folder.join("stats.json");
    let summary =
        table(&mut arguments(&results, &["--threads", "3", "--stats", stats.to_str().unwrap()]), INPUT);
    assert!(summary.contains("failed: not an audio file") && summary.contains("SNR before"), "{summary}");
    assert!(summary.contains("2 denoised, 0 skipped, 1 failed"), "{summary}");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    let outcomes: Vec<_> = record["files"].as_array().unwrap().iter().map(|file| &file["outcome"]).collect();
    assert_eq!(outcomes, ["denoised", "failed", "denoised"]);
    assert_eq!(read(&results.join("more").join("b.WAV")).0, spec(8_000, 2));
    assert!(!results.join("c.flac").exists());

    let alone = folder.join("alone.wav");
    denoise([&recordings.join("a.wav"), &alone]).args(FAST).args(["--threads", "1"]).assert().success();
    let first = fs::read(results.join("a.wav")).unwrap();
    assert!(first == fs::read(&alone).unwrap(), "the result is that of the file alone");

    // The results below the folder are no inputs, and are kept unless asked otherwise.
    fs::remove_file(recordings.join("c.flac")).unwrap();
    assert!(table(&mut arguments(&results, &[]), 0).contains("0 denoised, 2 skipped, 0 failed"));
    fs::write(results.join("a.wav"), "kept").unwrap();
    assert!(table(&mut arguments(&results, &[]), OUTPUT).contains("0 denoised, 1 skipped, 1 failed"));
    assert_eq!(fs::read(results.join("a.wav")).unwrap(), b"kept");
    assert_eq!(table(&mut arguments(&results, &["--force", "-q"]), 0), "");
    assert!(first == fs::read(results.join("a.wav")).unwrap());
}

#[test]
fn folders_that_cannot_work_are_refused_before_any_work() {
    let folder = Folder::new();
    let (recordings, empty, results) = (folder.join("in"), folder.join("empty"), folder.join("out"));
    for new in [&recordings, &empty] {
        fs::create_dir(new).unwrap();
    }
    let (wav, again) = (recordings.join("a.wav"), folder.join("a.wav"));
    write(&wav, spec(16_000, 1), noisy(0.3));
    fs::copy(&wav, &again).unwrap();
    let to = Path::new("-o");
    fails(&[&empty, to, &results], &[], INPUT, &["empty", "no audio file"]);
    fails(&[&wav, to, &recordings], &[], OUTPUT, &["same file"]);
    fails(&[&recordings, to, &recordings], &[], USAGE, &["would replace"]);
    fails(&[Path::new("-"), to, &results], &[], USAGE, &["standard input"]);
    fails(&[&recordings, &results], &[], USAGE, &["is a folder", "-o DIR"]);
    fails(&[&wav, &recordings], &[], USAGE, &["is a folder", "-o"]);
    fails(&[&wav, &again, &results], &[], USAGE, &["-o DIR"]);
    fails(&[&wav], &[], USAGE, &["no output", "-o DIR"]);
    assert!(!results.exists());
    fails(&[&wav, to, &again], &[], OUTPUT, &["a.wav", "not a folder"]);
    // Nor is any input replaced by what is told of it.
    let (same, model) = (wav.to_str().unwrap(), folder.join("model"));
    fails(&[&wav, to, &results], &["--stats", same], OUTPUT, &["same file"]);
    fails(&[Path::new("train"), &recordings, to, &wav], &[], OUTPUT, &["same file"]);
    fs::write(&model, "a dictionary").unwrap();
    let model = model.to_str().unwrap();
    fails(&[&wav, &folder.join("b.wav")], &["--model", model, "--stats", model], OUTPUT, &["same file"]);
    fs::create_dir(&results).unwrap();
    let stats = results.join("a.wav");
    fails(&[&wav, to, &results], &["--stats", stats.to_str().unwrap()], USAGE, &["twice"]);
    // A missing recording among sound ones.
    denoise([folder.join("missing.wav").as_path(), &wav, to, &results]).args(FAST).assert().code(INPUT);
    assert_eq!(read(&results.join("a.wav")).1.len(), 4_800);
    let file = wav.to_str().unwrap();
    for option in ["--residual", "--plot"] {
        fails(&[&wav, to, &results], &[option, file], OUTPUT, &["not a folder"]);
    }
}

#[test]
fn output_errors_name_the_output_and_nothing_else() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    write(&input, spec(16_000, 1), noisy(0.3));
    for output in [input.join("out.wav"), folder.join("missing").join("out.wav")] {
        let assert = denoise([&input, &output]).args(FAST).assert().code(OUTPUT);
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let expected = format!("denoise: {}: cannot be written: ", output.display());
        assert!(message.starts_with(&expected) && !message.contains(".part"), "{message}");
    }
    #[cfg(target_os = "linux")]
    {
        fails(&[&input, Path::new("/dev/full")], &["-q"], OUTPUT, &["/dev/full: cannot be written", "space"]);
        denoise([&input, Path::new("/dev/null")]).args(FAST).assert().success();
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut child = spawn(&[&input, Path::new("-")], full.into());
        let message = rest_of(child.stderr.take().unwrap());
        assert_eq!(child.wait().unwrap().code(), Some(OUTPUT));
        assert!(message.starts_with("denoise: standard output: cannot be written: No space"), "{message}");
    }
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
fn a_closed_pipe_is_one_line() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    write(&input, spec(16_000, 1), noisy(0.5));
    let mut child = spawn(&[&input, Path::new("-")], Stdio::piped());
    drop(child.stdout.take());
    let message = rest_of(child.stderr.take().unwrap());
    assert_eq!(child.wait().unwrap().code(), Some(OUTPUT));
    assert!(message.starts_with("denoise: standard output: cannot be written"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

/// A named pipe can be read once, and results go to pipes and devices as to files.
#[test]
#[cfg(unix)]
fn pipes_with_names_are_read_and_written() {
    let folder = Folder::new();
    let [input, fifo, output] = ["in.wav", "fifo", "out.wav"].map(|name| folder.join(name));
    write(&input, spec(16_000, 1), noisy(0.5));
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let bytes = fs::read(&input).unwrap();
    let writer = thread::spawn({
        let fifo = fifo.clone();
        move || fs::write(fifo, bytes)
    });
    let mut command = denoise([&fifo, &output]);
    command.args(FAST).timeout(Duration::from_secs(60)).assert().success();
    writer.join().unwrap().unwrap();
    assert_eq!(read(&output).1.len(), 8_000);
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    let mut command = denoise([&input, &output]);
    command.args(FAST).arg("--stats").arg(&fifo).timeout(Duration::from_secs(60)).assert().success();
    assert!(serde_json::from_slice::<serde_json::Value>(&reader.join().unwrap()).is_ok());
}

/// A live stream is denoised while it lasts: block by block of 8.192 s, but for the overlap with what comes.
#[test]
fn the_first_output_comes_after_one_block() {
    const BLOCK: usize = 65_536;
    let mut child = spawn(&["-", "-", "--raw", "8000:1:s16"].map(Path::new), Stdio::piped());
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut bytes = vec![0; 44 + 2 * (BLOCK - 5_000)];
        output.read_exact(&mut bytes).unwrap();
        sender.send(()).unwrap();
        output.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let samples: Vec<u8> = hiss(20 * 8_000).flat_map(|x| ((x * 5_000.0) as i16).to_le_bytes()).collect();
    let (first, rest) = samples.split_at(2 * BLOCK);
    input.write_all(first).unwrap();
    input.flush().unwrap();
    receiver.recv_timeout(Duration::from_secs(60)).expect("some output while the input is open");
    input.write_all(rest).unwrap();
    drop(input);
    assert_eq!(decode(reader.join().unwrap())[0].len(), 20 * 8_000);
    assert!(child.wait().unwrap().success());
}

#[test]
#[cfg(unix)]
fn interrupts_leave_nothing() {
    let interrupt = |child: &mut Child| {
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let message = rest_of(child.stderr.take().unwrap());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{message}");
        assert!(message.starts_with("denoise: ") && message.trim_end().ends_with("interrupted"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    let wait_for = |what: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(240));
            thread::sleep(Duration::from_millis(5));
        }
    };
    let folder = Folder::new();
    let (input, output, results) = (folder.join("in.wav"), folder.join("out.wav"), folder.join("results"));
    write(&input, spec(48_000, 1), hiss(60 * 48_000));
    // In the middle of a long file.
    let mut child = spawn(&[&input, &output], Stdio::null());
    wait_for(&|| folder.names().len() > 1);
    interrupt(&mut child);
    // Among the files of a folder.
    let mut child = spawn(&[&input, Path::new("-o"), &results], Stdio::null());
    wait_for(&|| fs::read_dir(&results).is_ok_and(|mut entries| entries.next().is_some()));
    interrupt(&mut child);
    assert_eq!(fs::read_dir(&results).unwrap().count(), 0);
    // While it waits for input that does not come.
    fs::write(&output, "before").unwrap();
    let mut child = spawn(&["-".as_ref(), &output, "--raw".as_ref(), "16000:1:s16".as_ref()], Stdio::null());
    wait_for(&|| folder.names().len() > 3);
    interrupt(&mut child);
    assert_eq!(folder.names(), ["in.wav", "out.wav", "results"]);
    assert_eq!(fs::read(&output).unwrap(), b"before");
}

/// A run that cannot end in good order, as nobody takes its output.
#[test]
#[cfg(unix)]
fn a_second_interrupt_ends_at_once_and_leaves_nothing() {
    let folder = Folder::new();
    let (input, residual) = (folder.join("in.wav"), folder.join("residual.wav"));
    write(&input, spec(16_000, 1), hiss(20 * 16_000));
    for signal in ["-INT", "-TERM", "-HUP"] {
        let arguments = [&input, Path::new("-"), Path::new("--residual"), &residual];
        let mut child = spawn(&arguments, Stdio::piped());
        // It fills the pipe.
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0; 45]).unwrap();
        assert_eq!(folder.names().len(), 2, "the residual is being written");
        thread::sleep(Duration::from_millis(200));
        let pid = child.id().to_string();
        let kill =
            || assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        kill();
        thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none(), "{signal}");
        kill();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert_eq!(folder.names(), ["in.wav"], "{signal}");
    }
}

#[test]
fn damaged_files_that_bring_decoders_to_panic_cost_one_line() {
    let folder = Folder::new();
    let regressions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("fuzz").join("regressions");
    let files: Vec<PathBuf> = fs::read_dir(regressions).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        fails(&[&file, &folder.join("out.wav")], &["-q"], INPUT, &[&file.display().to_string()]);
    }
    assert!(folder.names().is_empty());
}

#[test]
fn manual_and_completions_know_every_option() {
    let printed = |arguments: &[&str]| {
        let assert = denoise(arguments).assert().success().stderr("");
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("noise-from") && script.contains("protocol"), "{shell}");
    }
    denoise(["completions", "csh"]).assert().code(USAGE);
    let page = printed(&["man"]);
    assert!(page.contains(".TH denoise 1") && page.contains("noise\\-from") && page.contains("interrupted"));
    assert!(printed(&["man", "train"]).contains("rank"));
    denoise(["man", "nothing"]).assert().code(USAGE);
    let help = printed(&["--help"]);
    assert!(help.contains("Exit codes") && help.contains("  130  interrupted\n"));
}

#[test]
fn the_log_has_levels() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(16_000, 1), noisy(0.3));
    let log = |level: &str| {
        let assert = denoise([&input, &output])
            .args(["--force", "--quality", "fast", "--log", level])
            .assert()
            .success();
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    assert!(log("info").contains("dictionary"));
    for level in ["error", "warn"] {
        assert_eq!(log(level).lines().count(), 1, "the summary alone");
    }
    denoise([&input, &output]).args(["--log", "loud"]).assert().code(USAGE);
    denoise([&input, &output]).args(["--log", "info", "-q"]).assert().code(USAGE);
}
