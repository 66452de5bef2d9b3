//! Files of a folder that are left out, and the speed of the search.

use crate::shared::*;
use crate::{recording, table};
use serde_json::Value;
use std::fs;
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::path::Path;

/// Creates a folder deep below `folder` that even root cannot read: its path exceeds the system's limit.
#[cfg(target_os = "linux")]
fn unreadable_below(folder: &Path, scratch: &Path) {
    const MAX_PATH_BYTES: usize = 4_096;
    let name = "a".repeat(250);
    let deepest = |start: &Path| {
        let mut path = start.to_owned();
        while path.as_os_str().len() < MAX_PATH_BYTES * 5 / 8 {
            path.push(&name);
        }
        fs::create_dir_all(&path).unwrap();
        path
    };
    deepest(&scratch.join("closed"));
    fs::rename(scratch.join("closed"), deepest(&folder.join("deep")).join("closed")).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_cannot_be_read_does_not_stop_the_rest() {
    let folder = Folder::new();
    let [inputs, results, clean, model] =
        ["in", "out", "clean", "model.safetensors"].map(|name| folder.join(name));
    [&inputs, &clean].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    write(&inputs.join("a.wav"), spec(16_000, 1), noisy(1.0));
    fs::copy(inputs.join("a.wav"), clean.join("a.wav")).unwrap();
    unreadable_below(&inputs, folder.0.path());
    let named = "closed/aaa";
    let reason = "the folder cannot be read: File name too long";
    let message = table(&[&inputs, Path::new("-o"), &results], &[], INPUT);
    assert!(message.contains("1 denoised, 0 skipped, 1 failed"), "{message}");
    assert!(message.contains(named) && message.contains(reason));
    let small = ["-q", "--rank", "2", "--iterations", "2"];
    let mut train = denoise([Path::new("train"), &inputs, Path::new("-o"), &model]);
    train.args(small);
    let message = stderr_of(train, INPUT);
    assert!(model.is_file() && message.contains(named) && message.contains(reason), "{message}");
    let pairs = [Path::new("--clean"), &clean, Path::new("--noisy"), &inputs];
    let eval = |arguments: &[&Path]| {
        let assert = denoise(["eval"]).args(arguments).assert().code(INPUT);
        let output = assert.get_output().clone();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains("1 file"), "{message}");
        assert!(message.contains(named) && message.contains(reason), "{message}");
    };
    eval(&pairs);
    let protocol = folder.join("p.toml");
    fs::write(&protocol, "name = \"p\"\n[corpus]\nclean = [\"clean/*\"]\nnoisy = [\"in/*.wav\"]\n").unwrap();
    eval(&[Path::new("--protocol"), &protocol, Path::new("--data"), folder.0.path()]);
}

/// An empty folder fails alone among several; if it is the only input, the run fails.
#[test]
fn an_empty_folder_does_not_stop_the_others() {
    let folder = Folder::new();
    let [inputs, empty, results] = ["in", "empty", "out"].map(|name| folder.join(name));
    [&inputs, &empty].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    recording(&inputs.join("a.wav"));
    let message = table(&[&empty, &inputs, Path::new("-o"), &results], &[], INPUT);
    let words = format!("denoise: {}: no audio file in or below it", empty.display());
    assert!(message.contains("1 denoised, 0 skipped, 1 failed") && message.contains(&words), "{message}");
    let stats = folder.join("stats.json");
    table(&[&empty, &inputs, Path::new("-o"), &results, Path::new("--stats"), &stats], &[], INPUT);
    let record: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(record["left_out"][0]["failed"], true);
    let message = table(&[&empty, Path::new("-o"), &results], &[], INPUT);
    assert_eq!(message.trim_end(), words);
    // ffmpeg may read these files if they are named.
    ["d.amr", "a.wma", "b.mkv", "c.ac3"]
        .into_iter()
        .for_each(|name| fs::write(empty.join(name), "x").unwrap());
    let message = table(&[&empty, Path::new("-o"), &results], &[], INPUT);
    assert!(
        message.contains("4 files of other kinds left out: a.wma, b.mkv, c.ac3, ... (name them"),
        "{message}"
    );
}

#[test]
fn hidden_files_are_read_only_if_they_are_named() {
    let folder = Folder::new();
    fs::create_dir_all(folder.join("in/.hidden/deep")).unwrap();
    let names = ["in/a.wav", "in/._a.wav", "in/.hidden/b.wav", "in/.hidden/deep/c.wav"];
    names.into_iter().for_each(|name| recording(&folder.join(name)));
    fs::write(folder.join("in/.DS_Store"), "").unwrap();
    let run = |inputs: &[&str]| folder.run(&[inputs, &["-o", "out"]].concat(), 0);
    let message = run(&["in"]);
    assert!(message.contains("1 denoised"), "{message}");
    let words = "2 files and 1 folder left out (hidden): in/.DS_Store, in/._a.wav, in/.hidden\n";
    assert!(message.contains(words), "{message}");
    assert!(run(&["in/.hidden", "in/._a.wav"]).contains("3 denoised"));
}

