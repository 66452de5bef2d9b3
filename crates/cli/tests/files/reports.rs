//! Reports on mistyped commands, damaged recordings and invalid files.

use crate::recording;
use crate::shared::*;
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn mistyped_commands_and_values_get_a_suggestion() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    recording(&input);
    fails(&[Path::new("trian"), folder.0.path()], &[], USAGE, &["trian", "did you mean `denoise train`"]);
    let merge = ["--live", "merge", "s.json"].map(Path::new);
    fails(&merge, &[], USAGE, &["options follow the command: use `denoise merge [OPTIONS]`"]);
    let message = |arguments: &[&str]| stderr_of(denoise(arguments), USAGE);
    let seed = message(&["a.wav", "b.wav", "--seed", "-1"]);
    assert!(seed.contains("whole number from 0 to") && !seed.contains("tip"), "{seed}");
    let path = input.to_str().unwrap();
    let step = message(&[path, "b.wav", "--step-size", "0"]);
    assert!(step.contains("more than 0, and 1000000 at most") && step.len() < 200, "{step}");
    let help = denoise(["--help"]).assert().success();
    let help = String::from_utf8(help.get_output().stdout.clone()).unwrap();
    for words in [
        "hamcmc",
        "Default: 8 (fast: 2)",
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
fn losses_are_reported_by_training_and_evaluation() {
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
    let run = |arguments: &[&Path], options: &[&str], code: i32| {
        let mut command = denoise(arguments);
        command.args(options);
        stderr_of(command, code)
    };
    let words = "a.flac: 1 damaged or missing packet, 4096 samples replaced with silence";

    let train = [path("train"), &noisy, path("-o"), &model];
    let small = ["--rank", "2", "--iterations", "2"];
    let strict = run(&train, &[&small[..], &["--strict"]].concat(), INPUT);
    assert!(strict.contains(words) && strict.contains("--strict") && !model.exists(), "{strict}");
    let stderr = run(&train, &small, 0);
    assert!(stderr.contains(words) && model.exists(), "{stderr}");

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
    let fast = ["--quality", "fast", "--force"];
    // The second run reads the losses from the journal.
    for _ in 0..2 {
        let stderr = run(&eval, &fast, 0);
        assert!(stderr.contains("1 file scored without their damaged") && stderr.contains(words), "{stderr}");
        let record: Value = serde_json::from_slice(&fs::read(&scores).unwrap()).unwrap();
        let losses = record["evaluations"][0]["files"][0]["losses"][0].as_str().unwrap();
        assert!(losses.ends_with(words), "{losses}");
    }
    let strict = run(&eval, &[&fast[..], &["--strict"]].concat(), INPUT);
    assert!(strict.contains("1 file could not be scored") && strict.contains(words), "{strict}");
}

#[test]
fn training_continues_without_bad_files() {
    let folder = Folder::new();
    let [speech, model, output] = ["speech", "model.safetensors", "out.wav"].map(|name| folder.join(name));
    fs::create_dir(&speech).unwrap();
    write(&speech.join("good.wav"), spec(16_000, 1), voice(16_000, 2.0, 110.0));
    fs::write(speech.join("bad.wav"), "no recording").unwrap();
    let train = |output: &Path| denoise([Path::new("train"), &speech, Path::new("-o"), output]);
    let small = ["--rank", "4", "--iterations", "4", "--window", "0.032"];
    let mut trained = train(&model);
    trained.args(small);
    let message = stderr_of(trained, INPUT);
    assert!(message.contains("left out: ") && message.contains("bad.wav") && message.contains("in 1 file,"));
    train(&folder.join("none")).args(small).arg("--strict").assert().code(INPUT);
    assert!(model.exists() && !folder.join("none").exists());

    // The statistics name the dictionary.
    let input = folder.join("in.wav");
    recording(&input);
    let model = ["--model", model.to_str().unwrap()];
    let options = ["--quality", "fast", "--force", "--stats", "-"];
    let assert = denoise([&input, &output]).args(options).args(model).assert().success();
    let record: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert!(record["dictionary"].as_str().unwrap().contains("model"));
}
