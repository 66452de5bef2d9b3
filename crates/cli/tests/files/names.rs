//! Names of results and reports: distinct, with any characters, and within the length limit of the system.

use crate::shared::*;
use crate::{recording, table};
use serde_json::Value;
use std::fs;
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::path::Path;

/// Recordings of one name from several folders have results in one folder.
#[test]
fn a_result_of_another_recording_stays() {
    let folder = Folder::new();
    ["mon", "tue", "wed"].iter().for_each(|day| fs::create_dir(folder.join(day)).unwrap());
    for (day, seconds) in [("mon", 0.3), ("tue", 0.4), ("wed", 0.5)] {
        write(&folder.join(day).join("rec.wav"), spec(16_000, 1), noisy(seconds));
    }
    let run = |arguments: &[&str], code| folder.run(&[arguments, &["-o", "out"]].concat(), code);
    run(&["mon/rec.wav"], 0);
    let words = "out/rec.wav is the result of mon/rec.wav: choose another folder";
    for options in [&["tue/rec.wav"][..], &["tue", "--mix", "0.5"]] {
        let message = run(options, OUTPUT);
        assert!(message.contains("1 failed") && message.contains(words), "{message}");
    }
    let samples = |name: &str| read(&folder.join("out").join(name)).1.len();
    assert_eq!(samples("rec.wav"), 4_800);
    // Recordings keep their numbers in any order of the inputs.
    assert!(run(&["tue", "mon"], 0).contains("1 denoised, 1 skipped"));
    assert!(run(&["wed", "mon", "tue"], 0).contains("1 denoised, 2 skipped"));
    assert!(run(&["tue/rec.wav"], 0).contains("0 denoised, 1 skipped"));
    assert!(run(&["wed", "mon"], 0).contains("0 denoised, 2 skipped"));
    let all = ["rec.wav", "rec-2.wav", "rec-3.wav"];
    assert_eq!(all.map(samples), [4_800, 6_400, 8_000]);
    // A recording that has been moved keeps its result, too.
    fs::rename(folder.join("mon"), folder.join("thu")).unwrap();
    assert!(run(&["thu"], 0).contains("0 denoised, 1 skipped"));
    assert!(run(&["tue", "thu", "--mix", "0.5"], 0).contains("2 denoised"));
    assert_eq!(all.map(samples), [4_800, 6_400, 8_000]);
}

