//! Folders, lists and shards: repeated runs, their results and reports.

use crate::shared::*;
use crate::{recording, table};
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn a_repeated_run_skips_its_results() {
    let folder = Folder::new();
    let (inputs, results) = (folder.join("in"), folder.join("out"));
    fs::create_dir(&inputs).unwrap();
    ["a.wav", "b.wav"].into_iter().for_each(|name| recording(&inputs.join(name)));
    let run = |options: &[&str], code: i32| table(&[&inputs, Path::new("-o"), &results], options, code);
    assert!(run(&[], 0).contains("2 denoised, 0 skipped, 0 failed"));
    assert!(run(&[], 0).contains("0 denoised, 2 skipped, 0 failed"));
    // An empty result, another input or other settings: the result is recomputed.
    let whole = fs::read(results.join("a.wav")).unwrap();
    fs::write(results.join("a.wav"), "").unwrap();
    assert!(run(&[], 0).contains("1 denoised, 1 skipped, 0 failed"));
    assert!(fs::read(results.join("a.wav")).unwrap() == whole);
    write(&inputs.join("b.wav"), spec(16_000, 1), noisy(0.4));
    assert!(run(&[], 0).contains("1 denoised, 1 skipped, 0 failed"));
    assert_eq!(read(&results.join("b.wav")).1.len(), 6_400);
    assert!(run(&["--mix", "0.5"], 0).contains("2 denoised, 0 skipped, 0 failed"));
    // A result that the user has changed is kept.
    fs::write(results.join("a.wav"), "edited").unwrap();
    let message = run(&["--mix", "0.5"], OUTPUT);
    let words = "was changed since it was written: use --force to overwrite it";
    assert!(message.contains("0 denoised, 1 skipped, 1 failed") && message.contains(words), "{message}");
    assert_eq!(fs::read(results.join("a.wav")).unwrap(), b"edited");
    assert!(run(&["--mix", "0.5", "--force"], 0).contains("2 denoised"));
}

/// Records of earlier versions, without the path of the input.
#[test]
fn records_without_paths_are_read() {
    let folder = Folder::new();
    recording(&folder.join("a.wav"));
    let run = || folder.run(&["a.wav", "-o", "out"], 0);
    assert!(run().contains("1 denoised"));
    let record = folder.join("out/.alphamf-results.jsonl");
    let mut line: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    let source = line.as_object_mut().unwrap().remove("source").unwrap();
    assert_eq!(Path::new(source.as_str().unwrap()), fs::canonicalize(folder.join("a.wav")).unwrap());
    fs::write(&record, format!("{line}\n")).unwrap();
    assert!(run().contains("1 skipped"));
}

#[test]
fn reports_of_another_run_are_not_up_to_date() {
    let folder = Folder::new();
    fs::create_dir(folder.join("in")).unwrap();
    let input = folder.join("in/a.wav");
    recording(&input);
    let run = |options: &[&str], code| folder.run(&[&["in", "-o", "out"], options].concat(), code);
    let content = |name: &str| fs::read(folder.join(name)).unwrap();
    let gentle = ["--strength", "gentle"];
    let made = |options: &[&str]| {
        assert!(run(options, 0).contains("1 denoised"), "{options:?}");
        assert!(run(options, 0).contains("1 skipped"), "{options:?}");
    };
    let reports = ["--residual", "rm", "--stats", "st/", "--speech", "sp"];
    let both = [&gentle[..], &reports].concat();
    let files = ["rm/a.wav", "st/a.json", "sp/a.json"];
    made(&reports);
    let before = files.map(content);
    // Reports of other settings.
    made(&gentle);
    made(&both);
    assert!(files[..2].iter().zip(&before).all(|(name, before)| content(name) != *before));
    // Reports of another input.
    write(&input, spec(16_000, 1), noisy(0.4));
    made(&gentle);
    made(&both);
    assert_eq!(read(&folder.join("rm/a.wav")).1.len(), 6_400);
    // A figure with another scale.
    let plot = |scale| [&gentle[..], &["--plot", "pl", "--plot-scale", scale]].concat();
    made(&plot("linear"));
    let linear = content("pl/a.svg");
    made(&plot("mel"));
    assert!(content("pl/a.svg") != linear);
    // All reports are up to date.
    assert!(run(&[&plot("mel")[..], &reports].concat(), 0).contains("1 skipped"));
    // Reports that the user has changed or created are kept.
    fs::create_dir(folder.join("tg")).unwrap();
    for name in ["sp/a.json", "tg/a.TextGrid"] {
        fs::write(folder.join(name), "edited").unwrap();
    }
    let words = "a.json was changed since it was written: use --force to overwrite it";
    assert!(run(&both, OUTPUT).contains(words));
    let other = [&gentle[..], &["--speech", "tg", "--speech-format", "textgrid"]].concat();
    assert!(run(&other, OUTPUT).contains("a.TextGrid already exists"));
    assert_eq!(["sp/a.json", "tg/a.TextGrid"].map(content), [b"edited", b"edited"]);
    assert!(run(&[&both[..], &["--force"]].concat(), 0).contains("1 denoised"));
}

