//! `denoise eval` as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use alphamf::signal::{SampleFormat, Signal};
use alphamf_files as audio;
use serde_json::Value;
use tempfile::TempDir;

/// Two clean sentences of a second at 8 kHz and three noisy recordings of each.
fn corpus() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1_u32;
    let mut noise = |gain: f32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        gain * (state as f32 / 2.0_f32.powi(31) - 1.0)
    };
    for (name, pitch) in [("a", 110.0_f32), ("b", 190.0)] {
        let voice = |n: u16| {
            let t = f32::from(n) / 8000.0;
            let phase = std::f32::consts::TAU * pitch * t + (9.0 * t).sin();
            let buzz: f32 = (1..15_u8).map(f32::from).map(|k| (k * phase).sin() / k).sum();
            0.15 * (1.05 - (14.0 * t).cos()) * buzz
        };
        let mut put = |path: &str, gain: f32| {
            let samples = (0..8000).map(|n| voice(n) + noise(gain)).collect();
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            audio::write(path, &Signal::new(8000, SampleFormat::Int16, vec![samples]).unwrap()).unwrap();
        };
        put(&format!("clean/{name}.wav"), 0.0);
        for (condition, gain) in [("low", 0.02), ("mid", 0.06), ("high", 0.2)] {
            put(&format!("noisy/{name}_{condition}.wav"), gain);
        }
    }
    folder
}

fn denoise_eval(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_denoise"));
    command.current_dir(folder).arg("eval").args(arguments);
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    denoise_eval(folder, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Results without the processing times.
fn results(path: &Path) -> Value {
    let mut study: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for evaluation in study["evaluations"].as_array_mut().unwrap() {
        for file in evaluation["files"].as_array_mut().unwrap() {
            file["processing_seconds"].take();
        }
    }
    study
}

#[test]
fn a_killed_run_resumes_to_equal_results_and_repeats_nothing() {
    let corpus = corpus();
    let folder = corpus.path();
    let slow = ["--clean", "clean", "--noisy", "noisy", "--threads", "1", "--iterations", "40"];
    let whole = run(folder, &[&slow[..], &["--json", "whole.json"]].concat());
    assert!(whole.status.success(), "{}", text(&whole.stderr));

    let resumable = [&slow[..], &["--resume", "run.jsonl", "--json", "resumed.json"]].concat();
    let mut child =
        denoise_eval(folder, &resumable).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let journal = folder.join("run.jsonl");
    let lines = || fs::read(&journal).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count());
    let start = Instant::now();
    while lines() < 3 && child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(120), "nothing is finished");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap(); // SIGKILL on Unix: the program cannot clean up
    child.wait().unwrap();
    let before = fs::read(&journal).unwrap();
    assert!((3..7).contains(&lines()), "{} lines: the run was to be cut half-way", lines());
    assert!(!folder.join("resumed.json").exists(), "results of half a run");

    let resumed = run(folder, &resumable);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(results(&folder.join("resumed.json")), results(&folder.join("whole.json")));
    let after = fs::read(&journal).unwrap();
    assert_eq!(after.iter().filter(|&&byte| byte == b'\n').count(), 7, "a header and six files, each once");
    let kept = before.iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    assert!(after.starts_with(&before[..kept]), "finished files are not done again");

    // A journal of other settings is refused.
    let other = run(folder, &[&resumable[..], &["--alpha-noise", "1.8", "--force"]].concat());
    assert_eq!(other.status.code(), Some(3));
    let errors = text(&other.stderr);
    for words in ["settings.model.alpha_noise was 1.9, now 1.8", "or another --resume file"] {
        assert!(errors.contains(words), "{errors}");
    }
}

