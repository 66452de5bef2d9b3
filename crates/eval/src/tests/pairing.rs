//! Which recordings go with which clean files.

use super::*;

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

    // An equal name has precedence over the part before the first '_', and gives no condition.
    put(folder.path(), "clean/sp01_hum_sn0.wav", &sound(0.0));
    put(folder.path(), "noisy/sp03_hum.wav", &sound(0.1));
    for side in ["clean", "noisy"] {
        put(folder.path(), &format!("{side}/wind__03.wav"), &sound(0.1));
    }
    let pairing =
        pair_folders(&folder.path().join("clean"), Some(&folder.path().join("noisy")), None).unwrap();
    let pair = &pairing.pairs[2];
    assert_eq!((pair.condition.clone(), &pair.clean), (None, &folder.path().join("clean/sp01_hum_sn0.wav")));
    // The exception is the part before "__" in an equal name.
    let kind = pairing.pairs.iter().find(|pair| pair.name == "wind__03.wav").unwrap();
    assert_eq!(kind.condition.as_deref(), Some("wind"));
    assert_eq!(pairing.unpaired.len(), 1);
    assert_eq!(pairing.unpaired[0].name, "sp03_hum.wav");
}

#[test]
fn recordings_with_several_clean_files_are_reported_so() {
    let (folder, _) = corpus();
    let data = folder.path();
    put(data, "clean/again/sp02.wav", &sound(0.0));
    put(data, "noisy/again/sp02.wav", &sound(0.1));
    put(data, "noisy/sp03.wav", &sound(0.1));
    let pairing = pair_folders(&data.join("clean"), Some(&data.join("noisy")), None).unwrap();
    let found: Vec<_> = pairing.pairs.iter().map(|pair| pair.name.as_str()).collect();
    assert_eq!(found, ["again/sp02.wav", "hiss_sn5/sp01_hiss_sn5.wav", "hum_sn0/sp01_hum_sn0.wav"]);
    let reasons: Vec<_> = pairing.unpaired.iter().map(|failure| failure.reason.as_str()).collect();
    let several = |reason: &&str| reason.starts_with("several clean files of that name");
    assert_eq!(reasons.iter().copied().filter(|reason| several(reason)).count(), 2, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.starts_with("no clean file of that name")), "{reasons:?}");
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
    assert!(message("clean", "empty").contains("found 1 other file, such as"));
    assert!(message("clean", "absent").contains("absent"));
    put(data, "other/p232_001.wav", &sound(0.0));
    let nothing = message("other", "noisy");
    assert!(nothing.contains("of 4 files in ") && nothing.contains("p232_001.wav"), "{nothing}");
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
