//! Evaluations of small folders, from their files to their records.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use tempfile::TempDir;

use super::*;
use alphamf::signal::{SampleFormat, Signal};
use alphamf_files as audio;

/// A second of a swelling buzz at 8 kHz, with some noise added.
fn sound(noise: f32) -> Signal {
    let mut state = 1_u32;
    let samples = (0..8000_u16)
        .map(|n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let t = f32::from(n) / 8000.0;
            let buzz: f32 = (1..20_u8).map(|k| (800.0 * f32::from(k) * t).sin() / f32::from(k)).sum();
            0.2 * (1.2 - (9.0 * t).cos()) * buzz + noise * (state as f32 / 2.0_f32.powi(31) - 1.0)
        })
        .collect();
    Signal::new(8000, SampleFormat::Float32, vec![samples]).unwrap()
}

fn put(folder: &Path, name: &str, signal: &Signal) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    audio::write(&path, signal).unwrap();
    path
}

/// Two clean files, and four recordings of them in two conditions.
fn corpus() -> (TempDir, Pairing) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sp01", "sp02"] {
        put(folder.path(), &format!("clean/{name}.wav"), &sound(0.0));
        for (condition, noise) in [("hiss_sn5", 0.2), ("hum_sn0", 0.4)] {
            put(folder.path(), &format!("noisy/{condition}/{name}_{condition}.wav"), &sound(noise));
        }
    }
    let pairing =
        pair_folders(&folder.path().join("clean"), Some(&folder.path().join("noisy")), None).unwrap();
    (folder, pairing)
}

type Denoised = Result<Signal, Box<dyn std::error::Error + Send + Sync>>;

/// Stands in for a denoiser: halves the signal's higher half of the band.
fn smooth(signal: &Signal, _: &mut Observer) -> Denoised {
    let samples = &signal.channels()[0];
    let smoothed = (0..samples.len()).map(|n| 0.5 * (samples[n] + samples[n.saturating_sub(1)])).collect();
    Ok(signal.with_channels(vec![smoothed])?)
}

fn provenance() -> Provenance {
    Provenance {
        version: "1.2.3".into(),
        system: "denoise".into(),
        protocol: None,
        settings: serde_json::json!({"iterations": 150, "noise": {"rank": 2}}),
        seed: Some(7),
        dictionary_sha256: Some("ab".into()),
        high_pass_hz: 0.0,
    }
}

fn without_times(mut results: Vec<FileResult>) -> Vec<FileResult> {
    for result in &mut results {
        result.processing_seconds = None;
        result.trace.iter_mut().for_each(|point| point.seconds = 0.0);
    }
    results
}

#[test]
fn recordings_find_their_clean_files() {
    let (folder, pairing) = corpus();
    assert_eq!(pairing.unpaired, []);
    let found: Vec<_> =
        pairing.pairs.iter().map(|pair| (pair.name.as_str(), pair.condition.as_deref().unwrap())).collect();
    assert_eq!(
        found,
        [
            ("hiss_sn5/sp01_hiss_sn5.wav", "hiss_sn5"),
            ("hiss_sn5/sp02_hiss_sn5.wav", "hiss_sn5"),
            ("hum_sn0/sp01_hum_sn0.wav", "hum_sn0"),
            ("hum_sn0/sp02_hum_sn0.wav", "hum_sn0"),
        ]
    );
    assert_eq!(pairing.pairs[3].clean, folder.path().join("clean/sp02.wav"));

    // An equal name wins over the part before the first '_', and has no condition.
    put(folder.path(), "clean/sp01_hum_sn0.wav", &sound(0.0));
    put(folder.path(), "noisy/sp03_hum.wav", &sound(0.1));
    for side in ["clean", "noisy"] {
        put(folder.path(), &format!("{side}/wind__03.wav"), &sound(0.1));
    }
    let pairing =
        pair_folders(&folder.path().join("clean"), Some(&folder.path().join("noisy")), None).unwrap();
    let pair = &pairing.pairs[2];
    assert_eq!((pair.condition.clone(), &pair.clean), (None, &folder.path().join("clean/sp01_hum_sn0.wav")));
    // But for what stands before "__" in a name that both share.
    let kind = pairing.pairs.iter().find(|pair| pair.name == "wind__03.wav").unwrap();
    assert_eq!(kind.condition.as_deref(), Some("wind"));
    assert_eq!(pairing.unpaired.len(), 1);
    assert_eq!(pairing.unpaired[0].name, "sp03_hum.wav");
}