#[test]
fn a_corpus_is_scored_saved_and_shown() {
    let corpus = corpus();
    let folder = corpus.path();
    let outputs =
        ["--save", "out", "--json", "r.json", "--csv", "r.csv", "--report", "r.html", "--iterations", "0"];
    // The network detects no speech in synthetic voices. A gentle strength keeps them well above 16-bit rounding.
    let inputs = ["--clean", "clean", "--noisy", "noisy", "--strength", "gentle"];
    let done = run(folder, &[&inputs[..], &outputs].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let table = text(&done.stdout);
    for expected in ["6 files", "SDR (dB)", "ESTOI", "condition", "high", "low", "mid"] {
        assert!(table.contains(expected), "no {expected} in\n{table}");
    }
    assert_eq!(fs::read_dir(folder.join("out")).unwrap().count(), 6);
    assert_eq!(fs::read_to_string(folder.join("r.csv")).unwrap().lines().count(), 7);
    let page = fs::read_to_string(folder.join("r.html")).unwrap();
    assert_eq!(page.matches("<audio").count(), 18, "best and worst three, each thrice");
    assert!(page.contains("<th>SDR<br><small>(dB)</small>"), "a unit in the table");
    let scales = "kHz</span><span>0</span><span>";
    assert_eq!(page.matches(scales).count(), 18, "frequencies and the length of every spectrogram");

    // A report on standard output moves the table to standard error.
    let scored = ["--clean", "clean", "--noisy", "noisy", "--quality", "fast"];
    let to_output = run(folder, &[&scored[..], &["--json", "-"]].concat());
    let study: Value = serde_json::from_slice(&to_output.stdout).expect("JSON alone");
    assert_eq!(study["evaluations"][0]["files"].as_array().map(Vec::len), Some(6));
    assert!(text(&to_output.stderr).contains("6 files"), "{}", text(&to_output.stderr));
    let to_output = run(folder, &[&scored[..], &["--csv", "-"]].concat());
    assert_eq!(text(&to_output.stdout).lines().count(), 7, "{}", text(&to_output.stdout));

    // Audio that is not saved needs no temporary folder.
    let scored = [&scored[..], &["--report", "unsaved.html", "-q"]].concat();
    let unsaved = denoise_eval(folder, &scored).env("TMPDIR", folder.join("nowhere")).output().unwrap();
    assert!(unsaved.status.success(), "{}", text(&unsaved.stderr));
    let page = fs::read_to_string(folder.join("unsaved.html")).unwrap();
    assert_eq!(page.matches("<audio").count(), 18, "best and worst three, each thrice");

    // Only --force overwrites existing outputs.
    let before: Vec<_> = ["out/a_low.wav", "r.json", "r.csv", "r.html"]
        .map(|name| fs::read(folder.join(name)).unwrap())
        .into();
    for outputs in [["--save", "out"], ["--json", "r.json"], ["--csv", "r.csv"], ["--report", "r.html"]] {
        let refused = run(folder, &[&inputs[..], &outputs, &["--iterations", "1"]].concat());
        let errors = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(4), "{errors}");
        assert!(errors.contains("already exists: use --force"), "{errors}");
    }
    let after: Vec<_> = ["out/a_low.wav", "r.json", "r.csv", "r.html"]
        .map(|name| fs::read(folder.join(name)).unwrap())
        .into();
    assert!(before == after);
    let forced = ["--csv", "r.csv", "--force", "--quality", "fast", "-q"];
    assert!(run(folder, &[&inputs[..], &forced].concat()).status.success());

    // Saved audio has equal scores, up to 16-bit rounding.
    let again = run(folder, &["--clean", "clean", "--enhanced", "out", "--json", "again.json", "--quiet"]);
    assert_eq!((again.status.code(), text(&again.stdout)), (Some(0), String::new()));
    let sdr = |name: &str| -> Vec<f64> {
        let study = results(&folder.join(name));
        let files = study["evaluations"][0]["files"].as_array().unwrap().clone();
        files.iter().map(|file| file["output"]["sdr"].as_f64().unwrap()).collect()
    };
    for (direct, saved) in sdr("r.json").iter().zip(sdr("again.json")) {
        assert!((direct - saved).abs() < 0.01, "{direct} dB, saved {saved} dB");
    }
}

#[test]
fn one_bad_file_is_reported_and_the_rest_is_scored() {
    let corpus = corpus();
    let folder = corpus.path();
    fs::write(folder.join("noisy/b_low.wav"), b"not audio").unwrap();
    fs::write(folder.join("noisy/orphan_low.wav"), b"").unwrap();
    let done =
        run(folder, &["--clean", "clean", "--noisy", "noisy", "--em-iterations", "4", "--json", "r.json"]);
    assert_eq!(done.status.code(), Some(3));
    let errors = text(&done.stderr);
    assert!(errors.contains("2 files could not be scored") && errors.contains("noisy/b_low.wav"), "{errors}");
    assert!(errors.contains("orphan_low.wav: no clean file"), "{errors}");
    let study = results(&folder.join("r.json"));
    assert_eq!(study["evaluations"][0]["files"].as_array().unwrap().len(), 5);
    assert_eq!(study["evaluations"][0]["failures"].as_array().unwrap().len(), 2);
}