/// The names of some reports are longer than those of their recordings.
#[test]
#[cfg(unix)]
fn names_that_are_too_long_are_refused_before_any_work() {
    let folder = Folder::new();
    let run = |arguments: &[&str]| {
        let message = folder.run(arguments, OUTPUT);
        assert!(message.contains("cannot be written: File name too long"), "{message}");
        message
    };
    recording(&folder.join("a.wav"));
    let long = "b".repeat(252);
    for stats in [format!("out/{long}.json"), format!("out/{long}.json/stats.json")] {
        run(&["a.wav", "-o", "out", "--stats", &stats]);
    }
    run(&["a.wav", "-o", &format!("out/{long}.long")]);
    // The name of the results' manifest starts with the shard.
    let manifest = format!("{}.json", "b".repeat(250));
    fs::write(folder.join(&manifest), r#"{"audio_filepath": "a.wav"}"#).unwrap();
    run(&["--manifest", &manifest, "-o", "out", "--shard", "1/2"]);
    assert_eq!(folder.names(), ["a.wav", &manifest]);
    // The other recordings are denoised.
    let recorded = format!("{}.wav", "b".repeat(251));
    recording(&folder.join(&recorded));
    let options = ["--speech", "out/speech", "--speech-format", "textgrid"];
    let message = run(&[&["a.wav", &recorded, "-o", "out"], &options[..]].concat());
    assert!(message.contains("1 denoised, 0 skipped, 1 failed"), "{message}");
    assert!(folder.join("out/speech/a.TextGrid").is_file() && !folder.join("out").join(&recorded).exists());
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_not_utf8_are_handled() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let odd = folder.0.path().join(std::ffi::OsStr::from_bytes(b"a\xff"));
    fs::create_dir(&odd).unwrap();
    let input = odd.join(std::ffi::OsStr::from_bytes(b"b\xfe.wav"));
    write(&input, spec(16_000, 1), noisy(1.0));
    let (results, stats) = (odd.join("out"), folder.join("stats.json"));
    denoise([&odd, Path::new("-o"), &results, Path::new("--stats"), &stats]).args(FAST).assert().success();
    assert!(results.join(input.file_name().unwrap()).is_file());
    let record: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(record["files"][0]["outcome"], "denoised");

    // The recording is used for training and scored against itself, by folders and by patterns.
    let clean = odd.join("clean");
    fs::create_dir(&clean).unwrap();
    fs::copy(&input, clean.join(input.file_name().unwrap())).unwrap();
    let (model, protocol) = (odd.join(std::ffi::OsStr::from_bytes(b"\xfd")), folder.join("p.toml"));
    fs::write(&protocol, "name = \"p\"\n[corpus]\nclean = [\"clean/b?.wav\"]\nnoisy = [\"*.wav\"]\n")
        .unwrap();
    let path = Path::new;
    let small = ["-q", "--rank", "2", "--iterations", "2"];
    denoise([path("train"), &clean, path("-o"), &model]).args(small).assert().success();
    let kept = odd.join("kept");
    let ways: [&[&Path]; 2] = [
        &[path("--clean"), &clean, path("--noisy"), &results, path("--model"), &model, path("--save"), &kept],
        &[path("--protocol"), &protocol, path("--data"), &odd],
    ];
    for way in ways {
        let scores = folder.join("scores.json");
        let outputs = [path("eval"), path("--json"), &scores];
        denoise(outputs).args(way).arg("-q").assert().success();
        let record: Value = serde_json::from_slice(&fs::read(&scores).unwrap()).unwrap();
        assert_eq!(record["evaluations"][0]["files"].as_array().unwrap().len(), 1);
        fs::remove_file(scores).unwrap();
    }
}

#[test]
fn names_are_one_however_they_are_spelled() {
    let folder = Folder::new();
    fs::create_dir_all(folder.join("in/b")).unwrap();
    ["in/a.wav", "in/b/c.wav"].into_iter().for_each(|name| recording(&folder.join(name)));
    let run = |arguments: &[&str], list: &str| {
        let mut command = denoise(arguments);
        command.args(["--quality", "fast"]).current_dir(folder.0.path()).write_stdin(list);
        stderr_of(command, 0)
    };
    // Paths as listed by `find .`.
    let message = run(&["--manifest", "-", "-o", "listed"], "./in/a.wav\n./in/b/c.wav\nin/a.wav\n");
    assert!(message.contains("2 denoised"), "{message}");
    assert!(folder.join("listed/in/b/c.wav").is_file() && folder.join("listed/in/a.wav").is_file());
    assert!(run(&["in/a.wav", "./in/a.wav", "in", "./in", "-o", "named"], "").contains("2 denoised"));
    assert!(run(&["in/b/../a.wav", "in", "in/../in/b", "-o", "above"], "").contains("2 denoised"));
}

/// A link to a folder, or a link to a file with that file's name, adds no result. A link with another name has its own.
#[test]
#[cfg(unix)]
fn names_are_one_by_way_of_links() {
    let folder = Folder::new();
    ["in", "links"].iter().for_each(|name| fs::create_dir(folder.join(name)).unwrap());
    recording(&folder.join("in/a.wav"));
    symlink("in", folder.join("newest")).unwrap();
    ["a.wav", "b.wav"]
        .iter()
        .for_each(|name| symlink("../in/a.wav", folder.join("links").join(name)).unwrap());
    let run = |arguments: &[&str]| folder.run(arguments, 0);
    assert!(run(&["in", "newest", "links/a.wav", "-o", "one"]).contains("1 denoised"));
    assert!(run(&["in", "links", "-o", "two"]).contains("2 denoised"));
    assert!(folder.join("two/b.wav").is_file() && !folder.join("two/a-2.wav").exists());
    // Each entry of a manifest refers to the one result.
    let entry = |path: &str| format!("{{\"audio_filepath\":\"{}\"}}\n", folder.join(path).display());
    fs::write(folder.join("list.json"), entry("in/a.wav") + &entry("links/a.wav") + &entry("in/../in/a.wav"))
        .unwrap();
    assert!(run(&["--manifest", "list.json", "-o", "listed"]).contains("1 denoised"));
    let made = fs::read_to_string(folder.join("listed/list.json")).unwrap();
    assert_eq!(made.matches("listed/a.wav").count(), 3, "{made}");
}

/// On case-insensitive file systems, such as on macOS and Windows, one would replace the other.
#[test]
fn names_in_upper_and_lower_case_have_results_of_their_own() {
    let folder = Folder::new();
    for (inside, name) in [("x", "t.wav"), ("y", "T.WAV")] {
        fs::create_dir(folder.join(inside)).unwrap();
        recording(&folder.join(inside).join(name));
    }
    let levels = folder.join("levels");
    let arguments = [&folder.join("x"), &folder.join("y"), Path::new("-o"), &folder.join("out")];
    let run =
        |options: &[&str]| table(&arguments, &[&["--levels", levels.to_str().unwrap()], options].concat(), 0);
    assert!(run(&["--force"]).contains("2 denoised, 0 skipped, 0 failed"));
    assert!(run(&[]).contains("0 denoised, 2 skipped, 0 failed"));
    let is_one = folder.join("X").is_dir();
    let second = if is_one { "T-2" } else { "T" };
    let (result, report) = (folder.join("out").join(second), levels.join(second));
    let result = result.with_extension(if is_one { "wav" } else { "WAV" });
    assert!(result.is_file() && report.with_extension("csv").is_file());
}

/// Each name takes the next number directly, instead of trying all earlier numbers.
#[test]
fn many_equal_names_are_numbered_quickly() {
    let folder = Folder::new();
    let names: String = (0..20_000).map(|n| format!("/none/{n}/a.wav\n")).collect();
    fs::write(folder.join("list"), names).unwrap();
    let began = std::time::Instant::now();
    let mut command = denoise(["--manifest", "list", "-o", "out", "-q"]);
    let assert = command.current_dir(folder.0.path()).assert().code(INPUT);
    assert!(assert.get_output().stdout.is_empty());
    let seconds = began.elapsed().as_secs_f64();
    assert!(seconds < 20.0, "{seconds} s");
}

#[test]
fn reports_of_one_name_in_two_formats_are_distinct() {
    let folder = Folder::new();
    let inputs = folder.join("in");
    fs::create_dir(&inputs).unwrap();
    recording(&inputs.join("a.wav"));
    alphamf_files::write(inputs.join("a.flac"), &alphamf_files::read(inputs.join("a.wav")).unwrap()).unwrap();
    recording(&inputs.join("b.wav"));
    let options = ["--plot", "plots", "--levels", "levels", "--stats", "stats/", "-o", "out"];
    denoise(["in"]).args(FAST).args(options).current_dir(folder.0.path()).assert().success();
    for (kind, ending) in [("plots", "svg"), ("levels", "csv"), ("stats", "json")] {
        for name in ["a.wav", "a.flac", "b"] {
            assert!(folder.join(kind).join(format!("{name}.{ending}")).is_file(), "{kind}, {name}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn statistics_tell_names_apart_that_are_not_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    fs::create_dir(folder.join("in")).unwrap();
    for (name, seconds) in [(b"\xe8.wav", 0.3), (b"\xe9.wav", 0.4)] {
        let path = folder.join("in").join(std::ffi::OsStr::from_bytes(name));
        write(&path, spec(16_000, 1), noisy(seconds));
    }
    // The second run keeps the figures of the first, and `merge` keeps those of its only input.
    for _ in 0..2 {
        let mut command = denoise(["in", "-o", "out", "--stats", "s.json", "-q", "--quality", "fast"]);
        command.current_dir(folder.0.path()).assert().success();
        denoise(["merge", "s.json", "-o", "merged.json"])
            .arg("--force")
            .current_dir(folder.0.path())
            .assert()
            .success();
        for name in ["s.json", "merged.json"] {
            let record: Value = serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap();
            let files = record["files"].as_array().unwrap();
            let seconds: Vec<f64> =
                files.iter().map(|file| file["duration_seconds"].as_f64().unwrap()).collect();
            assert_eq!(seconds, [0.3, 0.4], "{name}");
        }
    }
}
