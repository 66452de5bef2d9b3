//! Tests of manifests.

use super::*;
use std::fs;
use tempfile::TempDir;

/// Reads a list beside which lies a file `here.wav`.
fn read(text: impl AsRef<[u8]>) -> anyhow::Result<Manifest> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("here.wav"), "").unwrap();
    let path = folder.path().join("list.json");
    fs::write(&path, text).unwrap();
    Manifest::read(&path)
}

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn names(manifest: &Manifest) -> Vec<&str> {
    manifest.recordings().iter().map(|listed| listed.name.to_str().unwrap()).collect()
}

const CUT: &str = r#"{"id":"a-1","start":1.5,"duration":2.0,"channel":0,"features":{"num_frames":3},"recording":{"id":"a","sources":[{"type":"file","channels":[0],"source":"x/a.wav"}],"sampling_rate":16000,"num_samples":80000,"duration":5.0},"type":"MonoCut"}"#;

#[test]
fn every_kind_is_read_and_returned() {
    let list = read("\u{feff}here.wav\r\n\n b {.wav\n \t\n").unwrap();
    assert_eq!((names(&list), list.result_name()), (vec!["here.wav", " b {.wav"], None));

    let nemo = "{\"audio_filepath\": \"a.wav\", \"duration\": 1.25, \"text\": \"grün\"}\n\n{\"audio_filepath\":\"b.wav\"}\n";
    let list = read(nemo).unwrap();
    assert_eq!((names(&list), list.result_name()), (vec!["a.wav", "b.wav"], Some(Path::new("list.json"))));
    let results = HashMap::from([(PathBuf::from("a.wav"), "/out/a.wav".to_owned())]);
    let found = String::from_utf8(list.of_results(&results).unwrap()).unwrap();
    assert_eq!(found, "{\"audio_filepath\":\"/out/a.wav\",\"duration\":1.25,\"text\":\"grün\"}\n");

    let list = read(compressed(CUT.as_bytes())).unwrap();
    assert_eq!(names(&list), ["x/a.wav"]);
    let results = HashMap::from([(PathBuf::from("x/a.wav"), "/out/x/a.wav".to_owned())]);
    let found = list.of_results(&results).unwrap();
    assert!(found.starts_with(&GZIP) && found == list.of_results(&results).unwrap());
    let mut text = String::new();
    MultiGzDecoder::new(found.as_slice()).read_to_string(&mut text).unwrap();
    let (found, mut expected): (Value, Value) =
        (serde_json::from_str(&text).unwrap(), serde_json::from_str(CUT).unwrap());
    expected.as_object_mut().unwrap().remove("features");
    *expected.pointer_mut("/recording/sources/0/source").unwrap() = "/out/x/a.wav".into();
    assert_eq!(found, expected);
}

/// Of `lhotse prepare`, before there are cuts.
#[test]
fn recordings_of_lhotse_have_results() {
    let cut: Value = serde_json::from_str(CUT).unwrap();
    let list = read(format!("{}\n", cut["recording"])).unwrap();
    assert_eq!(names(&list), ["x/a.wav"]);
    let results = HashMap::from([(PathBuf::from("x/a.wav"), "/out/x/a.wav".to_owned())]);
    let mut expected = cut["recording"].clone();
    *expected.pointer_mut("/sources/0/source").unwrap() = "/out/x/a.wav".into();
    let found: Value = serde_json::from_slice(&list.of_results(&results).unwrap()).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn names_are_looked_up_beside_the_manifest() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("here.wav"), "").unwrap();
    let path = folder.path().join("list.json");
    fs::write(&path, "{\"audio_filepath\":\"here.wav\"}\n{\"audio_filepath\":\"nowhere.wav\"}").unwrap();
    let list = Manifest::read(&path).unwrap();
    let inputs: Vec<&Path> = list.recordings().iter().map(|listed| listed.input.as_path()).collect();
    assert_eq!(inputs, [folder.path().join("here.wav").as_path(), Path::new("nowhere.wav")]);
}

