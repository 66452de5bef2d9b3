//! What becomes of files: nothing that was there is lost, nothing unfinished stays, and folders are worked through.

mod shared;

use serde_json::Value;
use shared::*;
use std::fs;
use std::path::Path;
use std::process::Stdio;
#[cfg(unix)]
use std::{
    os::unix::fs::{PermissionsExt, symlink},
    process::Child,
    thread,
    time::{Duration, Instant},
};

/// A short recording.
fn recording(path: &Path) {
    write(path, spec(16_000, 1), noisy(0.3));
}

#[test]
fn what_exists_is_not_replaced_unasked() {
    let folder = Folder::new();
    let [first, second, new] = ["a.wav", "b.wav", "new.wav"].map(|name| folder.join(name));
    [&first, &second].into_iter().for_each(|path| recording(path));
    let before = fs::read(&second).unwrap();
    fails(&[&first, &second], &["-q"], OUTPUT, &["b.wav", "already exists", "--force", "-o DIR"]);
    for option in ["--residual", "--stats"] {
        fails(&[&first, &new], &[option, second.to_str().unwrap()], OUTPUT, &["b.wav", "already exists"]);
    }
    let speech = folder.join("speech");
    fs::create_dir(&speech).unwrap();
    recording(&speech.join("c.wav"));
    fails(&[Path::new("train"), &speech, Path::new("-o"), &second], &[], OUTPUT, &["already exists"]);
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

/// Also where a link leads to what is not there yet.
#[test]
#[cfg(unix)]
fn a_link_without_a_target_is_its_target() {
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
#[cfg(target_os = "linux")]
fn a_limit_on_the_size_of_files_is_an_error_of_writing() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(16_000, 1), noisy(2.0));
    let program = assert_cmd::cargo::cargo_bin!("denoise");
    let limited = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$0\" \"$@\" -q --quality fast"])
        .arg(program)
        .args([&input, &output])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(OUTPUT), "{message}");
    assert!(message.contains("out.wav: cannot be written"), "{message}");
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
#[cfg(target_os = "linux")]
fn endless_inputs_are_not_read_to_their_end() {
    let folder = Folder::new();
    let (input, output, zero) = (folder.join("in.wav"), folder.join("out.wav"), Path::new("/dev/zero"));
    recording(&input);
    fails(&[&input, &output, Path::new("--model"), zero], &[], DICTIONARY, &["/dev/zero", "more than"]);
    let eval = Path::new("eval");
    fails(&[eval, Path::new("--manifest"), zero], &[], INPUT, &["/dev/zero", "more than"]);
    fails(&[eval, Path::new("--protocol"), zero, Path::new("--data"), zero], &[], INPUT, &["/dev/zero"]);
}

/// Runs the program, interrupts it once, and returns its exit code; it must end soon.
#[cfg(unix)]
fn interrupted(mut child: Child, signal: &str) -> Option<i32> {
    thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().unwrap().is_none(), "it does not wait");
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("one {signal} does not end the waiting");
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.wait().unwrap().code()
}

#[test]
#[cfg(unix)]
fn one_interrupt_ends_the_waiting_for_a_pipe() {
    let folder = Folder::new();
    let [input, output, fifo] = ["in.wav", "out.wav", "fifo.wav"].map(|name| folder.join(name));
    recording(&input);
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let path = Path::new;
    let waiting: [(&[&Path], &str); 4] = [
        (&[&input, &output, path("--model"), &fifo], "-INT"),
        (&[&input, &fifo], "-TERM"),
        (&[&input, &output, path("--stats"), &fifo], "-INT"),
        (&[path("eval"), path("--manifest"), &fifo], "-TERM"),
    ];
    for (arguments, signal) in waiting {
        let child = program().args(arguments).arg("-q").stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(interrupted(child, signal), Some(130), "{arguments:?}");
        let _ = fs::remove_file(&output);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn ignored_signals_stay_ignored() {
    let folder = Folder::new();
    let output = folder.join("out.wav");
    let program = assert_cmd::cargo::cargo_bin!("denoise");
    let mut child = std::process::Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" - \"$1\" --raw 16000:1:s16 -q --quality fast"])
        .arg(program)
        .arg(&output)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(700));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    thread::sleep(Duration::from_millis(200));
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &[1; 32_000]).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(read(&output).1.len(), 16_000);
}