#[test]
fn folders_without_pairs_are_refused_in_one_line_that_says_what_was_found() {
    let (folder, _) = corpus();
    let data = folder.path();
    let message = |clean: &str, noisy: &str| {
        let error = pair_folders(&data.join(clean), Some(&data.join(noisy)), None).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    fs::create_dir(data.join("empty")).unwrap();
    assert!(message("clean", "empty").ends_with("the folder is empty"));
    fs::write(data.join("empty/notes.txt"), "").unwrap();
    assert!(message("clean", "empty").contains("found 1 other files, such as"));
    assert!(message("clean", "absent").contains("absent"));
    put(data, "other/p232_001.wav", &sound(0.0));
    let nothing = message("other", "noisy");
    assert!(nothing.contains("none of the 4 files") && nothing.contains("p232_001.wav"), "{nothing}");
    fs::copy(data.join("clean/sp01.wav"), data.join("clean/sp01.flac")).unwrap();
    assert!(message("clean", "noisy").contains("have one name"));
}

#[test]
#[cfg(unix)]
fn folders_are_looked_into_once_however_many_links_lead_to_them() {
    let (folder, pairing) = corpus();
    std::os::unix::fs::symlink("..", folder.path().join("noisy/hum_sn0/up")).unwrap();
    let [clean, noisy] = ["clean", "noisy"].map(|name| folder.path().join(name));
    assert_eq!(pair_folders(&clean, Some(&noisy), None).unwrap(), pairing);
}

#[test]
fn enhanced_files_go_with_their_recordings() {
    let (folder, _) = corpus();
    let data = folder.path();
    let (clean, noisy, enhanced) = (data.join("clean"), data.join("noisy/hum_sn0"), data.join("enhanced"));
    put(&enhanced, "sp01_hum_sn0.wav", &sound(0.05));
    let pairing = pair_folders(&clean, Some(&noisy), Some(&enhanced)).unwrap();
    assert_eq!((pairing.pairs.len(), pairing.unpaired.len()), (1, 1));
    let refuse = |_: &Signal, _: &mut Observer| -> Denoised { Err("enhanced files are not denoised".into()) };
    let (results, failures) =
        evaluate(&pairing.pairs, &Options::default(), None, refuse, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(failures, []);
    let gain =
        results[0].output.get(Metric::Snr).unwrap() - results[0].input.unwrap().get(Metric::Snr).unwrap();
    assert!((gain - 20.0 * 8.0_f64.log10()).abs() < 0.01, "noise of 0.05 instead of 0.4: {gain} dB");
    // Without recordings there is nothing to score as input.
    let pairing = pair_folders(&clean, None, Some(&enhanced)).unwrap();
    let (results, _) =
        evaluate(&pairing.pairs, &Options::default(), None, refuse, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((results.len(), results[0].input), (1, None));
}

#[test]
fn manifests_name_pairs_and_conditions() {
    let (folder, _) = corpus();
    let path = folder.path().join("pairs.csv");
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        read_manifest(&path).map_err(|error| error.to_string())
    };
    let pairs =
        read("\u{feff}condition, clean, noisy\r\nquiet, clean/sp01.wav,\"noisy/a,b.wav\"\r\n").unwrap().pairs;
    assert_eq!(pairs[0].condition.as_deref(), Some("quiet"));
    assert_eq!(pairs[0].name, "noisy/a,b.wav");
    assert_eq!(pairs[0].clean, folder.path().join("clean/sp01.wav"));
    for (text, expected) in [
        ("", "no column 'clean'"),
        ("noisy,clean\n", "line 2: no pairs"),
        ("noisy,condition\na,b\n", "no column 'clean'"),
        ("clean,condition\na,b\n", "no column 'noisy' or 'enhanced'"),
        ("noisy,clean,snr\na,b,5\n", "unknown column 'snr'"),
        ("noisy,clean\r\na,b\r\nc\r\n", "line 3: 1 cells: expected 2"),
        ("noisy,clean\na,b\nc,\n", "line 3: the column 'clean' is empty"),
        ("noisy,clean\na,b\na,c\n", "line 3: 'a' is listed twice"),
        ("noisy,clean\na,b\n\"c,d\n", "line 3"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    fs::write(&path, b"noisy,clean\n\xff,b\n").unwrap();
    assert!(read_manifest(&path).unwrap_err().to_string().contains("line 2"));
}

#[test]
fn bad_files_are_reported_and_stop_nothing() {
    let (folder, mut pairing) = corpus();
    let data = folder.path();
    fs::write(data.join("noisy/hiss_sn5/sp01_hiss_sn5.wav"), b"RIFF").unwrap();
    let short = sound(0.1).with_channels(vec![sound(0.1).channels()[0][..7000].to_vec()]).unwrap();
    put(data, "noisy/hiss_sn5/sp02_hiss_sn5.wav", &short);
    let stereo = sound(0.1).with_channels(vec![sound(0.1).channels()[0].clone(); 2]).unwrap();
    put(data, "noisy/hum_sn0/sp01_hum_sn0.wav", &stereo);
    let other = Signal::new(16_000, SampleFormat::Int16, sound(0.1).into_channels()).unwrap();
    put(data, "noisy/other.wav", &other);
    pairing.pairs.push(Pair {
        name: "other.wav".into(),
        condition: None,
        clean: data.join("clean/sp01.wav"),
        noisy: Some(data.join("noisy/other.wav")),
        enhanced: None,
    });
    let (results, failures) =
        evaluate(&pairing.pairs, &Options::default(), None, smooth, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].name, "hum_sn0/sp02_hum_sn0.wav");
    for (failure, expected) in
        failures.iter().zip(["not an audio file", "at most 0.1 s", "2 channels", "16000 Hz"])
    {
        assert!(failure.reason.contains(expected) && !failure.reason.contains('\n'), "{}", failure.reason);
    }
    assert_eq!(failures.len(), 4);
}

#[test]
fn lengths_up_to_a_tenth_of_a_second_apart_are_cut() {
    let clean = sound(0.0);
    let cut = |length: usize| clean.with_channels(vec![sound(0.1).channels()[0][..length].to_vec()]).unwrap();
    let scores = score(&clean, &cut(7200), 0.0).unwrap();
    assert_eq!(
        scores,
        score(&cut(7200).with_channels(vec![clean.channels()[0][..7200].to_vec()]).unwrap(), &cut(7200), 0.0)
            .unwrap()
    );
    assert_eq!(score(&clean, &cut(7199), 0.0), Err(ScoreError::Length { found: 7199, expected: 8000 }));
}

#[test]
fn high_pass_removes_what_is_below_and_nothing_else() {
    // Whole periods, odd and even lengths.
    for length in [8000_usize, 8001] {
        let rate = length as u32;
        let tone = |hertz: f64| -> Vec<f64> {
            (0..length).map(|n| (std::f64::consts::TAU * hertz * n as f64 / length as f64).sin()).collect()
        };
        let mixed = tone(50.0).iter().zip(tone(75.0)).map(|(a, b)| 0.3 + a + b).collect();
        let left = high_pass(mixed, rate, 75.0);
        let error = left.iter().zip(tone(75.0)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 1e-11, "{error}");
    }
}

#[test]
fn an_interrupted_run_continues_wherever_it_was_cut_and_repeats_nothing() {
    let (folder, pairing) = corpus();
    let path = folder.path().join("run.jsonl");
    let run = || {
        let journal = Journal::open(&path, &provenance()).unwrap();
        let calls = AtomicUsize::new(0);
        let denoise = |signal: &Signal, observer: &mut Observer| {
            calls.fetch_add(1, Ordering::Relaxed);
            observer(10, signal);
            smooth(signal, observer)
        };
        let (results, failures) =
            evaluate(&pairing.pairs, &Options::default(), Some(&journal), denoise, |_| {
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(failures, []);
        (results, calls.into_inner())
    };
    let (complete, calls) = run();
    assert_eq!(calls, 4);
    let (again, calls) = run();
    assert_eq!((&again, calls), (&complete, 0), "a finished run has nothing left to do");

    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|&i| whole[i] == b'\n').map(|i| i + 1).collect();
    assert_eq!(ends.len(), 5);
    for cut in ends[1]..ends[2] {
        fs::write(&path, &whole[..cut]).unwrap();
        let opened = Journal::open(&path, &provenance());
        assert!(opened.is_ok(), "cut at byte {cut}: {}", opened.unwrap_err());
    }
    // Some ways to tear the second result's line, and the header's.
    let cuts = (ends[1]..ends[2]).step_by(7).chain([0, 1, 12, ends[0] - 1, ends[0], ends[4] - 1]);
    for cut in cuts {
        fs::write(&path, &whole[..cut]).unwrap();
        let kept = ends.iter().filter(|&&end| end <= cut).count().saturating_sub(1);
        let (results, calls) = run();
        assert_eq!(calls, 4 - kept, "cut at byte {cut}");
        assert_eq!(without_times(results), without_times(complete.clone()), "cut at byte {cut}");
    }
}

#[test]
fn a_run_can_be_stopped() {
    let (folder, pairing) = corpus();
    let path = folder.path().join("run.jsonl");
    let journal = Journal::open(&path, &provenance()).unwrap();
    let stopped =
        evaluate(&pairing.pairs, &Options::default(), Some(&journal), smooth, |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(EvaluationError::Cancelled(_))));
    drop(journal);
    let journal = Journal::open(&path, &provenance()).unwrap();
    let kept = pairing.pairs.iter().filter(|pair| journal.finished(pair).unwrap().is_some()).count();
    assert!(kept >= 1, "what was finished is kept");
}

#[test]
fn journals_that_are_damaged_foreign_or_in_use_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let refused = |bytes: &[u8], expected: &str| {
        fs::write(&path, bytes).unwrap();
        let error = Journal::open(&path, &provenance()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "a refused journal must not change");
    };
    refused(b"dear diary", "line 1: not a line of a journal");
    refused(b"{\"a\": 1}\n{\"b\": 2}\n", "line 1: not a line of a journal");
    refused(b"{\"journal\":1,\"provenance\":{}}\n", "format 1: expected 2");

    fs::remove_file(&path).unwrap();
    let journal = Journal::open(&path, &provenance()).unwrap();
    let busy = Journal::open(&path, &provenance()).unwrap_err().to_string();
    assert!(busy.contains("in use by another run"), "{busy}");
    drop(journal);
    let mut damaged = fs::read(&path).unwrap();
    damaged.extend_from_slice(b"\0\0\0\n{}\n");
    refused(&damaged, "line 2: not a line of a journal");

    // Lines that have lost their ends are no torn line.
    fs::remove_file(&path).unwrap();
    drop(Journal::open(&path, &provenance()).unwrap());
    let mut damaged = fs::read(&path).unwrap();
    let header = damaged.len();
    damaged.extend_from_slice(b"{\"content\":\"\"}{\"content\":\"\"}");
    refused(&damaged, "line 2: not a line of a journal: it has no end");
    damaged.remove(header - 1);
    refused(&damaged, "line 1: not a line of a journal: it has no end");
    // The beginning of a line is one.
    for length in [0, 1, header / 2, header - 1] {
        fs::write(&path, &damaged[..length]).unwrap();
        drop(Journal::open(&path, &provenance()).unwrap());
        assert_eq!(fs::read(&path).unwrap().len(), header, "{length} bytes");
    }
    #[cfg(target_os = "linux")]
    {
        let error = Journal::open(Path::new("/dev/full"), &provenance()).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }

    fs::remove_file(&path).unwrap();
    drop(Journal::open(&path, &provenance()).unwrap());
    let changed =
        Provenance { settings: serde_json::json!({"iterations": 150, "noise": {"rank": 5}}), ..provenance() };
    let error = Journal::open(&path, &changed).unwrap_err().to_string();
    assert!(error.contains("settings.noise.rank was 2, now 5"), "{error}");
}

#[test]
fn records_keep_every_bit_and_name_what_made_them() {
    let (folder, pairing) = corpus();
    let options = Options { save: Some(folder.path().join("saved")), ..Options::default() };
    let (mut results, failures) =
        evaluate(&pairing.pairs, &options, None, smooth, |_| ControlFlow::Continue(())).unwrap();
    let saved = audio::read(options.saved(&pairing.pairs[1]).unwrap()).unwrap();
    assert_eq!(score(&sound(0.0), &saved, 0.0).unwrap(), results[1].output);
    // A perfect estimate has infinite scores, which JSON cannot say as numbers.
    results[0].output = score(&sound(0.0), &sound(0.0), 0.0).unwrap();
    let record = Evaluation::new(provenance(), results, failures);
    let record = Study::new(vec![record]);
    let read: Study = serde_json::from_str(&record.to_json()).unwrap();
    assert_eq!(read, record);

    let csv = record.to_csv();
    let record = &record.evaluations[0];
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cell = |row: usize, name: &str| &rows[row][header.iter().position(|column| column == name).unwrap()];
    assert_eq!(rows.len(), 4);
    assert_eq!(cell(0, "output_sdr"), "inf");
    assert_eq!(
        cell(1, "output_sdr").parse::<f64>().unwrap(),
        record.files[1].output.get(Metric::Sdr).unwrap()
    );
    assert_eq!(cell(1, "condition"), "hiss_sn5");
    assert_eq!((cell(3, "seed"), cell(3, "version"), cell(3, "dictionary_sha256")), ("7", "1.2.3", "ab"));
    assert_eq!(cell(3, "settings"), r#"{"iterations":150,"noise":{"rank":2}}"#);
    assert!(cell(3, "definitions").contains("sdr: BSS-eval v3, single source, 512-tap"));

    let conditions: Vec<_> = record.summary.iter().map(|row| (row.condition.as_deref(), row.files)).collect();
    assert_eq!(conditions, [(None, 4), (Some("hiss_sn5"), 2), (Some("hum_sn0"), 2)]);
}

#[test]
fn studies_compare_systems_and_draw_their_traces() {
    let (_folder, pairing) = corpus();
    let system = |name: &str, denoise: &(dyn Fn(&Signal, &mut Observer) -> Denoised + Sync)| {
        let (files, failures) =
            evaluate(&pairing.pairs, &Options::default(), None, denoise, |_| ControlFlow::Continue(()))
                .unwrap();
        Evaluation::new(Provenance { system: name.into(), ..provenance() }, files, failures)
    };
    let gradual = |signal: &Signal, observer: &mut Observer| {
        observer(0, signal);
        let smoothed = smooth(signal, observer)?;
        observer(100, &smoothed);
        Ok(smoothed)
    };
    let idle = |signal: &Signal, _: &mut Observer| Ok(signal.clone());
    let study = Study::new(vec![system("gradual", &gradual), system("idle", &idle)]);
    let compared: Vec<Metric> = study.comparisons.iter().map(|row| row.metric).collect();
    let taken: Vec<Metric> =
        study.evaluations[0].metrics.iter().map(|definition| definition.metric).collect();
    assert_eq!(compared, taken, "one pair of systems by every measure");
    let comparison = &study.comparisons[0];
    assert_eq!((comparison.first.as_str(), comparison.second.as_str()), ("gradual", "idle"));
    let sdr = |row: usize| study.evaluations[row].summary[0].get(Metric::Sdr).unwrap();
    let gain = sdr(0).output.mean - sdr(1).output.mean;
    assert!(gain > 1.0 && (comparison.comparison.difference.mean - gain).abs() < 1e-12);
    assert_eq!(comparison.comparison.p_value, 0.125, "two of sixteen patterns of signs");
    let curves = study.curves(Abscissa::Iterations);
    assert_eq!(curves.len(), 1, "a system without traces has no curve");
    let [(x0, y0, _), (x1, y1, _)] = curves[0].points[..] else { panic!("{curves:?}") };
    assert_eq!((x0, x1), (0.0, 100.0));
    assert!((y0 - sdr(1).output.mean).abs() < 1e-9 && (y1 - sdr(0).output.mean).abs() < 1e-9);
    assert!(study.curves(Abscissa::Time)[0].points[1].0 > 0.0);
}

#[test]
fn reports_hold_everything_and_escape_what_they_are_given() {
    let (folder, mut pairing) = corpus();
    pairing.pairs[0].name = "a<script>&.wav".into();
    let (files, _) =
        evaluate(&pairing.pairs, &Options::default(), None, smooth, |_| ControlFlow::Continue(())).unwrap();
    let failures = vec![Failure { name: "b.wav".into(), reason: "<b>".into() }];
    let example = |index: usize| report::Example {
        name: files[index].name.clone(),
        clean: sound(0.0),
        noisy: Some(audio::read(pairing.pairs[index].noisy.as_ref().unwrap()).unwrap()),
        denoised: vec![Some(sound(0.01)), None],
    };
    let (best, worst) = report::best_and_worst(&files, 1);
    let examples = report::Examples {
        best: best.into_iter().map(example).collect(),
        worst: worst.into_iter().map(example).collect(),
    };
    let evaluation = |system: &str| {
        Evaluation::new(Provenance { system: system.into(), ..provenance() }, files.clone(), failures.clone())
    };
    let page = report::render(&Study::new(vec![evaluation("one"), evaluation("<two>")]), &examples).unwrap();
    assert!(page.contains("a&lt;script&gt;&amp;.wav") && page.contains("&lt;b&gt;"));
    assert_eq!(page.matches("<script").count(), 1, "that of the page alone");
    for part in
        ["one − &lt;two&gt;", "95 % interval", "<td>&lt;two&gt;", "data-version=\"one\"", "type=search"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("data:image/png;base64,").count(), 6);
    assert_eq!(page.matches("data:audio/wav;base64,").count(), 6);
    // Base64 may spell anything.
    let text: String =
        page.split("data:").map(|part| part.split_once('"').map_or(part, |(_, rest)| rest)).collect();
    let text = text.replace("http://www.w3.org/2000/svg", "");
    assert!(!text.contains("http") && !text.contains("NaN"));
    assert!(!page.contains(&folder.path().display().to_string()), "nothing of the machine");
}

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
        if path.extension().is_some_and(|extension| extension == "toml") {
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
        ("clean/*.wav", "clean/***.wav", "corpus.clean"),
        ("[corpus]", "[corpus", "line 3"),
    ] {
        let error = error(from, to);
        assert!(error.contains(expected), "{to}: {error}");
    }
}
