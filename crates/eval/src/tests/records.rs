//! Records, comparisons and reports.

use super::*;
use std::io::Write;

#[test]
fn records_keep_every_bit_and_name_what_made_them() {
    let (folder, pairing) = corpus();
    let options = Options { save: Some(folder.path().join("saved")), ..Options::default() };
    let (mut results, failures) =
        evaluate(&pairing.pairs, &options, None, smooth, |_| ControlFlow::Continue(())).unwrap();
    let saved = audio::read(options.saved(&pairing.pairs[1]).unwrap()).unwrap();
    assert_eq!(score(&sound(0.0), &saved, 0.0).unwrap(), results[1].output);
    // A perfect estimate has infinite scores, which JSON cannot represent as numbers.
    results[0].output = score(&sound(0.0), &sound(0.0), 0.0).unwrap();
    let record = Evaluation::new(provenance(), results, failures);
    let record = Study::new(vec![record]);
    let read: Study = serde_json::from_str(&record.to_json()).unwrap();
    assert_eq!(read, record);
    let page = report::render(&record, &report::Examples::default()).unwrap();
    assert!(page.contains("1 file with an infinite SDR is left out."));

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

    // A page also shows the traces of a single system, and no chart without traces.
    let [traced, idle] = <[Evaluation; 2]>::try_from(study.evaluations).unwrap();
    for (system, charts) in [(traced, 2), (idle, 0)] {
        let page = report::render(&Study::new(vec![system]), &report::Examples::default()).unwrap();
        assert_eq!(page.matches("<title>Convergence</title>").count(), charts);
    }
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
    // Base64 may contain any word.
    let text: String =
        page.split("data:").map(|part| part.split_once('"').map_or(part, |(_, rest)| rest)).collect();
    let text = text.replace("http://www.w3.org/2000/svg", "");
    assert!(!text.contains("http") && !text.contains("NaN"));
    assert!(!page.contains(&folder.path().display().to_string()), "nothing of the machine");

    // Without recordings there is no change to choose the examples by.
    assert!(page.contains(">By the change of SDR.") && !page.contains(">By SDR."));
    let mut enhanced = evaluation("one");
    enhanced.files.iter_mut().for_each(|file| file.input = None);
    let page = report::render(&Study::new(vec![enhanced]), &examples).unwrap();
    assert!(page.contains(">By SDR.") && !page.contains(">By the change of SDR."));
}

/// A study of twelve samplers has fourteen versions of a recording.
#[test]
fn keys_switch_versions_however_many_there_are() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/page.js");
    let keys = "const page = require('fs').readFileSync(process.argv[1], 'utf8');\
        const keyed = new Function('document', page + '; return keyed;')({querySelectorAll: () => []});\
        const of = (count, more) =>\
            ['0', '1', '2', '9', 'Enter', ' ', '10'].map(key => keyed({key, ...more}, count) ?? '-').join('');\
        console.log([3, 9, 14].map(count => of(count)).join(' '), of(9, {ctrlKey: true}), of(9, {altKey: true}));";
    let Ok(run) = std::process::Command::new("node").args(["-e", keys]).arg(script).output() else {
        std::io::stderr().write_all(b"SKIPPED: no node for the script of the page\n").unwrap();
        return;
    };
    let found = String::from_utf8_lossy(&run.stdout);
    let expected = "-01---- -018--- -018--- ------- -------";
    assert_eq!(found.trim_end(), expected, "{}", String::from_utf8_lossy(&run.stderr));
}
