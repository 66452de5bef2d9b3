//! The output: cleaner than the input, in its format, reproducible by the seed, and as set by the options.

use crate::shared::*;
use crate::si_sdr;
use std::f32::consts::TAU;
use std::fs;
use std::path::Path;

#[test]
fn the_demo_clip_gets_cleaner_and_keeps_its_format() {
    let folder = Folder::new();
    let (input, output) = (demo("demo-noisy.wav"), folder.join("voice.wav"));
    let summary = stderr_of(denoise([&input, &output]), 0);
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
fn clipped_samples_are_restored_on_request() {
    let folder = Folder::new();
    let input = folder.join("clipped.wav");
    let loud = voice(16_000, 2.0, 130.0);
    let peak = loud.iter().fold(0.0_f32, |peak, x| peak.max(x.abs()));
    write(&input, spec(16_000, 1), loud.iter().map(|x| (2.0 * x / peak).clamp(-0.999, 0.999)));
    let output = folder.join("voice.wav");
    let run = |options: &[&str], code| {
        let mut command = denoise([&input, &output]);
        command.arg("--force").args(options);
        stderr_of(command, code)
    };
    assert!(run(&[], 0).contains(" clipped input samples (--declip restores them)"));
    let summary = run(&["--declip", "--floor-db=0"], 0);
    assert!(
        summary.contains(" clipped input samples restored") && !summary.contains("in the output"),
        "{summary}"
    );
    // Restored peaks exceed half the level of clipping, and do not reach full scale.
    let highest = read(&output).1.iter().fold(0.0_f32, |highest, x| highest.max(x.abs()));
    assert!((0.6..1.0).contains(&highest), "{highest}");
    let refused = run(&["--live", "--declip"], 2);
    assert!(refused.contains("--declip"), "{refused}");
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
fn silence_stays_silence() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(44_100, 2), std::iter::repeat_n(0.0, 30_000));
    let assert = denoise([&input, &output]).assert().success();
    assert!(String::from_utf8_lossy(&assert.get_output().stderr).contains("silence or a constant level"));
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
fn stereo_keeps_its_image() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let left: Vec<f32> =
        voice(16_000, 1.0, 140.0).into_iter().zip(hiss(16_000)).map(|(s, n)| s + 0.02 * n).collect();
    write(&input, spec(16_000, 2), left.iter().flat_map(|&x| [x, 0.5 * x]));
    denoise([&input, &output]).args(FAST).assert().success();
    let (_, samples) = read(&output);
    let (pairs, _) = samples.as_chunks::<2>();
    assert!(pairs.iter().any(|[left, _]| left.abs() > 0.05));
    for [left, right] in pairs {
        assert!((0.5 * left - right).abs() < 3.0 / 32_768.0, "{left} {right}");
    }
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
    denoise([&input, &output]).args(FAST).args(["--channels", "shared"]).assert().success();
    assert!(separate != left_of(&output));
    denoise([&left, &output]).args(FAST).assert().success();
    assert!(separate == read(&output).1);
}

#[test]
fn faint_noise_is_dithered_by_default() {
    // Peaks of 6 codes, -75 dBFS: the remaining noise is below half a code.
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
        denoise([&input, &output]).args(FAST).args(residual).args(options).assert().success();
        (read(&output).1, read(Path::new(residual[1])).1)
    };
    let step = 1.0 / 32_768.0;
    let close = |a: f32, b: f32| (a - b).abs() < 1.1 * step;
    for (options, most) in [(&[][..], 5), (&["--no-dither"], recorded.len())] {
        let (wet, removed) = run(options);
        let sums = wet.iter().zip(&removed).map(|(wet, removed)| wet + removed).zip(&recorded);
        // A sum is one code off if a float is midway between two codes, which is rare with dither.
        let differing = sums.clone().filter(|(sum, recorded)| sum != *recorded).count();
        assert!(differing <= most, "{options:?}: {differing} of {}", recorded.len());
        assert!(sums.clone().all(|(sum, recorded)| close(sum, *recorded)), "{options:?}");
    }
    let (wet, removed) = run(&["--no-dither"]);
    assert!(removed.iter().any(|x| x.abs() > 100.0 * step));
    let (dry, nothing) = run(&["--mix", "0"]);
    assert!(dry == recorded && nothing.iter().all(|&x| x == 0.0));
    let (half, _) = run(&["--mix", "0.5", "--no-dither"]);
    assert!(half.iter().zip(&wet).zip(&recorded).all(|((h, w), r)| close(*h, 0.5 * (w + r))));
    for mix in ["1.1", "-0.1", "nan", "x"] {
        denoise([&input, &output]).arg(format!("--mix={mix}")).assert().code(USAGE);
    }
    fails(&[&input, &output], &["--residual", input.to_str().unwrap()], OUTPUT, &["same file"]);
    fails(&[&input, &output], &["--residual", output.to_str().unwrap()], USAGE, &["twice"]);
    #[cfg(unix)]
    for standard in ["-", "/dev/stdout", "/dev/fd/1"] {
        fails(&[&input, Path::new(standard)], &["--levels", "-"], USAGE, &["standard output", "twice"]);
    }
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
    // In noise alone, the normal strength may remove as much as the strong one.
    assert!(gentle > 2.0 * normal && normal >= strong, "{gentle} {normal} {strong}");
    assert_eq!(gentle, power(&["--floor-db", "-12"]));
    denoise([&input, &output]).args(["--strength", "strong", "--floor-db", "-12"]).assert().code(USAGE);
}

/// Noise under a voice without pauses: only the section of noise alone distinguishes them.
#[test]
fn the_noise_can_be_estimated_from_a_section() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    // The tones glide, as steady tones would be detected as hum.
    let tones = |time: f32| {
        (1..20).map(|k| (TAU * (200.0 + 5.0 * time) * k as f32 * time).sin() / k as f32).sum::<f32>()
    };
    let clean: Vec<f32> =
        (0..64_000).map(|n| if n < 48_000 { 0.1 * tones(n as f32 / 16_000.0) } else { 0.0 }).collect();
    let noisy: Vec<f32> = clean.iter().zip(hiss(64_000)).map(|(s, n)| s + 0.1 * n).collect();
    write(&input, spec(16_000, 1), noisy.iter().copied());
    // The speech-presence network would detect that tones are not speech.
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
    let negative = denoise([&input, &output]).args(["--noise-from", "-1..1"]).assert().code(USAGE);
    let stderr = String::from_utf8_lossy(&negative.get_output().stderr).into_owned();
    assert!(stderr.contains("'-1..1'") && stderr.contains("expected START..END in seconds"), "{stderr}");
    fails(&[Path::new("-"), &output], &["--force", "--noise-from", "0..1"], USAGE, &["needs a file"]);
    write(&input, spec(16_000, 1), noisy.iter().enumerate().map(|(n, &x)| if n < 9_000 { 0.0 } else { x }));
    fails(&[&input, &output], &["--force", "--noise-from", "..0.5"], USAGE, &["in.wav", "silent"]);
}
