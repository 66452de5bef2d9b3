//! Existing files are kept: outputs, links, and files that appear during a run.

use crate::recording;
use crate::shared::*;
use std::fs;
use std::path::Path;
#[cfg(unix)]
use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::{PermissionsExt, symlink},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

#[test]
fn existing_files_are_replaced_with_force_only() {
    let folder = Folder::new();
    let [first, second, new] = ["a.wav", "b.wav", "new.wav"].map(|name| folder.join(name));
    [&first, &second].into_iter().for_each(|path| recording(path));
    let before = fs::read(&second).unwrap();
    fails(&[&first, &second], &["-q"], OUTPUT, &["b.wav already exists: use --force", "-o DIR"]);
    for option in ["--residual", "--stats"] {
        fails(&[&first, &new], &[option, second.to_str().unwrap()], OUTPUT, &["b.wav", "already exists"]);
    }
    let speech = folder.join("speech");
    fs::create_dir(&speech).unwrap();
    recording(&speech.join("c.wav"));
    fails(&[Path::new("train"), &speech, Path::new("-o"), &second], &[], OUTPUT, &["already exists"]);
    let train = [Path::new("train"), &first, Path::new("-o"), &new];
    fails(&train, &[], INPUT, &["a.wav: expected a folder of clean speech"]);
    assert!(fs::read(&second).unwrap() == before);
    assert_eq!(folder.names(), ["a.wav", "b.wav", "speech"]);
    denoise([&first, &second]).args(FAST).assert().success();
    assert!(fs::read(&second).unwrap() != before);
}