#[test]
fn standard_input_is_no_recording_of_a_list() {
    for text in ["-\nhere.wav\n", "{\"audio_filepath\":\"-\"}"] {
        let list = read(text).unwrap();
        assert_eq!((list.recordings()[0].input.as_path(), names(&list)[0]), (Path::new("./-"), "-"));
        let results = HashMap::from([(PathBuf::from("./-"), "/out/-.wav".to_owned())]);
        assert!(list.kind == ListFormat::Names || !list.of_results(&results).unwrap().is_empty());
    }
}

#[test]
fn invalid_entries_are_refused_with_their_line() {
    let deep = format!("{{\"audio_filepath\":{}", "[".repeat(10_000));
    let cases: [(&str, &str); 20] = [
        ("{\"audio_filepath\":\"a\"}\nb.wav", "line 2: not JSON"),
        ("{\"audio_filepath\":\"a\"}\n{\"audio_filepath\":", "line 2: not JSON"),
        ("{\"audio_filepath\":3}", "line 1: `audio_filepath` is 3"),
        ("{\"audio_filepath\":[\"a\",\"b\"]}", "line 1: `audio_filepath` is ["),
        ("{\"audio_filepath\":\"\"}", "line 1: `audio_filepath` is \"\""),
        ("\n{\"text\":\"a\"}", "line 2: expected an entry"),
        ("{\"recording\":null}", "line 1: the recording has no `sources`"),
        (
            "{\"audio_filepath\":\"a\",\"x\":NaN}",
            "line 1: not JSON: expected value at line 1 column 27: NaN}",
        ),
        (
            "{\"tracks\":[],\"type\":\"MixedCut\"}",
            "line 1: a MixedCut without a recording of its own: save the audio",
        ),
        ("{\"sources\":[{\"type\":\"command\"}]}", "expected \"file\": save the audio to files first"),
        (
            "{\n  \"audio_filepath\": \"a\"\n}",
            "line 1: not JSON: EOF while parsing an object at line 1 column 1: expected an object per line",
        ),
        // Tables and arrays.
        (
            "utt1 a.wav\nutt2 b.wav",
            "no line names a file; the first is \"utt1 a.wav\": expected a name per line",
        ),
        ("file_name,text\na.wav,one", "no line names a file; the first is \"file_name,text\""),
        ("[\n  {\n    \"audio_filepath\": \"a.wav\"", "no line names a file; the first is \"[\""),
        ("{\"recording\":{\"sources\":[]}}", "line 1: the recording has no `sources`"),
        (
            "{\"recording\":{\"sources\":[{\"type\":\"url\",\"source\":\"a\"}]}}",
            "line 1: a source of type \"url\"",
        ),
        ("{\"recording\":{\"sources\":[{\"type\":\"file\"}]}}", "line 1: `source` is null"),
        (
            "{\"audio_filepath\":\"a\"}\n{\"recording\":{\"sources\":[{\"type\":\"file\",\"source\":\"a\"}]}}",
            "line 2: NeMo and lhotse",
        ),
        (&deep, "line 1: not JSON"),
        // Of `find -print0`.
        ("a.wav\0b.wav\0", "expected one name per line"),
    ];
    for (text, expected) in cases {
        let error = format!("{:#}", read(text).unwrap_err());
        assert!(error.contains(expected), "{expected}: {error}");
    }
    for text in ["", "\n \n"] {
        assert!(format!("{:#}", read(text).unwrap_err()).contains("no recording"), "{text:?}");
    }
    assert!(read([0x1f_u8, 0x8b, 8, 0, 1]).is_err() && read([b'{', 0xff]).is_err());
    // A small file that decompresses to more than the limit.
    let bomb = compressed(&vec![b' '; (2 << 20) + 1]);
    assert!(bomb.len() < 20_000 && decompressed(&bomb, 3 << 20).is_ok());
    assert!(decompressed(&bomb, 2 << 20).unwrap_err().to_string().contains("more than 2 MB"));
}