/// A recorder may still be writing the input.
#[test]
#[cfg(target_os = "linux")]
fn an_input_that_changes_while_it_is_read_has_no_result() {
    let folder = Folder::new();
    let (input, output) = (folder.join("a.wav"), folder.join("out/a.wav"));
    write(&input, spec(16_000, 1), noisy(30.0));
    let longer = folder.join("longer.wav");
    write(&longer, spec(16_000, 1), noisy(31.0));
    let mut command = program();
    command.args(["a.wav", "-o", "out", "--quality", "fast"]).current_dir(folder.0.path());
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    // Waits until the run has begun an unfinished output.
    let began = std::time::Instant::now();
    while fs::read_dir(folder.join("out")).map_or(0, Iterator::count) == 0 {
        assert!(began.elapsed().as_secs() < 60);
    }
    fs::rename(&longer, &input).unwrap();
    let output_of = child.wait_with_output().unwrap();
    let message = String::from_utf8(output_of.stderr).unwrap();
    assert_eq!(output_of.status.code(), Some(INPUT), "{message}");
    assert!(message.contains("failed: it changed while it was read"), "{message}");
    assert!(!output.exists());
    let again = table(&[&input, Path::new("-o"), &folder.join("out")], &[], 0);
    assert!(again.contains("1 denoised"), "{again}");
}

/// The command can be repeated once the cause is removed.
#[test]
fn a_report_that_cannot_be_written_costs_no_result() {
    let folder = Folder::new();
    let (inputs, results, speech) = (folder.join("in"), folder.join("out"), folder.join("speech"));
    fs::create_dir(&inputs).unwrap();
    recording(&inputs.join("a.wav"));
    // A folder has the path of the report.
    fs::create_dir_all(speech.join("a.json")).unwrap();
    let run = |options: &[&str], code: i32| {
        table(&[&inputs, Path::new("-o"), &results, Path::new("--speech"), &speech], options, code)
    };
    assert!(run(&[], OUTPUT).contains("1 failed"));
    fs::remove_dir(speech.join("a.json")).unwrap();
    assert!(run(&[], 0).contains("1 denoised"));
    assert!(run(&[], 0).contains("1 skipped"));
    // A new result replaces the report of the earlier one.
    let report = fs::metadata(speech.join("a.json")).unwrap().modified().unwrap();
    assert!(run(&["--mix", "0.5"], 0).contains("1 denoised"));
    assert!(fs::metadata(speech.join("a.json")).unwrap().modified().unwrap() > report);
}

/// A folder with only partial files is left by a killed run.
#[test]
#[cfg(unix)]
fn folders_of_partial_files_alone_are_not_left_behind() {
    let folder = Folder::new();
    let (input, results) = (folder.join("bad.wav"), folder.join("out"));
    fs::write(&input, "Not a recording, though it has the name of one.").unwrap();
    fs::create_dir(&results).unwrap();
    fs::write(results.join(".alphamf-AbCdEf.part"), "left by a killed run").unwrap();
    // A truncated file, which fails after beginning an output.
    let cut = folder.join("cut.wav");
    recording(&cut);
    let whole = fs::read(&cut).unwrap();
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    assert!(table(&[&input, &cut, Path::new("-o"), &results], &[], INPUT).contains("2 failed"));
    assert_eq!(folder.names(), ["bad.wav", "cut.wav"]);
}