#[test]
fn two_outputs_are_two_files_however_they_are_spelled() {
    let folder = Folder::new();
    recording(&folder.join("t.wav"));
    for (options, words) in
        [(["--residual", "./a.wav"], ["./a.wav", "twice"]), (["--stats", "../in/a.wav"], ["a.wav", "twice"])]
    {
        let inside = folder.join("in");
        fs::create_dir_all(&inside).unwrap();
        let assert = denoise(["../t.wav", "a.wav"]).args(options).current_dir(&inside).assert().code(USAGE);
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    let plot = ["--plot", "p.svg", "--stats", "./p.svg"];
    denoise(["t.wav", "a.wav"]).args(plot).current_dir(folder.0.path()).assert().code(USAGE);
    assert_eq!(folder.names(), ["in", "t.wav"]);
    assert_eq!(fs::read_dir(folder.join("in")).unwrap().count(), 0);
}

/// A link and its target are one output even if the target does not exist yet.
#[test]
#[cfg(unix)]
fn a_dangling_link_is_its_target() {
    let folder = Folder::new();
    recording(&folder.join("t.wav"));
    symlink("new.wav", folder.join("link.wav")).unwrap();
    let command = |residual| {
        let mut command = denoise(["t.wav", "link.wav", "--residual", residual]);
        command.args(FAST).current_dir(folder.0.path());
        command
    };
    command("./new.wav").assert().code(USAGE);
    assert_eq!(folder.names(), ["link.wav", "t.wav"]);
    symlink("round.wav", folder.join("round.wav")).unwrap();
    command("round.wav").assert().code(OUTPUT);
    assert!(fs::symlink_metadata(folder.join("round.wav")).unwrap().is_symlink());
}

#[test]
#[cfg(unix)]
fn no_result_of_a_folder_is_an_input_by_a_link() {
    let folder = Folder::new();
    let (one, other) = (folder.join("A"), folder.join("B"));
    [&one, &other].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    ["x.wav", "y.wav"].into_iter().for_each(|name| recording(&one.join(name)));
    let before = fs::read(one.join("y.wav")).unwrap();
    symlink("../A/y.wav", other.join("x.wav")).unwrap();
    fails(&[&one, Path::new("-o"), &other], &["--force"], OUTPUT, &["x.wav", "same file", "y.wav"]);
    assert!(fs::read(one.join("y.wav")).unwrap() == before);
}

#[test]
#[cfg(unix)]
fn links_and_permissions_are_kept_and_leftovers_go() {
    let folder = Folder::new();
    let [input, output, link] = ["in.wav", "out.wav", "link.wav"].map(|name| folder.join(name));
    recording(&input);
    fs::write(folder.join(".alphamf-AbCdEf.part"), "left by a killed run").unwrap();
    symlink("out.wav", &link).unwrap();
    denoise([&input, &link]).args(FAST).assert().success();
    assert_eq!(folder.names(), ["in.wav", "link.wav", "out.wav"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    fs::set_permissions(&output, fs::Permissions::from_mode(0o600)).unwrap();
    denoise([&input, &output]).args(FAST).assert().success();
    assert_eq!(fs::metadata(&output).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
#[cfg(unix)]
fn the_record_of_a_folder_is_not_followed_elsewhere() {
    let folder = Folder::new();
    let (inputs, results, victim) = (folder.join("in"), folder.join("out"), folder.join("victim"));
    [&inputs, &results].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    recording(&inputs.join("a.wav"));
    fs::write(&victim, "precious").unwrap();
    let record = results.join(".alphamf-results.jsonl");
    let run = |words: &[&str]| fails(&[&inputs, Path::new("-o"), &results], &FAST, OUTPUT, words);
    symlink("../victim", &record).unwrap();
    run(&[".alphamf-results.jsonl", "not a regular file"]);
    symlink("nowhere", folder.join("dangling")).unwrap();
    fs::remove_file(&record).unwrap();
    symlink("../nowhere", &record).unwrap();
    run(&["not a regular file"]);
    fs::remove_file(&record).unwrap();
    // A pipe does not block the run.
    assert!(std::process::Command::new("mkfifo").arg(&record).status().unwrap().success());
    run(&["not a regular file"]);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(!folder.join("nowhere").exists() && !results.join("a.wav").exists());
}

/// A limit on the size of files stands in for a full disk.
#[test]
#[cfg(target_os = "linux")]
fn a_record_keeps_whole_lines_where_one_does_not_fit() {
    let folder = Folder::new();
    ["a.wav", "b.wav"].iter().for_each(|name| write(&folder.join(name), spec(8_000, 1), noisy(0.05)));
    let record = folder.join("out/.alphamf-results.jsonl");
    fs::create_dir(folder.join("out")).unwrap();
    // The limit of 8 blocks, of 512 or 1,024 bytes each by the shell, leaves too little space for two lines.
    let count_lines = || fs::read_to_string(&record).unwrap().lines().count();
    for bytes in [3_500, 7_600] {
        fs::write(&record, format!("{}\n", "x".repeat(bytes))).unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""]).arg(assert_cmd::cargo::cargo_bin!("denoise"));
        command.args(["a.wav", "b.wav", "-o", "out", "--threads", "1", "--force", "--quality", "fast"]);
        let output = command.current_dir(folder.0.path()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        let text = fs::read_to_string(&record).unwrap();
        assert!(text.ends_with('\n') && text.lines().skip(1).all(|line| line.ends_with('}')), "{text}");
        if !output.status.success() {
            assert!(message.contains(".alphamf-results.jsonl: cannot be written"), "{message}");
        }
    }
    let before = count_lines();
    // Appends an unfinished line, as left by a killed run.
    fs::write(&record, fs::read_to_string(&record).unwrap() + "{\"output\":\"a.w").unwrap();
    for words in ["2 denoised", "2 skipped"] {
        let options: &[&str] = if words.starts_with("2 d") { &["--force"] } else { &[] };
        let mut command = denoise(["a.wav", "b.wav", "-o", "out", "--quality", "fast"]);
        let assert = command.args(options).current_dir(folder.0.path()).assert().success();
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(count_lines(), before + 3);
}

/// The file of a running program cannot be written to, even by root.
#[test]
#[cfg(target_os = "linux")]
fn a_record_that_cannot_be_written_ends_the_run_before_its_work() {
    let folder = Folder::new();
    let record = folder.join("out/.alphamf-results.jsonl");
    fs::create_dir(folder.join("out")).unwrap();
    fs::copy("/bin/sleep", &record).unwrap();
    let mut busy = std::process::Command::new(&record).arg("60").spawn().unwrap();
    fs::write(folder.join("a.wav"), "Not a recording, though it has the name of one.").unwrap();
    let mut command = denoise(["a.wav", "-o", "out", "-q"]);
    let output = command.current_dir(folder.0.path()).output().unwrap();
    busy.kill().unwrap();
    busy.wait().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(OUTPUT), "{message}");
    assert!(message.contains(".alphamf-results.jsonl: cannot be written"), "{message}");
}

#[test]
#[cfg(unix)]
fn a_file_that_appears_while_the_run_works_stays() {
    let folder = Folder::new();
    let output = folder.join("out.wav");
    let arguments = ["-", "out.wav", "--raw", "16000:1:s16", "-q", "--quality", "fast"];
    let start = || {
        let mut command = program();
        command.args(arguments).current_dir(folder.0.path());
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let finish = |mut child: Child| {
        let mut input = child.stdin.take().unwrap();
        input.write_all(&[1; 32_000]).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // Both runs have begun before either ends.
    let runs = [start(), start()];
    let began = Instant::now();
    while folder.names().len() < 2 {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", folder.names());
        thread::sleep(Duration::from_millis(10));
    }
    let [first, second] = runs.map(finish);
    assert_eq!(first.0, Some(0), "{}", first.1);
    assert_eq!(second.0, Some(OUTPUT), "{}", second.1);
    assert!(second.1.contains("out.wav") && second.1.contains("has appeared"), "{}", second.1);
    assert_eq!((folder.names(), read(&output).1.len()), (vec!["out.wav".to_owned()], 16_000));
}

/// Runs the program on the recording `sound` through a pipe `a.wav`, and calls `change` once the output is begun.
#[cfg(unix)]
fn change_during(folder: &Folder, arguments: &[&str], sound: &[u8], change: impl FnOnce()) -> (i32, String) {
    let pipe = folder.join("a.wav");
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = program();
    command.args(arguments).args(["-o", "out", "-q", "--quality", "fast", "--mix", "0.5"]);
    let run = command.current_dir(folder.0.path()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = File::options().write(true).open(&pipe).unwrap();
    input.write_all(&sound[..1_000]).unwrap();
    let began = Instant::now();
    let is_partial = |entry: io::Result<fs::DirEntry>| {
        entry.unwrap().file_name().to_str().is_some_and(|name| name.ends_with(".part"))
    };
    while !fs::read_dir(folder.join("out")).unwrap().any(is_partial) {
        assert!(began.elapsed() < Duration::from_secs(60), "it has not begun");
        thread::sleep(Duration::from_millis(10));
    }
    change();
    input.write_all(&sound[1_000..]).unwrap();
    drop(input);
    let output = run.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Existing files are checked at the end of the run, not only at its start.
#[test]
#[cfg(unix)]
fn what_is_edited_or_appears_while_a_folder_is_worked_on_stays() {
    let folder = Folder::new();
    let [input, result, report] = ["a.wav", "out/a.wav", "levels/a.csv"].map(|name| folder.join(name));
    recording(&input);
    let sound = fs::read(&input).unwrap();
    denoise(["a.wav", "-o", "out", "--quality", "fast"]).current_dir(folder.0.path()).assert().success();
    let made = fs::read(&result).unwrap();
    for (changed, other, words) in
        [(&result, &report, "a.wav was changed since"), (&report, &result, "a.csv already exists")]
    {
        let change = || fs::write(changed, "somebody's").unwrap();
        let (code, message) = change_during(&folder, &["a.wav", "--levels", "levels"], &sound, change);
        assert!(code == OUTPUT && message.contains(words), "{code}: {message}");
        assert_eq!(fs::read(changed).unwrap(), b"somebody's", "{words}");
        assert!(!other.exists() || fs::read(other).unwrap() == made, "{words}");
        // Restores the result, which the next run recognises by its content.
        fs::write(&result, &made).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn a_manifest_of_results_that_is_edited_during_the_run_stays() {
    let folder = Folder::new();
    let [input, made] = ["a.wav", "out/list.json"].map(|name| folder.join(name));
    recording(&input);
    let sound = fs::read(&input).unwrap();
    fs::write(folder.join("list.json"), "{\"audio_filepath\":\"a.wav\"}").unwrap();
    let list = ["--manifest", "list.json"];
    let mut command = denoise(list);
    command.args(["-o", "out", "--quality", "fast"]).current_dir(folder.0.path()).assert().success();
    let (code, message) = change_during(&folder, &list, &sound, || fs::write(&made, "edited").unwrap());
    assert!(code == OUTPUT && message.contains("list.json was changed since"), "{code}: {message}");
    assert_eq!(fs::read(&made).unwrap(), b"edited");
}
