//! Runs: scoring, interruption and resumption, and the journal.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

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
fn a_silent_clean_file_is_named_itself() {
    let (folder, pairing) = corpus();
    let silence = sound(0.0).with_channels(vec![vec![0.0; 8_000]]).unwrap();
    let clean = put(folder.path(), "clean/sp01.wav", &silence);
    let go_on = |_: Result<&FileResult, &Failure>| ControlFlow::Continue(());
    let (_, failures) = evaluate(&pairing.pairs, &Options::default(), None, smooth, go_on).unwrap();
    let reason = format!("{}: the reference is silent: every sample is zero", clean.display());
    assert_eq!(failures.iter().map(|failure| &failure.reason).collect::<Vec<_>>(), [&reason; 2]);
}

#[test]
fn denoised_audio_overwrites_no_file_of_its_pair() {
    let (folder, pairing) = corpus();
    let data = folder.path();
    let run = |pair: Pair| {
        let options = Options { save: Some(data.to_owned()), ..Options::default() };
        evaluate(&[pair], &options, None, smooth, |_| ControlFlow::Continue(()))
    };
    let refused = |pair: Pair, path: &Path, reason: &str| {
        let error = run(pair).unwrap_err();
        assert!(matches!(error, EvaluationError::Output(_)), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(&path.display().to_string()) && message.contains(reason), "{message}");
    };
    let enhanced = put(data, "enhanced/sp01.wav", &sound(0.1));
    let pair = Pair { enhanced: Some(enhanced.clone()), ..pairing.pairs[0].clone() };
    for input in [&pair.clean, pair.noisy.as_ref().unwrap(), &enhanced] {
        let before = fs::read(input).unwrap();
        let name = input.strip_prefix(data).unwrap().display().to_string();
        refused(Pair { name, ..pair.clone() }, input, "same file");
        assert_eq!(fs::read(input).unwrap(), before);
    }
    let other = Pair { name: "other.wav".into(), ..pair };
    assert_eq!(run(other.clone()).unwrap().1, []);
    refused(other, &data.join("other.wav"), "cannot be written: another file has appeared");
}

#[test]
fn pairs_that_would_be_saved_as_one_file_are_refused_at_once() {
    let (folder, pairing) = corpus();
    for (name, other) in [("a.wav", "a.flac"), ("a.wav", "../a.wav"), ("b/a.wav", "/b/./a.wav")] {
        let pairs = [name, other].map(|name| Pair { name: name.into(), ..pairing.pairs[0].clone() });
        let save = folder.path().join("saved");
        let run = |save| {
            let options = Options { save, ..Options::default() };
            evaluate(&pairs, &options, None, smooth, |_| ControlFlow::Continue(()))
        };
        let error = run(Some(save.clone())).unwrap_err();
        let EvaluationError::SameOutput { first, second, path } = error else { panic!("{error}") };
        assert_eq!((first.as_str(), second.as_str()), (name, other));
        assert!(path.starts_with(&save) && !path.exists());
        assert_eq!(run(None).unwrap().0.len(), 2);
    }
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
    let sample = score(&clean, &cut(1), 0.0).unwrap_err().to_string();
    assert!(sample.starts_with("1 sample, but its clean file has 8000: "), "{sample}");
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
    let above = score(&sound(0.0), &sound(0.1), 4_001.0);
    assert_eq!(
        above,
        Err(ScoreError::HighPass { hertz: 4_001.0, rate: 8_000 }),
        "not that the clean file is silent"
    );
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
    // Truncations in the line of the second result, and in the header.
    let cuts = (ends[1]..ends[2]).step_by(7).chain([0, 1, 12, ends[0] - 1, ends[0], ends[4] - 1]);
    for cut in cuts {
        fs::write(&path, &whole[..cut]).unwrap();
        let kept = ends.iter().filter(|&&end| end <= cut).count().saturating_sub(1);
        let (results, calls) = run();
        assert_eq!(calls, 4 - kept, "cut at byte {cut}");
        assert_eq!(without_times(results), without_times(complete.clone()), "cut at byte {cut}");
    }
}

/// Runs with the journal `run.jsonl`: results, failures, and how many recordings were denoised.
fn journalled(folder: &Path, pairs: &[Pair], options: &Options) -> (Vec<FileResult>, Vec<Failure>, usize) {
    let journal = Journal::open(&folder.join("run.jsonl"), &provenance()).unwrap();
    let calls = AtomicUsize::new(0);
    let denoise = |signal: &Signal, observer: &mut Observer| {
        calls.fetch_add(1, Ordering::Relaxed);
        smooth(signal, observer)
    };
    let (results, failures) =
        evaluate(pairs, options, Some(&journal), denoise, |_| ControlFlow::Continue(())).unwrap();
    (results, failures, calls.into_inner())
}

/// A manifest may get a column of conditions between two runs.
#[test]
fn results_of_a_journal_have_the_conditions_of_the_run() {
    let (folder, mut pairing) = corpus();
    pairing.pairs.iter_mut().for_each(|pair| pair.condition = None);
    journalled(folder.path(), &pairing.pairs, &Options::default());
    for (pair, condition) in pairing.pairs.iter_mut().zip(["a", "b", "a", "b"]) {
        pair.condition = Some(condition.into());
    }
    let (results, _, calls) = journalled(folder.path(), &pairing.pairs, &Options::default());
    assert_eq!(calls, 0);
    let conditions: Vec<_> = results.iter().map(|result| result.condition.as_deref().unwrap()).collect();
    assert_eq!(conditions, ["a", "b", "a", "b"]);
}

