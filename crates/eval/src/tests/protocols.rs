//! Protocols: files and settings by name.

use serde::Deserialize;

use super::*;

const PROTOCOL: &str = r#"
name = "test"
[corpus]
clean = ["clean/*.wav"]
noisy = ["noisy/*/sp02_*.wav"]
files = 2
[training]
clean = ["clean/sp01.wav"]
sample_rate = 8000
settings = { rank = 3 }
[settings]
rank = 100
[[variant]]
name = "A"
[[variant]]
name = "B"
settings = { rank = 5, seed = 1 }
"#;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    rank: u32,
    seed: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { rank: 1, seed: 9 }
    }
}

#[test]
fn protocols_give_files_and_settings() {
    let (folder, _) = corpus();
    let path = folder.path().join("test.toml");
    fs::write(&path, PROTOCOL).unwrap();
    let protocol = Protocol::read(&path).unwrap();
    let names: Vec<_> =
        protocol.pairs(folder.path()).unwrap().pairs.into_iter().map(|pair| pair.name).collect();
    assert_eq!(names, ["noisy/hiss_sn5/sp02_hiss_sn5.wav", "noisy/hum_sn0/sp02_hum_sn0.wav"]);
    assert_eq!(protocol.training_files(folder.path()).unwrap(), [folder.path().join("clean/sp01.wav")]);
    assert_eq!(protocol.training_settings::<Settings>().unwrap(), Settings { rank: 3, seed: 9 });
    let variants = protocol.variants::<Settings>().unwrap();
    assert_eq!(variants[0], Variant { name: "A".into(), settings: Settings { rank: 100, seed: 9 } });
    assert_eq!(variants[1], Variant { name: "B".into(), settings: Settings { rank: 5, seed: 1 } });
}

#[test]
fn every_protocol_that_comes_with_the_program_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval");
    let (mut count, mut sampled) = (0, Vec::new());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // A script reads the protocol of word errors.
        let is_ours = !path.ends_with("transcription.toml");
        if is_ours && path.extension().is_some_and(|extension| extension == "toml") {
            let protocol = Protocol::read(&path).unwrap();
            protocol.training_settings::<alphamf::learning::TrainingSettings>().unwrap();
            for variant in protocol.variants::<alphamf::Settings>().unwrap() {
                variant.settings.validate().unwrap();
                if variant.name == "HAMCMC" && path.ends_with("figure-3.toml") {
                    assert_eq!(variant.settings, alphamf::Settings::published());
                }
                if protocol.name.ends_with("samplers") {
                    sampled.push(variant.settings.sampling.map(|sampling| sampling.iterations));
                }
            }
            count += 1;
        }
    }
    assert!(count >= 10);
    // A variant adds to a group of settings, or turns it off.
    assert_eq!((sampled[0], sampled[1]), (None, Some(50)));
}

#[test]
fn protocols_with_mistakes_are_refused_by_the_key() {
    let (folder, _) = corpus();
    let path = folder.path().join("test.toml");
    let error = |from: &str, to: &str| {
        assert!(PROTOCOL.contains(from));
        fs::write(&path, PROTOCOL.replacen(from, to, 1)).unwrap();
        let error = Protocol::read(&path)
            .and_then(|protocol| {
                protocol.pairs(folder.path())?;
                protocol.training_settings::<Settings>()?;
                protocol.variants::<Settings>()
            })
            .unwrap_err()
            .to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    for (from, to, expected) in [
        ("files = 2", "flies = 2", "line 6: unknown field `flies`"),
        ("[settings]", "[setting]", "unknown field `setting`"),
        ("rank = 100", "rnak = 100", "settings of variant 'A': unknown field `rnak`"),
        ("{ rank = 3 }", "{ tank = 3 }", "training.settings: unknown field `tank`"),
        ("seed = 1", "seed = -1", "variant 'B'"),
        ("seed = 1", "method = \"new\"", "settings of variant 'B': method is new: expected published"),
        ("name = \"test\"", "", "missing field `name`"),
        ("files = 2", "files = 3", "corpus.files = 3, but"),
        ("sp02_*.wav", "sp07_*.wav", "corpus.noisy = \"noisy/*/sp07_*.wav\" matches no file"),
        ("clean/sp01.wav", "clean/sp0?.wav", "which noisy/hiss_sn5/sp02_hiss_sn5.wav is tested against"),
        ("files = 2", "high_pass_hz = -1.0", "corpus.high_pass_hz = -1"),
        ("\"B\"", "\"A\"", "two variants are called 'A'"),
        ("\"B\"", "\"a\"", "two variants are called 'A' and 'a'"),
        (
            "\"B\"",
            "\"Nul.b\"",
            "a variant is called \"Nul.b\": expected one that can be the name of a folder",
        ),
        ("\"B\"", "\"com1\"", "a variant is called \"com1\""),
        ("\"B\"", "\"b.\"", "a variant is called \"b.\""),
        ("\"B\"", "\"b \"", "a variant is called \"b \""),
        ("\"B\"", "\"\"", "a variant is called \"\""),
        ("clean/*.wav", "clean/***.wav", "corpus.clean"),
        ("[corpus]", "[corpus", "line 3"),
    ] {
        let error = error(from, to);
        assert!(error.contains(expected), "{to}: {error}");
    }
}
