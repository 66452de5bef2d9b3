//! Manifests of NeMo and lhotse, and those of the results.

use crate::recording;
use crate::shared::*;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

/// Writes entries as JSON lines, compressed by gzip if the name ends in `.gz`.
fn write_lines(path: &Path, entries: &[Value]) {
    let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        fs::write(path, encoder.finish().unwrap()).unwrap();
    } else {
        fs::write(path, text).unwrap();
    }
}

fn read_lines(path: &Path) -> Vec<Value> {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap(),
        false => bytes.as_slice().read_to_string(&mut text).unwrap(),
    };
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn cut(id: &str, start: f64, file: &str) -> Value {
    json!({"id": id, "start": start, "duration": 0.5, "channel": 0, "type": "MonoCut",
        "supervisions": [{"id": id, "recording_id": "r", "start": 0.0, "duration": 0.5, "text": "one"}],
        "recording": {"id": "r", "sampling_rate": 16_000, "num_samples": 16_000, "duration": 1.0,
            "sources": [{"type": "file", "channels": [0], "source": file}]}})
}

#[test]
fn names_of_a_list_are_looked_up_beside_it() {
    let folder = Folder::new();
    fs::create_dir_all(folder.join("lists/b")).unwrap();
    ["lists/a.wav", "lists/b/c.wav"].into_iter().for_each(|name| recording(&folder.join(name)));
    let list = folder.join("lists/list.txt");
    fs::write(&list, "a.wav\r\nb/c.wav\n").unwrap();
    let run = |arguments: &[&str], code| folder.run(arguments, code);
    let stderr = run(&["--manifest", "lists/list.txt", "-o", "voices"], 0);
    assert!(stderr.contains("2 denoised"), "{stderr}");
    assert!(folder.join("voices/a.wav").is_file() && folder.join("voices/b/c.wav").is_file());
    // The list is in Latin-1.
    fs::write(&list, b"a.wav\nGr\xfc\xdfe.wav\n").unwrap();
    let stderr = run(&["--manifest", "lists/list.txt", "-o", "other"], INPUT);
    assert!(stderr.contains("list.txt") && stderr.contains("line 2: not UTF-8 text"), "{stderr}");
}

#[test]
fn results_of_a_manifest_are_one_of_its_kind() {
    let folder = Folder::new();
    fs::create_dir_all(folder.join("in/b")).unwrap();
    ["in/a.wav", "in/b/c.wav"].into_iter().for_each(|name| recording(&folder.join(name)));
    let run = |arguments: &[&str], code| folder.run(arguments, code);
    let output = |name: &str| fs::canonicalize(folder.join(name)).unwrap().to_str().unwrap().to_owned();

    // Paths are relative to the manifest, as in NeMo; failed entries are left out.
    let entries = [
        json!({"audio_filepath": "a.wav", "duration": 0.5, "text": "one"}),
        json!({"audio_filepath": "missing.wav", "duration": 0.5, "text": "two"}),
        json!({"audio_filepath": "b/c.wav", "duration": 0.5, "offset": 0.25, "text": "three"}),
    ];
    write_lines(&folder.join("in/train.json"), &entries);
    let stderr = run(&["--manifest", "in/train.json", "-o", "voices"], INPUT);
    assert!(stderr.contains("2 denoised, 0 skipped, 1 failed"), "{stderr}");
    let expected = [
        json!({"audio_filepath": output("voices/a.wav"), "duration": 0.5, "text": "one"}),
        json!({"audio_filepath": output("voices/b/c.wav"), "duration": 0.5, "offset": 0.25, "text": "three"}),
    ];
    assert_eq!(read_lines(&folder.join("voices/train.json")), expected);
    // A later run replaces its manifest, but not an edited one.
    write_lines(&folder.join("in/train.json"), &entries[..1]);
    assert!(run(&["--manifest", "in/train.json", "-o", "voices"], 0).contains("1 skipped"));
    assert_eq!(read_lines(&folder.join("voices/train.json")), expected[..1]);
    fs::write(folder.join("voices/train.json"), "edited").unwrap();
    assert!(run(&["--manifest", "in/train.json", "-o", "voices"], OUTPUT).contains("train.json"));
    assert_eq!(fs::read(folder.join("voices/train.json")).unwrap(), b"edited");
    run(&["--manifest", "in/train.json", "-o", "voices", "--force"], 0);
    assert_eq!(read_lines(&folder.join("voices/train.json")), expected[..1]);

    // Several cuts of one recording. Each shard writes its own manifest.
    let cuts = [cut("a-1", 0.0, "in/a.wav"), cut("a-2", 0.25, "in/a.wav"), cut("c-1", 0.0, "in/b/c.wav")];
    write_lines(&folder.join("cuts.jsonl.gz"), &cuts);
    let stderr = run(&["--manifest", "cuts.jsonl.gz", "-o", "cut"], 0);
    assert!(stderr.contains("2 denoised"), "{stderr}");
    let (first, second) = (output("cut/in/a.wav"), output("cut/in/b/c.wav"));
    let expected = [cut("a-1", 0.0, &first), cut("a-2", 0.25, &first), cut("c-1", 0.0, &second)];
    assert_eq!(read_lines(&folder.join("cut/cuts.jsonl.gz")), expected);
    let mut parts = Vec::new();
    for part in ["1/2", "2/2"] {
        run(&["--manifest", "cuts.jsonl.gz", "-o", "cut", "--shard", part], 0);
        let name = format!("cut/{}.cuts.jsonl.gz", part.replace('/', "-of-"));
        parts.extend(read_lines(&folder.join(&name)));
    }
    parts.sort_by_key(|cut| cut["id"].to_string());
    assert_eq!(parts, expected);

    // The manifest itself is an input, so --force does not overwrite it.
    fs::create_dir(folder.join("same")).unwrap();
    write_lines(&folder.join("same/train.json"), &[json!({"audio_filepath": "in/a.wav"})]);
    let stderr = run(&["--manifest", "same/train.json", "-o", "same", "--force"], OUTPUT);
    assert!(stderr.contains("train.json"), "{stderr}");
    write_lines(&folder.join("bad.json"), &[entries[0].clone(), json!({"audio_filepath": 1})]);
    let stderr = run(&["--manifest", "bad.json", "-o", "bad"], INPUT);
    assert!(
        stderr.contains("bad.json")
            && stderr.contains(": line 2: ")
            && stderr.trim_end().lines().count() == 1,
        "{stderr}"
    );
}