#[test]
#[cfg(unix)]
fn standard_output_is_a_file_or_nothing() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    recording(&input);
    let program = assert_cmd::cargo::cargo_bin!("denoise");
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("\"$0\" in.wav - -q --quality fast {script}")]).arg(program);
        command.current_dir(folder.0.path()).output().unwrap()
    };
    let closed = shell(">&-");
    let message = String::from_utf8_lossy(&closed.stderr);
    assert_eq!(closed.status.code(), Some(OUTPUT), "{message}");
    assert!(message.contains("standard output: cannot be written: it is closed"), "{message}");
    assert!(shell("> /dev/null").status.success());
    // Its header is mended, as is that of a file.
    assert!(shell("> piped.wav").status.success());
    denoise([&input, &folder.join("named.wav")]).args(FAST).assert().success();
    assert!(fs::read(folder.join("piped.wav")).unwrap() == fs::read(folder.join("named.wav")).unwrap());
    // What is appended to is written at its end alone.
    fs::write(folder.join("appended"), "before").unwrap();
    assert!(shell(">> appended").status.success());
    let appended = fs::read(folder.join("appended")).unwrap();
    assert!(appended.starts_with(b"beforeRIFF") && !appended[20..].windows(4).any(|four| four == b"RIFF"));
}

#[test]
fn samples_go_out_as_they_came_in() {
    let folder = Folder::new();
    let [input, raw, wav, output] = ["in.wav", "in.raw", "out.wav", "out.raw"].map(|name| folder.join(name));
    recording(&input);
    fs::write(&raw, &fs::read(&input).unwrap()[44..]).unwrap();
    denoise([&input, &wav]).args(FAST).assert().success();
    denoise([&raw, &output]).args(FAST).args(["--raw", "16000:1:s16", "--raw-out"]).assert().success();
    assert!(fs::read(&output).unwrap() == fs::read(&wav).unwrap()[44..]);
    fails(&[&input, &output], &["--force", "--raw-out", "--format", "flac"], USAGE, &["--raw-out"]);
}

#[test]
fn names_promise_what_is_written() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    recording(&input);
    // What ffmpeg writes where it is installed is tested in media.rs.
    for name in ["a.txt", "a", "a.wav.part"] {
        fails(&[&input, &folder.join(name)], &[], USAGE, &[name, "only WAV and FLAC", "--format"]);
    }
    denoise([&input, &folder.join("a.txt")]).args(FAST).args(["--format", "wav"]).assert().success();
    assert_eq!(folder.names(), ["a.txt", "in.wav"]);
}