#[test]
fn folders_of_failed_files_alone_are_not_left_behind() {
    let folder = Folder::new();
    let (inputs, results) = (folder.join("in"), folder.join("made/out"));
    for name in ["good", "bad"] {
        fs::create_dir_all(inputs.join(name)).unwrap();
    }
    fs::write(inputs.join("bad/a.wav"), "Not a recording, though it has the name of one.").unwrap();
    let residuals = folder.join("residuals");
    let arguments = [&inputs, Path::new("-o"), &results, Path::new("--residual"), &residuals];
    assert!(table(&arguments, &[], INPUT).contains("0 denoised, 0 skipped, 1 failed"));
    assert_eq!(folder.names(), ["in"]);
    recording(&inputs.join("good/b.wav"));
    assert!(table(&arguments, &[], INPUT).contains("1 denoised, 0 skipped, 1 failed"));
    assert!(results.join("good/b.wav").is_file() && residuals.join("good/b.wav").is_file());
    assert!(!results.join("bad").exists() && !residuals.join("bad").exists());
    // An existing folder is kept, although it is empty.
    fs::create_dir(results.join("bad")).unwrap();
    assert!(table(&arguments, &[], INPUT).contains("0 denoised, 1 skipped, 1 failed"));
    assert!(results.join("bad").is_dir());
}

#[test]
fn folders_report_skipped_files_and_keep_names_distinct() {
    let folder = Folder::new();
    let [inputs, more, results, residuals, plots, levels, speech] =
        ["in", "more", "out", "residuals", "plots", "levels", "speech"].map(|name| folder.join(name));
    [&inputs, &more].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    recording(&inputs.join("talk.wav"));
    recording(&more.join("talk.wav"));
    // The content of a file determines its format, and its name that of the result.
    fs::copy(inputs.join("talk.wav"), inputs.join("talk.mp3")).unwrap();
    fs::write(inputs.join("notes\u{1b}.txt"), "no recording").unwrap();
    let stats = folder.join("stats.json");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (residual_folder, plot_folder, level_folder) = (path(&residuals), path(&plots), path(&levels));
    let folders = ["--residual", &residual_folder, "--plot", &plot_folder, "--levels", &level_folder];
    let speech_folder = path(&speech);
    let tracks = ["--speech", &speech_folder, "--speech-format", "rttm"];
    let folders = folders.into_iter().chain(tracks);
    let options: Vec<&str> = folders.chain(["--stats", stats.to_str().unwrap()]).collect();
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
    assert_eq!(names(&speech), ["talk-2.rttm", "talk.mp3.rttm", "talk.rttm"]);
    assert!(fs::read_to_string(speech.join("talk.rttm")).unwrap().starts_with("SPEAKER talk 1 "));
    let record: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(record["left_out"].as_array().unwrap().len(), 1);
    assert_eq!(record["left_out"][0]["failed"], false);
    assert_eq!(record["dictionary"], "built-in");
    let each = path(&folder.join("each")) + "/";
    table(&[&inputs, Path::new("-o"), &results], &["--force", "--stats", &each], 0);
    assert_eq!(names(Path::new(&each)), ["talk.json", "talk.mp3.json"]);
}

#[test]
fn statistics_of_an_earlier_run_are_replaced_and_keep_their_figures() {
    let folder = Folder::new();
    fs::create_dir(folder.join("in")).unwrap();
    let stats = folder.join("s.json");
    let run = |options: &[&str], code| {
        folder.run(&[&["in", "-o", "out", "--stats", "s.json"], options].concat(), code)
    };
    let files = || {
        let record: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        let files = record["files"].as_array().unwrap().clone();
        files
            .iter()
            .map(|file| (file["outcome"].as_str().unwrap().to_owned(), file["duration_seconds"].as_f64()))
            .collect::<Vec<_>>()
    };
    let of = |outcome: &str, seconds| (outcome.to_owned(), seconds);
    recording(&folder.join("in/a.wav"));
    run(&[], 0);
    recording(&folder.join("in/b.wav"));
    assert!(run(&[], 0).contains("1 denoised, 1 skipped"));
    assert_eq!(files(), [of("skipped", Some(0.3)), of("denoised", Some(0.3))]);
    assert!(run(&[], 0).contains("0 denoised, 2 skipped"));
    assert_eq!(files(), [of("skipped", Some(0.3)), of("skipped", Some(0.3))]);
    denoise(["merge", "s.json", "-o", "merged.json"]).current_dir(folder.0.path()).assert().success();
    // Figures of an earlier result are not kept.
    write(&folder.join("in/a.wav"), spec(16_000, 1), noisy(0.4));
    let mut command = denoise(["in", "-o", "out", "-q", "--quality", "fast"]);
    command.current_dir(folder.0.path()).assert().success();
    run(&[], 0);
    assert_eq!(files(), [of("skipped", None), of("skipped", Some(0.3))]);
    run(&["--mix", "0.5"], 0);
    assert_eq!(files(), [of("denoised", Some(0.4)), of("denoised", Some(0.3))]);
    // A file with other content is kept.
    for text in ["{\"files\": []}", "notes"] {
        fs::write(&stats, text).unwrap();
        let message = run(&["--mix", "0.5"], OUTPUT);
        let words = "s.json already exists: remove it or name another: --force would replace all results";
        assert!(message.contains(words), "{message}");
        assert_eq!(fs::read_to_string(&stats).unwrap(), text);
    }
}

