//! Inputs, outputs, options and dictionaries that are refused: one line, an exit code, and nothing is overwritten.

use crate::shared::*;
use hound::{SampleFormat, WavSpec};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn a_number_that_is_none_is_answered_with_an_example() {
    for value in ["0,8", "80%"] {
        let assert = denoise(["in.wav", "out.wav", "--mix", value]).assert().code(USAGE);
        let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let expected =
            format!("invalid value '{value}' for '--mix <FRACTION>': expected a number such as 0.8");
        assert!(stderr.contains(&expected) && !stderr.contains("literal"), "{stderr}");
    }
    for (option, value) in [("--iterations", "8.5"), ("--burn-in", "-1"), ("--noise-rank", "few")] {
        let assert = denoise(["in.wav", "out.wav", option, value]).assert().code(USAGE);
        let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let expected = format!(
            "invalid value '{value}' for '{option} <N>': expected a whole number such as 8, not below 0"
        );
        assert!(stderr.contains(&expected), "{stderr}");
    }
}

#[test]
fn numbers_below_zero_are_values() {
    let folder = Folder::new();
    let [speech, model] = [demo(""), folder.join("m.safetensors")];
    let training = ["train", speech.to_str().unwrap(), "-o", model.to_str().unwrap()];
    for (arguments, options) in [
        (&["in.wav", "out.wav"][..], &["--threads", "--latency", "--mix", "--iterations"][..]),
        (&training, &["--threads", "--rate", "--rank", "--alpha", "--iterations", "--window"]),
        (&["eval", "--clean", "c", "--noisy", "n"], &["--high-pass", "--latency"]),
        (&["live"], &["--latency"]),
    ] {
        for option in options {
            let assert = denoise(arguments).args([option, "-1"]).assert().code(USAGE);
            let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
            assert!(stderr.contains(option) && stderr.contains("expected"), "{option}: {stderr}");
        }
    }
    for threads in ["0", "1025", "two"] {
        let assert = denoise(["in.wav", "out.wav", "--threads", threads]).assert().code(USAGE);
        let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(stderr.contains("'--threads <N>': expected a whole number from 1 to 1024"), "{stderr}");
    }
}

#[test]
fn invalid_inputs_are_named_and_leave_no_output() {
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
        fails(&[&input, &output], &[], INPUT, &["in.wav", "sample 501 of channel 2", name]);
    }
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
#[cfg(unix)]
fn line_breaks_in_names_are_shown() {
    let folder = Folder::new();
    let [input, other] = ["a\nb.wav", "c\nd.wav"].map(|name| folder.join(name));
    fails(&[&input, &folder.join("out.wav")], &[], INPUT, &["a\\nb.wav: no such file"]);
    let message = stderr_of(denoise([&input, &other, Path::new("-o"), &folder.join("out")]), INPUT);
    assert!(message.contains("  failed: no such file\n"), "the name has a column of its own: {message}");
}