/// What the run of a folder prints.
fn table(arguments: &[&Path], options: &[&str], code: i32) -> String {
    let assert = denoise(arguments).args(["--quality", "fast"]).args(options).assert().code(code);
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn a_repeated_run_knows_its_results() {
    let folder = Folder::new();
    let (inputs, results) = (folder.join("in"), folder.join("out"));
    fs::create_dir(&inputs).unwrap();
    ["a.wav", "b.wav"].into_iter().for_each(|name| recording(&inputs.join(name)));
    let run = |options: &[&str], code: i32| table(&[&inputs, Path::new("-o"), &results], options, code);
    assert!(run(&[], 0).contains("2 denoised, 0 skipped, 0 failed"));
    assert!(run(&[], 0).contains("0 denoised, 2 skipped, 0 failed"));
    // An empty result, another input, other settings.
    let whole = fs::read(results.join("a.wav")).unwrap();
    fs::write(results.join("a.wav"), "").unwrap();
    assert!(run(&[], 0).contains("1 denoised, 1 skipped, 0 failed"));
    assert!(fs::read(results.join("a.wav")).unwrap() == whole);
    write(&inputs.join("b.wav"), spec(16_000, 1), noisy(0.4));
    assert!(run(&[], 0).contains("1 denoised, 1 skipped, 0 failed"));
    assert_eq!(read(&results.join("b.wav")).1.len(), 6_400);
    assert!(run(&["--mix", "0.5"], 0).contains("2 denoised, 0 skipped, 0 failed"));
    // What somebody has changed is theirs.
    fs::write(results.join("a.wav"), "edited").unwrap();
    let message = run(&["--mix", "0.5"], OUTPUT);
    assert!(message.contains("0 denoised, 1 skipped, 1 failed") && message.contains("--force"), "{message}");
    assert_eq!(fs::read(results.join("a.wav")).unwrap(), b"edited");
    assert!(run(&["--mix", "0.5", "--force"], 0).contains("2 denoised"));
}

#[test]
fn folders_tell_what_they_leave_out_and_keep_names_apart() {
    let folder = Folder::new();
    let [inputs, more, results, residuals, plots, levels] =
        ["in", "more", "out", "residuals", "plots", "levels"].map(|name| folder.join(name));
    [&inputs, &more].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    recording(&inputs.join("talk.wav"));
    recording(&more.join("talk.wav"));
    // A file's content tells what it is, and its name what becomes of it.
    fs::copy(inputs.join("talk.wav"), inputs.join("talk.mp3")).unwrap();
    fs::write(inputs.join("notes\u{1b}.txt"), "no recording").unwrap();
    let stats = folder.join("stats.json");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (residual_folder, plot_folder, level_folder) = (path(&residuals), path(&plots), path(&levels));
    let folders = ["--residual", &residual_folder, "--plot", &plot_folder, "--levels", &level_folder];
    let options: Vec<&str> = folders.into_iter().chain(["--stats", stats.to_str().unwrap()]).collect();
    let message = table(&[&inputs, &more, Path::new("-o"), &results], &options, 0);
    assert!(message.contains("3 denoised, 0 skipped, 0 failed"), "{message}");
    assert!(
        message.contains("1 file left out (unsupported file extension)")
            && message.contains("notes\\u{1b}.txt")
    );
    assert!(!message.contains('\u{1b}'));
    let names = |folder: &Path| {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        names
    };
    let expected = ["talk-2.wav", "talk.mp3.wav", "talk.wav"];
    assert_eq!(names(&results), expected);
    assert_eq!(names(&residuals), expected);
    assert_eq!(names(&plots), ["index.html", "talk-2.svg", "talk.mp3.svg", "talk.svg"]);
    let page = fs::read_to_string(plots.join("index.html")).unwrap();
    for part in ["3 of 3", "<a href=\"talk.mp3.svg\">", "estimated SNR", "kHz, mono"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(names(&levels), ["talk-2.csv", "talk.csv", "talk.mp3.csv"]);
    let record: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(record["left_out"].as_array().unwrap().len(), 1);
    assert_eq!(record["dictionary"], "built-in");
    let each = path(&folder.join("each")) + "/";
    table(&[&inputs, Path::new("-o"), &results], &["--force", "--stats", &each], 0);
    assert_eq!(names(Path::new(&each)), ["talk.json", "talk.mp3.json"]);
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_text_cost_nothing() {
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

    // Learned from, and scored against itself, by pairs and by patterns.
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

/// A folder below others that cannot be read, even by root: its path is longer than the system takes.
#[cfg(target_os = "linux")]
fn unreadable_below(folder: &Path, scratch: &Path) {
    const LONGEST: usize = 4_096;
    let name = "a".repeat(250);
    let deepest = |start: &Path| {
        let mut path = start.to_owned();
        while path.as_os_str().len() < LONGEST * 5 / 8 {
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
    assert!(message.contains("1 denoised") && message.contains(named) && message.contains(reason));
    let small = ["-q", "--rank", "2", "--iterations", "2"];
    let assert = denoise([Path::new("train"), &inputs, Path::new("-o"), &model]).args(small).assert();
    let message = String::from_utf8(assert.code(INPUT).get_output().stderr.clone()).unwrap();
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

#[test]
fn many_folders_are_looked_through_quickly() {
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
fn mistyped_commands_and_values_are_told_what_was_meant() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    recording(&input);
    fails(&[Path::new("trian"), folder.0.path()], &[], USAGE, &["trian", "did you mean `denoise train`"]);
    let message = |arguments: &[&str]| {
        let assert = denoise(arguments).assert().code(USAGE);
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let seed = message(&["a.wav", "b.wav", "--seed", "-1"]);
    assert!(seed.contains("whole number from 0 to") && !seed.contains("tip"), "{seed}");
    let path = input.to_str().unwrap();
    let step = message(&[path, "b.wav", "--step-size", "0"]);
    assert!(step.contains("more than 0, and 1000000 at most") && step.len() < 200, "{step}");
    let help = denoise(["--help"]).assert().success();
    let help = String::from_utf8(help.get_output().stdout.clone()).unwrap();
    for words in [
        "hamcmc",
        "Default: 18; with --quality fast, 12",
        "Default: 1.9",
        "with --quality fast, dither alone",
        "Needs Gibbs sweeps",
        "takes log alone",
        "dictionary trained with alpha 1.2",
    ] {
        assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{words}: {help}");
    }
}

#[test]
fn what_recordings_lack_is_told_when_they_are_learned_from_or_scored() {
    let folder = Folder::new();
    let [speech, noisy, model] = ["speech", "noisy", "model"].map(|name| folder.join(name));
    [&speech, &noisy].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    write(&speech.join("a.wav"), spec(16_000, 1), voice(16_000, 3.0, 110.0));
    let whole = alphamf_files::read(speech.join("a.wav")).unwrap();
    alphamf_files::write(noisy.join("a.flac"), &whole).unwrap();
    let mut bytes = fs::read(noisy.join("a.flac")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 100].fill(0);
    fs::write(noisy.join("a.flac"), bytes).unwrap();
    let path = Path::new;
    let said = |arguments: &[&Path], options: &[&str], code: i32| {
        let assert = denoise(arguments).args(options).assert().code(code);
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let words = "a.flac: 1 damaged or missing packets, 4096 samples replaced with silence";

    let train = [path("train"), &noisy, path("-o"), &model];
    let small = ["--rank", "2", "--iterations", "2"];
    let strict = said(&train, &[&small[..], &["--strict"]].concat(), INPUT);
    assert!(strict.contains(words) && strict.contains("--strict") && !model.exists(), "{strict}");
    let told = said(&train, &small, 0);
    assert!(told.contains(words) && model.exists(), "{told}");

    let (scores, journal) = (folder.join("scores.json"), folder.join("run.jsonl"));
    let eval = [
        path("eval"),
        path("--clean"),
        &speech,
        path("--noisy"),
        &noisy,
        path("--json"),
        &scores,
        path("--resume"),
        &journal,
    ];
    let fast = ["--quality", "fast"];
    // The second time from the journal.
    for _ in 0..2 {
        let told = said(&eval, &fast, 0);
        assert!(told.contains("1 file scored without their damaged") && told.contains(words), "{told}");
        let record: Value = serde_json::from_slice(&fs::read(&scores).unwrap()).unwrap();
        let losses = record["evaluations"][0]["files"][0]["losses"][0].as_str().unwrap();
        assert!(losses.ends_with(words), "{losses}");
    }
    let strict = said(&eval, &[&fast[..], &["--strict"]].concat(), INPUT);
    assert!(strict.contains("1 file could not be scored") && strict.contains(words), "{strict}");
}

#[test]
fn training_goes_on_without_bad_files() {
    let folder = Folder::new();
    let [speech, model, output] = ["speech", "model.safetensors", "out.wav"].map(|name| folder.join(name));
    fs::create_dir(&speech).unwrap();
    write(&speech.join("good.wav"), spec(16_000, 1), voice(16_000, 2.0, 110.0));
    fs::write(speech.join("bad.wav"), "no recording").unwrap();
    let train = |output: &Path| denoise([Path::new("train"), &speech, Path::new("-o"), output]);
    let small = ["--rank", "4", "--iterations", "4", "--window", "0.032"];
    let assert = train(&model).args(small).assert().code(INPUT);
    let message = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(message.contains("left out: ") && message.contains("bad.wav") && message.contains("1 files"));
    train(&folder.join("none")).args(small).arg("--strict").assert().code(INPUT);
    assert!(model.exists() && !folder.join("none").exists());

    // The statistics say what was used.
    let input = folder.join("in.wav");
    recording(&input);
    let model = ["--model", model.to_str().unwrap()];
    let options = ["--quality", "fast", "--force", "--stats", "-"];
    let assert = denoise([&input, &output]).args(options).args(model).assert().success();
    let record: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert!(record["dictionary"].as_str().unwrap().contains("model"));
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
    // Nor does a pipe hold up the run.
    assert!(std::process::Command::new("mkfifo").arg(&record).status().unwrap().success());
    run(&["not a regular file"]);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(!folder.join("nowhere").exists() && !results.join("a.wav").exists());
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
        std::io::Write::write_all(&mut input, &[1; 32_000]).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // Both have begun when neither has ended.
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

#[test]
fn a_list_may_begin_with_the_mark_of_its_byte_order() {
    let folder = Folder::new();
    ["a.wav", "b.wav"].into_iter().for_each(|name| recording(&folder.join(name)));
    fs::write(folder.join("list"), "\u{feff}a.wav\nb.wav\n").unwrap();
    let mut run = denoise(["--manifest", "list", "-o", "out"]);
    run.args(FAST).current_dir(folder.0.path()).assert().success();
    assert!(["a.wav", "b.wav"].into_iter().all(|name| folder.join("out").join(name).is_file()));
}

#[test]
fn reports_of_one_name_in_two_formats_are_kept_apart() {
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
fn audio_books_are_audio() {
    assert!(alphamf_files::has_extension("d.m4b") && alphamf_files::has_extension("D.M4B"));
}

#[test]
fn shards_make_together_what_one_run_makes() {
    let folder = Folder::new();
    let (inputs, whole, parts) = (folder.join("in"), folder.join("whole"), folder.join("parts"));
    fs::create_dir_all(inputs.join("b")).unwrap();
    let names = ["a.wav", "a-1.wav", "b/c.wav", "b/d.wav", "e.wav"];
    names.into_iter().for_each(|name| recording(&inputs.join(name)));
    fs::write(inputs.join("notes.txt"), "").unwrap();
    // Twice: the second time, nothing tells how long it took.
    let run = |results: &Path, options: &[&str], stats: &Path| {
        let stats = ["--stats", stats.to_str().unwrap(), "--force"];
        table(&[&inputs, Path::new("-o"), results], options, 0);
        fs::remove_file(stats[1]).ok();
        table(&[&inputs, Path::new("-o"), results], &[options, &stats[..2]].concat(), 0)
    };
    let [all, merged, again] = ["all.json", "merged.json", "again.json"].map(|name| folder.join(name));
    run(&whole, &[], &all);
    let stats: Vec<_> = (1..=3).map(|part| folder.join(&format!("{part}.json"))).collect();
    for (part, stats) in (1..).zip(&stats) {
        run(&parts, &["--shard", &format!("{part}/3")], stats);
    }
    for name in names {
        assert!(fs::read(whole.join(name)).unwrap() == fs::read(parts.join(name)).unwrap(), "{name}");
    }
    let merge = |stats: &[&Path], output: &Path| {
        denoise(["merge", "-o"]).arg(output).args(stats).assert().success();
        fs::read_to_string(output).unwrap().replace(&format!("{}/", parts.display()), "")
    };
    let expected = fs::read_to_string(&all).unwrap().replace(&format!("{}/", whole.display()), "");
    assert!(
        expected.contains("notes.txt") && expected.matches("skipped").count() == names.len(),
        "{expected}"
    );
    assert_eq!(merge(&[&stats[0], &stats[1], &stats[2]], &merged), expected);
    assert_eq!(merge(&[&stats[2], &stats[0], &stats[1], &merged], &again), expected);

    // A list in place of a folder.
    let listed = folder.join("listed");
    fs::write(inputs.join("list"), "b/c.wav\r\n\ne.wav\n").unwrap();
    denoise(["--manifest", "list", "-o"]).arg(&listed).args(FAST).current_dir(&inputs).assert().success();
    for name in ["b/c.wav", "e.wav"] {
        assert!(fs::read(whole.join(name)).unwrap() == fs::read(listed.join(name)).unwrap(), "{name}");
    }

    // Nothing is lost, and nothing joined that does not belong together.
    let statistics = stats[0].as_path();
    let onto = ["merge", "-o"].map(Path::new);
    fails(&[onto[0], onto[1], statistics, statistics], &[], OUTPUT, &["1.json", "same file"]);
    fails(&[onto[0], onto[1], &merged, statistics], &[], OUTPUT, &["merged.json", "already exists"]);
    let other = folder.join("other.json");
    fs::write(&other, expected.replace("\"mix\": 1.0", "\"mix\": 0.5")).unwrap();
    let new = folder.join("new.json");
    fails(&[onto[0], onto[1], &new, statistics, &other], &[], INPUT, &["other.json", "another run"]);
    fails(&[onto[0], onto[1], &new, &inputs.join("notes.txt")], &[], INPUT, &["notes.txt", "not statistics"]);
    denoise([&inputs, &new]).args(["--shard", "1/3"]).assert().code(USAGE);
    assert!(!new.exists());
}