#[test]
fn statistics_may_go_to_a_folder_that_the_run_creates() {
    let folder = Folder::new();
    recording(&folder.join("a.wav"));
    let mut command = denoise(["a.wav", "-o", "new/q", "--stats", "new/q/stats.json"]);
    command.args(FAST).current_dir(folder.0.path()).assert().success();
    assert!(folder.join("new/q/stats.json").is_file());
}

#[test]
fn shards_together_equal_one_run() {
    let folder = Folder::new();
    let (inputs, whole, parts) = (folder.join("in"), folder.join("whole"), folder.join("parts"));
    fs::create_dir_all(inputs.join("b")).unwrap();
    let names = ["a.wav", "a-1.wav", "b/c.wav", "b/d.wav", "e.wav"];
    names.into_iter().for_each(|name| recording(&inputs.join(name)));
    fs::write(inputs.join("notes.txt"), "").unwrap();
    // Runs twice, as the statistics of skipped files do not depend on processing time.
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

    // A list as input instead of a folder.
    let listed = folder.join("listed");
    fs::write(inputs.join("list"), "b/c.wav\r\n\ne.wav\n").unwrap();
    denoise(["--manifest", "list", "-o"]).arg(&listed).args(FAST).current_dir(&inputs).assert().success();
    for name in ["b/c.wav", "e.wav"] {
        assert!(fs::read(whole.join(name)).unwrap() == fs::read(listed.join(name)).unwrap(), "{name}");
    }

    // Existing files are kept, and statistics of different runs are not merged.
    let statistics = stats[0].as_path();
    let onto = ["merge", "-o"].map(Path::new);
    fails(&[onto[0], onto[1], statistics, statistics], &[], OUTPUT, &["1.json", "same file"]);
    fails(&[onto[0], onto[1], &merged, statistics], &[], OUTPUT, &["merged.json", "already exists"]);
    let none = [onto[0], onto[1], &folder.join("none.json"), &folder.join("gone.json")];
    fails(&none, &[], INPUT, &["gone.json: cannot be read"]);
    #[cfg(unix)]
    {
        fails(&[onto[0], onto[1], none[2], &inputs], &[], INPUT, &["in: cannot be read: Is a directory"]);
        let piped = folder.join("piped.json");
        let mut command = denoise(["merge", "/dev/stdin", "-o"]);
        command.arg(&piped).write_stdin(fs::read(statistics).unwrap()).assert().success();
        assert!(fs::read(&piped).unwrap() == fs::read(statistics).unwrap());
    }
    let other = folder.join("other.json");
    fs::write(&other, expected.replace("\"mix\": 1.0", "\"mix\": 0.5")).unwrap();
    let new = folder.join("new.json");
    let words = ["other.json: from another run: processing.mix was 1.0, now 0.5"];
    fails(&[onto[0], onto[1], &new, statistics, &other], &[], INPUT, &words);
    fails(&[onto[0], onto[1], &new, &inputs.join("notes.txt")], &[], INPUT, &["notes.txt", "not statistics"]);
    let wav = inputs.join("a.wav");
    fails(&[onto[0], onto[1], &new, &wav], &[], INPUT, &["a.wav: not statistics or a journal"]);
    denoise([&inputs, &new]).args(["--shard", "1/3"]).assert().code(USAGE);
    assert!(!new.exists());
}

#[test]
fn a_page_that_cannot_be_written_costs_no_statistics() {
    let folder = Folder::new();
    recording(&folder.join("a.wav"));
    fs::write(folder.join("list.json"), "{\"audio_filepath\":\"a.wav\"}").unwrap();
    fs::create_dir_all(folder.join("plots/index.html")).unwrap();
    let reports = ["--plot", "plots", "--stats", "s.json"];
    let message = folder.run(&[&["--manifest", "list.json", "-o", "out"], &reports[..]].concat(), OUTPUT);
    assert!(message.contains("1 denoised") && message.contains("index.html: cannot be written"), "{message}");
    assert!(folder.join("out/list.json").is_file());
    let record: Value = serde_json::from_slice(&fs::read(folder.join("s.json")).unwrap()).unwrap();
    assert_eq!(record["files"][0]["outcome"], "denoised");
}