#[test]
fn output_folders_are_no_inputs() {
    let folder = Folder::new();
    fs::create_dir(folder.join("in")).unwrap();
    recording(&folder.join("in/a.wav"));
    let run = |options: &[&str], code| folder.run(&[&["in", "-o", "in/out"], options].concat(), code);
    let reports = ["--residual", "in/residual", "--plot", "in/plots", "--speech", "in/speech"];
    assert!(run(&reports, 0).contains("1 denoised"));
    let message = run(&reports, 0);
    assert!(
        message.contains("0 denoised, 1 skipped, 0 failed") && !message.contains("left out"),
        "{message}"
    );
    assert!(run(&["--stats", "in"], USAGE).contains("choose another folder"));
}

#[test]
fn results_of_earlier_runs_are_no_inputs() {
    let folder = Folder::new();
    fs::create_dir_all(folder.join("talks/old")).unwrap();
    ["talks/a.wav", "talks/old/b.flac"].iter().for_each(|name| {
        recording(&folder.join("c.wav"));
        let signal = alphamf_files::read(folder.join("c.wav")).unwrap();
        alphamf_files::write(folder.join(name), &signal).unwrap();
    });
    let run = |arguments: &[&str]| folder.run(arguments, 0);
    let message = run(&["talks", "-o", "talks/normal", "--residual", "talks/removed"]);
    assert!(message.contains("2 denoised") && !message.contains("left out"), "{message}");
    let message = run(&["talks", "-o", "talks/strong", "--strength", "strong"]);
    let words = "2 folders left out (results of an earlier run): talks/normal, talks/removed\n";
    assert!(message.contains("2 denoised") && message.contains(words), "{message}");
    // Results that are named as input are denoised again.
    assert!(run(&["talks/removed", "-o", "again"]).contains("2 denoised"));
    let results = [folder.join("talks/normal"), folder.join("twice")];
    fs::create_dir(folder.join("alone")).unwrap();
    fs::rename(&results[0], folder.join("alone/normal")).unwrap();
    let alone = folder.join("alone");
    let arguments = [&alone, Path::new("-o"), &results[1]];
    fails(&arguments, &[], INPUT, &["no audio file in or below it but results of an earlier run"]);
    // Recordings beside results remain inputs.
    run(&["talks/old/b.flac", "-o", "talks/old", "--format", "wav", "--residual", "talks/old/r"]);
    let message = run(&["talks", "-o", "third"]);
    let words = "talks/old/b.wav, talks/old/r, talks/removed, talks/strong\n";
    assert!(message.contains("2 denoised") && message.contains(words), "{message}");
}

#[test]
fn many_folders_are_searched_quickly() {
    let folder = Folder::new();
    let inputs = folder.join("in");
    for index in 0..20_000 {
        fs::create_dir_all(inputs.join(format!("{}/{index}", index % 100))).unwrap();
    }
    let began = std::time::Instant::now();
    fails(&[&inputs, Path::new("-o"), &folder.join("out")], &[], INPUT, &["no audio file"]);
    let seconds = began.elapsed().as_secs_f64();
    assert!(seconds < 8.0, "{seconds} s");
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_in_folders_are_named_and_left_out() {
    let folder = Folder::new();
    let (inputs, results, clean) = (folder.join("in"), folder.join("out"), folder.join("clean"));
    [&inputs, &clean].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    write(&inputs.join("a.wav"), spec(16_000, 1), noisy(1.0));
    fs::copy(inputs.join("a.wav"), clean.join("a.wav")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(inputs.join("b.wav")).status().unwrap().success());
    symlink("/dev/zero", inputs.join("c.wav")).unwrap();
    let message = table(&[&inputs, Path::new("-o"), &results], &[], 0);
    assert!(message.contains("1 denoised"), "{message}");
    let words = "2 files left out (not a regular file): ";
    assert!(message.contains(words) && message.contains("b.wav") && message.contains("c.wav"), "{message}");
    let pairs = [Path::new("eval"), Path::new("--clean"), &clean, Path::new("--noisy"), &inputs];
    denoise(pairs).args(["--quality", "fast"]).assert().success();
    fs::remove_file(inputs.join("a.wav")).unwrap();
    fails(&[&inputs, Path::new("-o"), &results], &[], INPUT, &["no audio file"]);
}