#[test]
fn results_of_earlier_runs_are_scored_only_if_they_are_asked_for() {
    let corpus = corpus();
    let folder = corpus.path();
    let denoise = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_denoise"));
        let done = command.current_dir(folder).args(arguments).args(["--quality", "fast", "-q"]).output();
        assert!(done.unwrap().status.success(), "{arguments:?}");
    };
    denoise(&["noisy", "-o", "noisy/out"]);
    denoise(&["noisy", "-o", "results/fast"]);
    fs::create_dir(folder.join("all")).unwrap();
    denoise(&["noisy", "-o", "all/out"]);
    let left_out = "1 folder left out (results of an earlier run): ";
    let noisy = run(folder, &["--clean", "clean", "--noisy", "noisy", "--mix", "0"]);
    assert!(text(&noisy.stdout).starts_with("6 files"), "{}", text(&noisy.stdout));
    assert_eq!(text(&noisy.stderr), format!("{left_out}noisy/out\n"));
    let enhanced = run(folder, &["--clean", "clean", "--enhanced", "results"]);
    assert!(text(&enhanced.stdout).starts_with("6 files"), "{}", text(&enhanced.stdout));
    assert_eq!(text(&enhanced.stderr), "");
    let nothing = run(folder, &["--clean", "clean", "--noisy", "all"]);
    let errors = text(&nothing.stderr);
    assert!(
        errors.starts_with(left_out) && errors.contains("found 1 other file, such as all/out"),
        "{errors}"
    );
}

#[test]
fn mistakes_get_one_line_and_leave_earlier_results_alone() {
    let corpus = corpus();
    let folder = corpus.path();
    fs::create_dir(folder.join("empty")).unwrap();
    fs::write(folder.join("r.json"), "earlier").unwrap();
    let protocol =
        "name = \"p\"\n[corpus]\nclean = [\"clean/*\"]\nnoisy = [\"noisy/*\"]\n[settings]\nalpha = 2\n";
    fs::write(folder.join("p.toml"), protocol).unwrap();
    fs::write(folder.join("m.csv"), "noisy,clean\nnoisy/a_low.wav\n").unwrap();
    for (arguments, code, expected) in [
        (&["--clean", "clean", "--noisy", "empty"][..], 3, "the folder is empty"),
        (&["--clean", "clean", "--noisy", "nowhere"], 3, "nowhere"),
        (&["--clean", "noisy", "--noisy", "clean"], 3, "no pairs"),
        (&["--manifest", "m.csv"], 3, "line 2"),
        (&["--protocol", "p.toml", "--data", "."], 3, "unknown field `alpha`"),
        (&["--clean", "clean", "--noisy", "noisy", "--csv", "no/such/r.csv"], 4, "no/such"),
        (&["--clean", "clean", "--noisy", "noisy", "--noise-rank", "0"], 2, "--noise-rank is 0"),
        (&["--clean", "clean"], 2, "--noisy or --enhanced"),
        (&["--protocol", "p.toml", "--data", ".", "--seed", "1"], 2, "--seed"),
    ] {
        let refused = run(folder, &[arguments, &["--json", "r.json", "--force"]].concat());
        let errors = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
        assert!(code == 2 || errors.trim_end().lines().count() == 1, "{arguments:?}: {errors}");
        assert_eq!(fs::read_to_string(folder.join("r.json")).unwrap(), "earlier");
    }
}

