//! Denoising of folders, and training on folders.

use crate::shared::*;
use crate::si_sdr;
use assert_cmd::Command;
use std::fs;
use std::path::Path;

#[test]
fn folders_are_processed_whatever_they_hold() {
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

    // Results below the input folder are no inputs, and are kept without --force.
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
    fails(
        &[&recordings, to, &results],
        &["--raw", "16000:1:s16"],
        USAGE,
        &["in is a folder", "name its files"],
    );
    fails(&[&wav, to, Path::new("-")], &[], USAGE, &["name a folder"]);
    for option in ["--residual", "--plot", "--levels", "--speech"] {
        fails(&[&wav, to, &results], &[option, "-"], USAGE, &["name a folder"]);
    }
    fails(&[&recordings, &results], &[], USAGE, &["is a folder", "-o DIR"]);
    fails(&[&wav, &recordings], &[], USAGE, &["is a folder", "-o"]);
    fails(&[&wav, &again, &results], &[], USAGE, &["-o DIR"]);
    fails(&[&wav], &[], USAGE, &["no output", "-o DIR"]);
    assert!(!results.exists());
    fails(&[&wav, to, &again], &[], OUTPUT, &["a.wav", "not a folder"]);
    // No statistics or dictionary replace an input.
    let (same, model) = (wav.to_str().unwrap(), folder.join("model"));
    fails(&[&wav, to, &results], &["--stats", same], OUTPUT, &["same file"]);
    fails(&[Path::new("train"), &recordings, to, &wav], &[], OUTPUT, &["same file"]);
    fs::write(&model, "a dictionary").unwrap();
    let model = model.to_str().unwrap();
    fails(&[&wav, &folder.join("b.wav")], &["--model", model, "--stats", model], OUTPUT, &["same file"]);
    fs::create_dir(&results).unwrap();
    let stats = results.join("a.wav");
    fails(&[&wav, to, &results], &["--stats", stats.to_str().unwrap()], USAGE, &["twice"]);
    // A missing recording does not stop the others.
    denoise([folder.join("missing.wav").as_path(), &wav, to, &results]).args(FAST).assert().code(INPUT);
    assert_eq!(read(&results.join("a.wav")).1.len(), 4_800);
    let file = wav.to_str().unwrap();
    for option in ["--residual", "--plot"] {
        fails(&[&wav, to, &results], &[option, file], OUTPUT, &["not a folder"]);
    }
}

#[test]
fn a_dictionary_trained_on_a_folder_denoises() {
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

    // A recording without content above the dictionary's band is left out; the other one extends the dictionary.
    let continued = folder.join("continued.safetensors");
    let summary = denoise([Path::new("train"), &speech, Path::new("-o"), &continued])
        .args(["--continue", model.to_str().unwrap(), "--iterations", "3"])
        .assert()
        .code(3);
    let summary = String::from_utf8_lossy(&summary.get_output().stderr).into_owned();
    assert!(summary.contains("low.wav: no content above 8000 Hz"), "{summary}");
    assert!(
        summary.contains("mine.safetensors with its spectra extended") && summary.contains("in 1 file,"),
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

/// Extensions end at the highest frequency of the speech.
#[test]
fn a_dictionary_is_extended_as_far_as_the_speech_goes() {
    let folder = Folder::new();
    let (speech, narrow, wide) = (folder.join("speech"), folder.join("narrow"), folder.join("wide"));
    fs::create_dir(&speech).unwrap();
    for (rate, reached) in [(16_000, "8 kHz"), (44_100, "22 kHz"), (48_000, "23.5 kHz")] {
        write(&speech.join("a.wav"), spec(rate, 1), hiss(rate as usize).map(|x| 0.1 * x));
        denoise([Path::new("train"), &speech, Path::new("-o"), &narrow])
            .args(["--rate", "8000", "--rank", "2", "--iterations", "1", "--force"])
            .assert()
            .success();
        let extended = denoise([Path::new("train"), &speech, Path::new("-o"), &wide])
            .args(["--continue", narrow.to_str().unwrap(), "--iterations", "1", "--force"])
            .assert()
            .success();
        let summary = String::from_utf8_lossy(&extended.get_output().stderr).into_owned();
        assert!(
            summary.contains(&format!("narrow with its spectra extended to {reached}, from")),
            "{summary}"
        );
    }
}

#[test]
fn invalid_folders_are_named() {
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
    fails(&["--rate", "4000"], USAGE, &["--rate is 4000: expected 8000 to 192000"]);
    fails(&["--rank", "0"], USAGE, &["--rank is 0: expected 1 to 1000"]);
    fails(&["--rank", "900"], INPUT, &["900"]);
    fails(&["--alpha", "3"], USAGE, &["0.2 to 2"]);
    fails(&["--iterations", "0"], USAGE, &["1 to 100000"]);
    fails(&["--window", "2"], USAGE, &["--window is 2: expected 0.001 to 1"]);
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/speech-16k.safetensors");
    let extended = ["--continue", built_in.to_str().unwrap(), "--iterations", "0"];
    fails(&extended, USAGE, &["--iterations is 0: expected 1 to 100000"]);
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