#[test]
fn invalid_outputs_are_named_and_nothing_is_overwritten() {
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
    // The path of the figure is checked before the input is read.
    let long = format!("{}.svg", "a".repeat(300));
    let missing = folder.join("missing.wav");
    fails(&[&missing, &folder.join("out.wav")], &["--plot", &long], OUTPUT, &[&long, "cannot be written"]);
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
fn options_out_of_range_report_their_range() {
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
    // Options that would have no effect.
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
    for (options, words) in [
        (["--plot-scale", "mel"], "--plot-scale has no effect without --plot: omit it"),
        (["--latency", "8"], "--latency has no effect without --live: omit it"),
        (["--noise-from", "0..0.00001"], "--noise-from: the section is shorter than one sample"),
    ] {
        fails(&[&input, &output], &options, USAGE, &[words]);
    }
    let assert = denoise([&input]).args(["-o", "out", "--shard", "4/3"]).assert().code(USAGE);
    assert!(String::from_utf8_lossy(&assert.get_output().stderr).contains("K/N with 1 ≤ K ≤ N"));
    fails(
        &[&input, &output],
        &["--channels", "array"],
        INPUT,
        &["an array needs 2 to 16 channels", "found 1"],
    );
    // These errors are reported by the argument parser.
    for options in [["--threads", "0"], ["--seed", "x"], ["--sampler", "none"], ["--nonsense", "1"]] {
        denoise([&input, &output]).args(options).assert().code(USAGE);
    }
    denoise([&input]).assert().code(USAGE);
    denoise([""; 0]).assert().code(USAGE);
    assert!(folder.names().is_empty());
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
fn invalid_dictionaries_are_refused() {
    let folder = Folder::new();
    let (input, output, model) = (demo("demo-noisy.wav"), folder.join("out.wav"), folder.join("model"));
    let options = ["--model", model.to_str().unwrap()];
    fails(&[&input, &output], &options, DICTIONARY, &["model"]);
    fs::write(&model, "not a dictionary").unwrap();
    fails(&[&input, &output], &options, DICTIONARY, &["model", "not a speech dictionary"]);
    let shipped =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("models").join("speech-16k.safetensors");
    let bytes = fs::read(shipped).unwrap();
    fs::write(&model, &bytes[..bytes.len() / 2]).unwrap();
    fails(&[&input, &output], &options, DICTIONARY, &["model", "truncated"]);
    assert_eq!(folder.names(), ["model"]);
}

#[test]
fn inputs_that_need_much_memory_are_refused_beforehand() {
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
fn damaged_files_that_make_decoders_panic_cost_one_line() {
    let folder = Folder::new();
    let regressions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("fuzz").join("regressions");
    let files: Vec<PathBuf> = fs::read_dir(regressions).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        // ffmpeg, which can read some of them, is not on the PATH.
        let mut command = denoise([&file, &folder.join("out.wav")]);
        command.arg("-q").env("PATH", "");
        fails_as(command, INPUT, &[&file.display().to_string()]);
    }
    assert!(folder.names().is_empty());
}

#[test]
fn files_are_no_folders_of_results_or_reports() {
    let folder = Folder::new();
    let [input, file] = ["a.wav", "file"].map(|name| folder.join(name));
    write(&input, spec(16_000, 1), noisy(0.3));
    std::fs::write(&file, "x").unwrap();
    let slash = format!("{}/", file.display());
    let (out, folder_of) = (folder.join("out"), Path::new("-o"));
    fails(
        &[&input, folder_of, Path::new(&slash)],
        &[],
        OUTPUT,
        &["file/: cannot be written: it is not a folder"],
    );
    for option in ["--stats", "--levels", "--residual"] {
        fails(
            &[&input, folder_of, &out],
            &[option, &slash],
            OUTPUT,
            &["file/: cannot be written: it is not a folder"],
        );
    }
    // A file cannot contain folders.
    let below = file.join("x");
    let words = format!("x: cannot be written: {} is not a folder", file.display());
    fails(&[&input, folder_of, &below], &[], OUTPUT, &[&words]);
    fails(&[&input, &below.with_extension("wav")], &[], OUTPUT, &["file is not a folder"]);
    fails(&[&input, folder_of, &out], &["--plot", below.to_str().unwrap()], OUTPUT, &[&words]);
    assert_eq!(folder.names(), ["a.wav", "file"]);
}

#[test]
fn folders_and_files_are_not_taken_for_each_other() {
    let folder = Folder::new();
    write(&folder.join("n.wav"), spec(16_000, 1), noisy(0.3));
    let refused = |arguments: &[&str], words: &str| {
        let message = folder.run(arguments, USAGE);
        assert!(message.contains(words), "{message}");
        assert_eq!(folder.names(), ["n.wav"]);
    };
    for name in ["clean.wav", "clean.FLAC", "clean.mp4", "clean.mkv"] {
        refused(&["n.wav", "-o", name], &format!("-o is a folder: use `denoise n.wav {name}`"));
    }
    refused(&["n.wav", "m.wav", "-o", "clean.wav"], "-o is a folder, and clean.wav ends like a file");
    refused(&["n.wav", "newdir/"], "newdir/: no such folder: use -o newdir/");
    for report in ["--stats", "--levels", "--residual"] {
        refused(&["n.wav", "out.wav", report, "new/"], "new/ is a folder: name a file, or use -o DIR");
    }
    for (report, name, advice) in [
        ("--residual", "r.flac", ""),
        ("--plot", "p.svg", ""),
        ("--levels", "l.CSV", ""),
        ("--speech", "s.csv", ", and set --speech-format csv"),
        ("--speech", "s.TextGrid", ", and set --speech-format textgrid"),
    ] {
        let words = format!(
            "with -o, {report} is a folder, and {name} ends like a file: choose another name{advice}\n"
        );
        refused(&["n.wav", "-o", "out", report, name], &words);
    }
    // An existing folder with the extension of a file is accepted.
    std::fs::create_dir(folder.join("clean.wav")).unwrap();
    std::fs::create_dir(folder.join("s.csv")).unwrap();
    let reports = ["--speech", "s.csv", "--levels", "l.csv/"];
    denoise(["n.wav", "-o", "clean.wav"])
        .args(FAST)
        .args(reports)
        .current_dir(folder.0.path())
        .assert()
        .success();
    assert!(folder.join("s.csv/n.json").is_file() && folder.join("l.csv/n.csv").is_file());
}

/// A link to a missing folder, such as one on a disk that is not mounted.
#[test]
#[cfg(unix)]
fn links_to_nothing_are_named() {
    let folder = Folder::new();
    let [input, link, circle] = ["a.wav", "link", "circle"].map(|name| folder.join(name));
    write(&input, spec(16_000, 1), noisy(0.3));
    std::os::unix::fs::symlink("gone", &link).unwrap();
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    let to = Path::new("-o");
    let words = format!("a link to {}, which does not exist", folder.join("gone").display());
    let refused = |output: &Path, words: &str| fails(&[&input, to, output], &[], OUTPUT, &[words]);
    refused(&link, &format!("link: cannot be written: it is {words}"));
    refused(&link.join("x"), &format!("link is {words}"));
    refused(&circle, "it is a circle of links");
    // An output is created at the target of its link if the folder of the target exists.
    let film = folder.join("b.wav");
    std::os::unix::fs::symlink("gone/b.wav", &film).unwrap();
    fails(&[&input, &film], &[], OUTPUT, &["b.wav: cannot be written: no such folder: ", "gone"]);
    assert_eq!(folder.names(), ["a.wav", "b.wav", "circle", "link"]);
}

#[test]
fn what_flac_does_not_hold_is_refused_with_what_does() {
    let folder = Folder::new();
    let [input, output] = ["in.wav", "out.flac"].map(|name| folder.join(name));
    for (rate, channels) in [(192_000, 1), (8_000, 9)] {
        write(&input, spec(rate, channels), (0..9_000).map(|n| 0.1 * (n as f32).sin()));
        let words = ["out.flac", "name a .wav file, or use --format wav with -o"];
        fails(&[&input, &output], &[], OUTPUT, &words);
    }
}