#[test]
fn no_output_is_an_input_or_another_output() {
    let corpus = corpus();
    let folder = corpus.path();
    let pairs = "noisy,clean\nnoisy/a_low.wav,clean/a.wav\n";
    let protocol = "name = \"p\"\n[corpus]\nclean = [\"clean/*\"]\nnoisy = [\"noisy/*\"]\n";
    fs::write(folder.join("pairs.csv"), pairs).unwrap();
    fs::write(folder.join("p.toml"), protocol).unwrap();
    let clean = fs::read(folder.join("clean/a.wav")).unwrap();
    // A noisy recording without a clean one.
    fs::write(folder.join("noisy/alone.wav"), &clean).unwrap();
    let folders = ["--clean", "clean", "--noisy", "noisy"];
    let manifest = ["--manifest", "pairs.csv"];
    for (arguments, code, expected) in [
        ([&manifest[..], &["--csv", "./pairs.csv"]].concat(), 4, "same file"),
        (["--protocol", "p.toml", "--data", ".", "--json", "p.toml"].to_vec(), 4, "same file"),
        ([&manifest[..], &["--json", "clean/a.wav"]].concat(), 4, "same file"),
        ([&manifest[..], &["--save", "."]].concat(), 4, "same file"),
        ([&folders[..], &["--json", "noisy/alone.wav"]].concat(), 4, "same file"),
        ([&folders[..], &["--json", "x", "--resume", "x"]].concat(), 2, "twice"),
        ([&folders[..], &["--json", "x", "--csv", "./x"]].concat(), 2, "twice"),
    ] {
        let refused = run(folder, &arguments);
        let errors = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(expected) && text(&refused.stdout).is_empty(), "{arguments:?}: {errors}");
    }
    assert_eq!(fs::read_to_string(folder.join("pairs.csv")).unwrap(), pairs);
    assert_eq!(fs::read_to_string(folder.join("p.toml")).unwrap(), protocol);
    for name in ["clean/a.wav", "noisy/alone.wav"] {
        assert!(fs::read(folder.join(name)).unwrap() == clean, "{name}");
    }
    assert!(!folder.join("x").exists());
}

#[test]
fn denoised_audio_is_not_saved_among_the_corpus() {
    let corpus = corpus();
    let folder = corpus.path();
    let protocol = "name = \"p\"\n[corpus]\nclean = [\"clean/*\"]\nnoisy = [\"noisy/*_low*\"]\n";
    fs::write(folder.join("p.toml"), protocol).unwrap();
    fs::create_dir(folder.join("beside")).unwrap();
    let folders = ["--clean", "clean", "--noisy", "noisy", "--mix", "0"];
    let enhanced = ["--clean", "clean", "--enhanced", "noisy"];
    let protocol = ["--protocol", "p.toml", "--data", "."];
    for (arguments, save, refused) in [
        (&folders[..], "clean", Some("clean")),
        (&folders, "noisy/new/one", Some("noisy")),
        (&folders, "beside/../clean/new", Some("clean")),
        (&folders, "noisy/../beside", None),
        (&enhanced, "./noisy", Some("noisy")),
        (&protocol, "noisy/out", Some("./noisy/")),
        (&protocol, "out", None),
    ] {
        let done = run(folder, &[arguments, &["--save", save, "--quiet"]].concat());
        let errors = text(&done.stderr);
        match refused {
            Some(by) => {
                let reason = format!("--save {save}: the denoised audio would lie among the files of {by}");
                assert_eq!(done.status.code(), Some(2), "{save}: {errors}");
                assert_eq!(errors, format!("denoise: {reason}: choose another folder\n"));
            }
            None => assert!(done.status.success(), "{save}: {errors}"),
        }
    }
}

/// Runs the program with a limit on the size of files, in blocks of 512 bytes.
#[cfg(target_os = "linux")]
fn run_limited(folder: &Path, blocks: u32, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_denoise")).args(["eval", "--clean", "clean", "--noisy", "noisy"]);
    command.args(arguments).args(["--mix", "0"]).current_dir(folder).output().unwrap()
}