#[test]
fn audio_that_a_resumed_run_lacks_is_saved() {
    let (folder, pairing) = corpus();
    let (first, ..) = journalled(folder.path(), &pairing.pairs[..2], &Options::default());
    let options = Options { save: Some(folder.path().join("saved")), replace: true, ..Options::default() };
    let (results, _, calls) = journalled(folder.path(), &pairing.pairs, &options);
    assert_eq!(calls, 4);
    assert_eq!(without_times(results[..2].to_vec()), without_times(first));
    let saved = |pair: &Pair| options.saved(pair).unwrap();
    assert!(pairing.pairs.iter().all(|pair| saved(pair).exists()), "in the journal or not");
    fs::remove_file(saved(&pairing.pairs[1])).unwrap();
    let (again, _, calls) = journalled(folder.path(), &pairing.pairs, &options);
    assert_eq!((calls, saved(&pairing.pairs[1]).exists()), (1, true));
    assert_eq!(without_times(again), without_times(results));
    let journal = || fs::read_to_string(folder.path().join("run.jsonl")).unwrap().lines().count();
    assert_eq!(journal(), 8, "a header, a line for each file, and one more where its audio was saved later");
    let (_, _, calls) = journalled(folder.path(), &pairing.pairs, &options);
    assert_eq!((calls, journal()), (0, 8));
}

/// Runs of several settings may save in one folder.
#[test]
fn audio_of_another_run_is_not_taken_for_that_of_a_resumed_one() {
    let (folder, pairing) = corpus();
    let options = Options { save: Some(folder.path().join("saved")), replace: true, ..Options::default() };
    let own = options.saved(&pairing.pairs[0]).unwrap();
    journalled(folder.path(), &pairing.pairs, &Options::default());
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    for calls in [4, 1] {
        audio::write(&own, &sound(0.7)).unwrap();
        let other = fs::read(&own).unwrap();
        let (.., found) = journalled(folder.path(), &pairing.pairs, &options);
        assert_eq!((found, fs::read(&own).unwrap() == other), (calls, false));
    }
}

#[test]
fn a_finished_file_that_can_no_longer_be_read_is_a_failure_alone() {
    let (folder, pairing) = corpus();
    journalled(folder.path(), &pairing.pairs[1..], &Options::default());
    fs::remove_file(pairing.pairs[2].noisy.as_ref().unwrap()).unwrap();
    let (results, failures, calls) = journalled(folder.path(), &pairing.pairs, &Options::default());
    assert_eq!((results.len(), failures.len(), calls), (3, 1, 1));
    assert_eq!(failures[0].name, pairing.pairs[2].name);
    assert!(failures[0].reason.contains("sp01_hum_sn0.wav: "), "{}", failures[0].reason);
}

/// A manifest may name any kind of file.
#[test]
#[cfg(unix)]
fn a_pipe_among_the_files_is_not_waited_for() {
    let (folder, mut pairing) = corpus();
    let pipe = folder.path().join("pipe.wav");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pairing.pairs[1].noisy = Some(pipe);
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = folder.path().to_owned();
    std::thread::spawn(move || sender.send(journalled(&path, &pairing.pairs, &Options::default())));
    let (results, failures, _) = receiver.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert_eq!((results.len(), failures.len()), (3, 1));
    assert!(failures[0].reason.ends_with("pipe.wav: not a regular file"), "{}", failures[0].reason);
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

/// The score belongs to the files that were read, even if they are replaced before it is recorded.
#[test]
fn audio_that_is_replaced_while_it_is_scored_is_refused_later() {
    let (folder, mut pairing) = corpus();
    pairing.pairs.truncate(1);
    let (pair, data) = (&pairing.pairs[0], folder.path());
    let path = data.join("run.jsonl");
    let replace = |signal: &Signal, observer: &mut Observer| {
        put(data, &format!("noisy/{}", pair.name), &sound(0.3));
        smooth(signal, observer)
    };
    let journal = Journal::open(&path, &provenance()).unwrap();
    let go_on = |_: Result<&FileResult, &Failure>| ControlFlow::Continue(());
    evaluate(&pairing.pairs, &Options::default(), Some(&journal), replace, go_on).unwrap();
    drop(journal);
    let journal = Journal::open(&path, &provenance()).unwrap();
    let error = journal.finished(pair).unwrap_err().to_string();
    assert!(error.contains("was scored with other audio"), "{error}");
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

    // Joined lines without an end are not a truncated line.
    fs::remove_file(&path).unwrap();
    drop(Journal::open(&path, &provenance()).unwrap());
    let mut damaged = fs::read(&path).unwrap();
    let header = damaged.len();
    damaged.extend_from_slice(b"{\"content\":\"\"}{\"content\":\"\"}");
    refused(&damaged, "line 2: not a line of a journal: it has no end");
    damaged.remove(header - 1);
    refused(&damaged, "line 1: not a line of a journal: it has no end");
    // The beginning of a line is a truncated line.
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