/// lhotse reads Opus at the rate before encoding; results have the decoder's rate.
/// The stand-in here is a WAV file at 16 kHz.
#[test]
fn lhotse_resamples_converted_recordings_to_the_rate_of_the_manifest() {
    let folder = Folder::new();
    ["a.opus", "b.wav"].into_iter().for_each(|name| recording(&folder.join(name)));
    let mut narrow = cut("a", 0.0, "a.opus");
    narrow["recording"]["sampling_rate"] = 8_000.into();
    let resampled = |mut cut: Value, transforms: Value| {
        cut["recording"]["transforms"] = transforms;
        cut
    };
    let by = |from: u32, to: u32| json!({"name": "Resample", "kwargs": {"source_sampling_rate": from, "target_sampling_rate": to}});
    let speed = json!({"name": "Speed", "kwargs": {"factor": 0.9}});
    let twice = resampled(narrow.clone(), json!([speed, by(12_000, 8_000)]));
    let fits = [cut("c", 0.0, "a.opus"), cut("d", 0.0, "b.wav")];
    write_lines(
        &folder.join("cuts.jsonl"),
        &[narrow.clone(), twice.clone(), fits[0].clone(), fits[1].clone()],
    );
    let mut command = denoise(["--manifest", "cuts.jsonl", "-o", "out", "-q", "--quality", "fast"]);
    command.current_dir(folder.0.path()).assert().success();
    let mut found = read_lines(&folder.join("out/cuts.jsonl"));
    for cut in &mut found {
        let source = cut.pointer_mut("/recording/sources/0/source").unwrap();
        let name = source.as_str().unwrap().rsplit_once('/').unwrap().1.replace("a.wav", "a.opus");
        *source = name.into();
    }
    let expected = [
        resampled(narrow, json!([by(16_000, 8_000)])),
        resampled(twice, json!([by(16_000, 12_000), speed, by(12_000, 8_000)])),
        fits[0].clone(),
        fits[1].clone(),
    ];
    assert_eq!(found, expected);
}

/// A folder whose name is not UTF-8 is refused before any work, as the manifest would omit all files in it.
#[test]
#[cfg(target_os = "linux")]
fn results_of_a_manifest_have_names_in_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    recording(&folder.join("a.wav"));
    write_lines(&folder.join("train.json"), &[json!({"audio_filepath": "a.wav"})]);
    let results = folder.0.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let mut command = denoise(["--manifest", "train.json", "-q", "-o"]);
    command.arg(&results).current_dir(folder.0.path());
    fails_as(command, OUTPUT, &["caf", "not UTF-8"]);
    assert!(!results.exists());
}