/// The folder is checked before scoring, which takes hours. No file here can be scored.
#[test]
fn a_folder_for_audio_that_cannot_be_written_to_is_refused_first() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["clean", "noisy"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("a.wav"), "not audio").unwrap();
    }
    fs::write(folder.path().join("file"), "").unwrap();
    let long = "x".repeat(300);
    let cases =
        [("file", "it is not a folder"), ("file/out", "file is not a folder"), (&long, "File name too long")];
    for (save, reason) in cases {
        let done = run(folder.path(), &["--clean", "clean", "--noisy", "noisy", "--save", save]);
        let errors = text(&done.stderr);
        assert_eq!(done.status.code(), Some(4), "{errors}");
        assert!(errors.starts_with(&format!("denoise: {save}: cannot be written: {reason}")), "{errors}");
    }
    let possible = run(folder.path(), &["--clean", "clean", "--noisy", "noisy", "--save", "new/out"]);
    assert_eq!(possible.status.code(), Some(3), "{}", text(&possible.stderr));
    assert!(!folder.path().join("new").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_that_cannot_be_written_is_no_failure_of_a_file() {
    let corpus = corpus();
    let folder = corpus.path();
    for (blocks, output) in [(8, ["--save", "out"]), (1, ["--resume", "run.jsonl"])] {
        let done = run_limited(folder, blocks, &output);
        let errors = text(&done.stderr);
        assert_eq!(done.status.code(), Some(4), "{output:?}: {errors}");
        assert!(
            errors.contains(output[1]) && errors.contains("cannot be written: File too large"),
            "{errors}"
        );
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_that_cannot_be_written_stops_no_other() {
    let corpus = corpus();
    let folder = corpus.path();
    let scored = ["--clean", "clean", "--noisy", "noisy", "--mix", "0", "-q"];
    let full = run(folder, &[&scored[..], &["--json", "/dev/full", "--csv", "r.csv"]].concat());
    let errors = text(&full.stderr);
    assert_eq!(full.status.code(), Some(4), "{errors}");
    assert!(errors.starts_with("denoise: /dev/full: cannot be written: No space left"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert_eq!(fs::read_to_string(folder.join("r.csv")).unwrap().lines().count(), 7);

    // A table that cannot be written to a full device does not stop the scoring of the second variant.
    let protocol = "name = \"p\"\n[corpus]\nclean = [\"clean/*\"]\nnoisy = [\"noisy/*\"]\n[[variant]]\nname = \"one\"\n\
                    [[variant]]\nname = \"two\"\n";
    fs::write(folder.join("p.toml"), protocol).unwrap();
    let mut full = denoise_eval(folder, &["--protocol", "p.toml", "--data", ".", "--json", "two.json"]);
    let full = full.stdout(fs::File::create("/dev/full").unwrap()).output().unwrap();
    let errors = text(&full.stderr);
    assert_eq!(full.status.code(), Some(4), "{errors}");
    assert!(errors.contains("standard output: cannot be written: No space left"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    let study = results(&folder.join("two.json"));
    assert_eq!(study["evaluations"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_journal_is_of_the_audio_that_was_scored() {
    let corpus = corpus();
    let folder = corpus.path();
    let arguments =
        ["--clean", "clean", "--noisy", "noisy", "--quality", "fast", "--resume", "run.jsonl", "--quiet"];
    assert!(run(folder, &arguments).status.success());
    fs::copy(folder.join("clean/b.wav"), folder.join("noisy/b_low.wav")).unwrap();
    let refused = run(folder, &arguments);
    let errors = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{errors}");
    assert!(errors.contains("'b_low.wav' was scored with other audio"), "{errors}");
}

#[test]
fn protocols_and_manifests_are_checked() {
    let corpus = corpus();
    let folder = corpus.path();
    let corpus = "name = \"p\"\n[corpus]\nclean = [\"clean/*\"]\nnoisy = [\"noisy/*\"]\n";
    fs::write(folder.join("m.csv"), "noisy,clean,noisy\nnoisy/a_low.wav,clean/a.wav,x\n").unwrap();
    let refused = run(folder, &["--manifest", "m.csv"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(text(&refused.stderr).contains("two columns are called 'noisy'"), "{}", text(&refused.stderr));
    for (rest, code, expected) in [
        ("[[variant]]\nname = \"../../escaped\"\n", 3, "name of a folder"),
        ("[[variant]]\nname = \"a/b\"\n", 3, "name of a folder"),
        ("[[variant]]\nname = \"\"\n", 3, "name of a folder"),
        ("[settings.model]\nalpha_noise = 3.0\n", 2, "p: model.alpha_noise"),
        (
            "[settings.model]\nspeech_prior = { gamma = { shape = nan, rate = 0.0 } }\n",
            2,
            "shape of the prior",
        ),
    ] {
        fs::write(folder.join("p.toml"), format!("{corpus}{rest}")).unwrap();
        let arguments = ["--protocol", "p.toml", "--data", ".", "--save", "out", "--resume", "r.jsonl"];
        let refused = run(folder, &arguments);
        let errors = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{rest}: {errors}");
        assert!(errors.contains(expected) && !errors.contains(": :"), "{rest}: {errors}");
    }
    assert!(!folder.join("out").exists());
}

#[test]
fn tables_are_inert_in_spreadsheets() {
    let corpus = corpus();
    let folder = corpus.path();
    fs::rename(folder.join("noisy/a_low.wav"), folder.join("noisy/=1+1.wav")).unwrap();
    fs::write(folder.join("m.csv"), "noisy,clean,condition\nnoisy/=1+1.wav,clean/a.wav,@low\n").unwrap();
    let done = run(folder, &["--manifest", "m.csv", "--quality", "fast", "--csv", "r.csv"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let table = fs::read_to_string(folder.join("r.csv")).unwrap();
    let row: Vec<&str> = table.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(row[1], "'@low", "{table}");
    assert!(row[5..8].iter().all(|score| score.parse::<f64>().is_ok()), "{table}");
}

/// A manifest may name a condition by any text.
#[test]
fn every_condition_has_a_line_of_the_table() {
    let corpus = corpus();
    let folder = corpus.path();
    let pairs = "noisy,clean,condition\nnoisy/a_low.wav,clean/a.wav,\"two\nlines\"\nnoisy/a_mid.wav,clean/a.wav,one\n";
    fs::write(folder.join("m.csv"), pairs).unwrap();
    let done = run(folder, &["--manifest", "m.csv", "--mix", "0"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let table = text(&done.stdout);
    let (_, conditions) = table.split_once("condition").unwrap();
    let lines: Vec<&str> = conditions.trim_end().lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[2].starts_with("two\\nlines "), "{table}");
    assert_eq!(lines[1].len(), lines[2].len(), "columns are aligned: {table}");
}

#[test]
fn journals_of_shards_are_joined_to_one() {
    let corpus = corpus();
    let folder = corpus.path();
    let fast = ["--clean", "clean", "--noisy", "noisy", "--quality", "fast"];
    let scored = |arguments: &[&str]| {
        let output = run(folder, &[&fast[..], arguments].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    scored(&["--json", "whole.json"]);
    for part in 1..=2 {
        let (shard, journal) = (format!("{part}/2"), format!("{part}.jsonl"));
        scored(&["--shard", &shard, "--resume", &journal]);
    }
    scored(&["--shard", "1/1000", "--resume", "empty.jsonl"]);
    assert_eq!(fs::read_to_string(folder.join("empty.jsonl")).unwrap().lines().count(), 1, "a header alone");
    let merge = |journals: &[&str], output: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_denoise"));
        let status = command.current_dir(folder).arg("merge").args(journals).args(["-o", output]).status();
        assert!(status.unwrap().success());
        fs::read_to_string(folder.join(output)).unwrap()
    };
    let journal = merge(&["empty.jsonl", "1.jsonl", "2.jsonl"], "all.jsonl");
    assert_eq!(journal, merge(&["2.jsonl", "1.jsonl"], "again.jsonl"));
    assert_eq!(journal.lines().count(), 7, "a header and six files");
    scored(&["--resume", "all.jsonl", "--json", "joined.json"]);
    assert_eq!(fs::read_to_string(folder.join("all.jsonl")).unwrap(), journal, "nothing was scored again");
    assert_eq!(results(&folder.join("joined.json")), results(&folder.join("whole.json")));

    // A later run that saves audio adds lines for files that are already scored.
    scored(&["--resume", "1.jsonl", "--shard", "1/2", "--save", "saved"]);
    let part = || fs::read_to_string(folder.join("1.jsonl")).unwrap();
    assert!(part().lines().count() > 4);
    assert_eq!(merge(&["1.jsonl", "2.jsonl"], "saved.jsonl").lines().count(), 7);
    scored(&["--resume", "saved.jsonl", "--save", "saved"]);
    let before = part();
    scored(&["--resume", "1.jsonl", "--shard", "1/2", "--save", "saved"]);
    assert_eq!(part(), before, "nothing was saved again");
}

#[test]
fn arguments_that_score_nothing_or_have_no_effect_are_refused() {
    let corpus = corpus();
    let folder = corpus.path();
    let refused = |arguments: &[&str], words: &[&str]| {
        let done = run(folder, arguments);
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    for arguments in [&[] as &[&str], &["--clean", "clean"]] {
        refused(arguments, &["--clean", "--noisy", "--enhanced", "--manifest", "--protocol", "--data"]);
    }
    // Options without effect on enhanced files, or on scores, which precede rounding.
    let enhanced = ["--clean", "clean", "--enhanced", "noisy"];
    refused(&[&enhanced[..], &["--quality", "fast"]].concat(), &["--quality has no effect"]);
    refused(&[&enhanced[..], &["--live"]].concat(), &["--live has no effect"]);
    let noisy = ["--clean", "clean", "--noisy", "noisy"];
    refused(&[&noisy[..], &["--no-dither"]].concat(), &["--no-dither has no effect"]);
    refused(&[&noisy[..], &["--live", "--noise-rank", "2"]].concat(), &["--noise-rank has no effect"]);
    for option in ["--save", "--resume"] {
        refused(&[&noisy[..], &[option, "-"]].concat(), &[option, "cannot be standard output"]);
    }
    refused(&["--manifest", "-"], &["--manifest cannot be standard input"]);
    refused(&["--protocol", "-", "--data", "."], &["--protocol cannot be standard input"]);
    let figure = ["--protocol", "p.toml", "--data", ".", "--figure", "-"];
    refused(&figure, &["--figure", "cannot be standard output"]);
    refused(&[&noisy[..], &["--figure", "f.svg"]].concat(), &["--figure needs --protocol"]);
    refused(&[&enhanced[..], &["--figure", "f.svg"]].concat(), &["--figure needs --protocol"]);
    let corpus = "[corpus]\nclean = [\"clean/*\"]\nnoisy = [\"noisy/*\"]\n";
    fs::write(folder.join("untraced.toml"), format!("name = \"p\"\n{corpus}")).unwrap();
    fs::write(folder.join("traced.toml"), format!("name = \"p\"\ntrace_every = 2\n{corpus}")).unwrap();
    let figure = ["--data", ".", "--figure", "f.svg", "--protocol"];
    refused(&[&figure[..], &["untraced.toml"]].concat(), &["--figure", "set its trace_every"]);
    refused(&[&figure[..], &["traced.toml", "--live"]].concat(), &["--figure has no effect on --live"]);
    // The output folder is checked before scoring.
    let done = run(folder, &[&noisy[..], &["--save", "clean/a.wav"]].concat());
    let message = text(&done.stderr);
    assert!(
        done.status.code() == Some(4) && message.contains("clean/a.wav") && message.contains("not a folder"),
        "{message}"
    );
    // Only one source of recordings is accepted.
    let sources = [
        ["--manifest", "m.csv", "--noisy", "noisy"].as_slice(),
        &["--manifest", "m.csv", "--enhanced", "noisy"],
        &["--manifest", "m.csv", "--data", "."],
        &["--protocol", "p.toml", "--data", ".", "--noisy", "noisy"],
        &["--protocol", "p.toml", "--data", ".", "--enhanced", "noisy"],
        &["--clean", "clean", "--noisy", "noisy", "--data", "."],
    ];
    for arguments in sources {
        let done = run(folder, arguments);
        let message = text(&done.stderr);
        let option = arguments[arguments.len() - 2];
        assert_eq!(done.status.code(), Some(2), "{message}");
        assert!(message.contains("cannot be used with") && message.contains(option), "{message}");
    }
}

#[test]
fn a_mix_is_scored() {
    let corpus = corpus();
    let folder = corpus.path();
    let done = run(folder, &["--clean", "clean", "--noisy", "noisy", "--mix", "0", "--json", "r.json", "-q"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let study: Value = serde_json::from_slice(&fs::read(folder.join("r.json")).unwrap()).unwrap();
    let evaluation = &study["evaluations"][0];
    assert_eq!(evaluation["provenance"]["settings"]["session"]["mix"], 0.0);
    // With --mix 0, the output is the recording.
    for metric in evaluation["summary"][0]["metrics"].as_array().unwrap() {
        let gained = metric["improvement"]["mean"].as_f64().unwrap();
        assert!(gained.abs() < 1e-6, "{metric}");
    }
}
