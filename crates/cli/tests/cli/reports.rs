//! Statistics, levels, figures, manual and log.

use crate::shared::*;
use std::fs;
use std::path::Path;

/// Record of a run on a quarter of a second of the demo clip, and its standard error.
fn record_of(options: &[&str]) -> (serde_json::Value, String) {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let (demo_spec, samples) = read(&demo("demo-noisy.wav"));
    write(&input, demo_spec, samples[16_000..20_000].iter().copied());
    let assert = denoise([&input, &output]).args(options).args(["--stats", "-"]).assert().success();
    let output = assert.get_output();
    (serde_json::from_slice(&output.stdout).unwrap(), String::from_utf8(output.stderr.clone()).unwrap())
}

#[test]
fn the_record_has_the_counts_of_the_sampler() {
    let (record, stderr) = record_of(&[]);
    assert_eq!(record["settings"]["sampling"]["sampler"], "hamcmc");
    let sampler = &record["files"][0]["sampler"];
    assert!(sampler["step_size"].as_f64().is_some_and(|step| step > 0.0), "{sampler}");
    // Three chains have two pairs.
    assert!(sampler["usable_pairs"].as_f64().is_some_and(|pairs| (0.5..=2.0).contains(&pairs)), "{sampler}");
    assert!(sampler["mirrored_fraction"].is_null() && sampler["impulse_acceptance"].is_null(), "{sampler}");
    assert!(!stderr.contains("trained with alpha"), "{stderr}");

    let (record, stderr) = record_of(&["--method", "published", "--seed", "3"]);
    let settings = &record["settings"];
    let sampling = &settings["sampling"];
    assert_eq!((&settings["seed"], &sampling["sampler"]), (&3.into(), &"hamcmc".into()));
    assert_eq!((&sampling["iterations"], &sampling["impulses"]), (&2500.into(), &"sampled".into()));
    assert_eq!(
        (&settings["model"]["alpha_speech"], &sampling["positivity"]),
        (&1.2.into(), &"mirrored".into())
    );
    assert_eq!(record["options"], serde_json::json!({"method": "published", "seed": 3}));
    let sampler = &record["files"][0]["sampler"];
    let within = |key: &str, low: f64, high: f64| {
        assert!(sampler[key].as_f64().is_some_and(|value| (low..high).contains(&value)), "{key}: {sampler}");
    };
    within("step_size", 7.99e-4, 8.01e-4);
    // Of four pairs. The ranges are measured values with a margin for other processors and samplers.
    within("usable_pairs", 1.5, 2.6);
    within("mirrored_fraction", 0.004, 0.016);
    within("impulse_acceptance", 0.75, 0.85);
    assert!(stderr.contains("trained with alpha 0.8") && stderr.contains("expects 1.2"), "{stderr}");
}

#[test]
fn levels_are_a_table_of_bands_and_slots() {
    let folder = Folder::new();
    let (input, output, levels) = (folder.join("in.wav"), folder.join("out.wav"), folder.join("levels.csv"));
    write(&input, spec(16_000, 2), noisy(1.0).into_iter().flat_map(|x| [x, 0.5 * x]));
    let file = levels.to_str().unwrap();
    denoise([&input, &output]).args(FAST).args(["--levels", file]).assert().success();
    let table = fs::read_to_string(&levels).unwrap();
    let mut rows = table.lines();
    let header = "channel,start_seconds,low_hz,high_hz,level_dbfs,lower_dbfs,upper_dbfs";
    assert_eq!(rows.next(), Some(header));
    let rows: Vec<Vec<f64>> =
        rows.map(|row| row.split(',').map(|value| value.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), 10 * 18);
    for (index, row) in rows.iter().enumerate() {
        let &[channel, start, low, high, level, lower, upper] = row.as_slice() else { panic!("{row:?}") };
        assert_eq!((channel, start), (1.0, (index / 18) as f64 / 10.0));
        assert!((high / low - 2.0_f64.cbrt()).abs() < 0.01 && lower < level && level < upper, "{row:?}");
    }
    // The levels add up to the power of the output, within 3 dB.
    let sum: f64 = rows.iter().map(|row| 10.0_f64.powf(row[4] / 10.0)).sum::<f64>() / 10.0;
    let (_, samples) = read(&output);
    let square = samples.iter().map(|x| f64::from(x * x)).sum::<f64>() / samples.len() as f64;
    assert!((10.0 * (sum / square).log10()).abs() < 3.0, "{sum} {square}");
    // --levels does not change the output, covers separate channels and replaces no input.
    let voice = fs::read(&output).unwrap();
    denoise([&input, &output]).args(FAST).assert().success();
    assert!(fs::read(&output).unwrap() == voice);
    let separate = ["--channels", "separate", "--levels", file];
    denoise([&input, &output]).args(FAST).args(separate).assert().success();
    assert_eq!(fs::read_to_string(&levels).unwrap().lines().count(), 1 + 2 * 180);
    fails(&[&input, &output], &["--force", "--levels", input.to_str().unwrap()], OUTPUT, &["in.wav"]);
    write(&input, spec(8_000, 1), [0.0; 1_000]);
    denoise([&input, &output]).args(FAST).args(["--levels", file]).assert().success();
    assert!(fs::read_to_string(&levels).unwrap().lines().skip(1).all(|row| row.ends_with(",,,")));
}

#[test]
fn levels_of_several_blocks_are_one_table_and_a_run_that_fails_leaves_none() {
    let folder = Folder::new();
    let (input, output, levels) = (folder.join("in.wav"), folder.join("out.wav"), folder.join("levels.csv"));
    write(&input, spec(8_000, 1), voice(8_000, 20.0, 130.0));
    let file = levels.to_str().unwrap();
    denoise([&input, &output]).args(FAST).args(["--levels", file]).assert().success();
    let table = fs::read_to_string(&levels).unwrap();
    let starts: Vec<f64> =
        table.lines().skip(1).map(|row| row.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!(starts.len().is_multiple_of(200) && starts.is_sorted(), "{}", starts.len());
    let bands = starts.len() / 200;
    assert!(starts.iter().enumerate().all(|(row, &start)| start == (row / bands) as f64 / 10.0));
    let assert = denoise([&input, &output]).args(FAST).args(["--levels", "-"]).assert().success();
    assert!(assert.get_output().stdout == table.as_bytes());
    let bytes = fs::read(&input).unwrap();
    fs::write(&input, &bytes[..bytes.len() - 1_000]).unwrap();
    [&output, &levels].into_iter().for_each(|path| fs::remove_file(path).unwrap());
    fails(&[&input, &output], &[&FAST[..], &["--levels", file]].concat(), INPUT, &["in.wav"]);
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
fn statistics_and_figures_hold_the_results() {
    let folder = Folder::new();
    let [input, output, stats, svg, png] =
        ["in.wav", "out.wav", "stats.json", "figure.svg", "figure.png"].map(|name| folder.join(name));
    write(&input, spec(16_000, 2), noisy(1.0).into_iter().flat_map(|x| [x, 3.0 * x]));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    denoise([&input, &output])
        .args(["-q", "--em-iterations", "6", "--iterations", "20", "--seed", "5"])
        .args(["--stats", &path(&stats), "--plot", &path(&svg)])
        .assert()
        .success();
    let record: serde_json::Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(record["settings"]["seed"], 5);
    assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(record["dictionary_sha256"].as_str().unwrap().len(), 64);
    let file = &record["files"][0];
    for (key, value) in [("sample_rate", 16_000), ("channels", 2), ("samples", 16_000), ("clicks", 0)] {
        assert_eq!(file[key], value, "{key}");
    }
    for key in [
        "snr_before_db",
        "snr_after_db",
        "expected_sdr_db",
        "noise_before_dbfs",
        "noise_after_dbfs",
        "real_time_factor",
        "clipped_samples",
        "clipped_input_samples",
        "damaged_packets",
    ] {
        assert!(file[key].is_number(), "{key}");
    }
    assert_eq!(file["output_format"], "16-bit integer WAV");
    assert_eq!(file["reverberation_seconds"].as_array().map(Vec::len), Some(6));
    let precision = &file["monte_carlo"];
    assert_eq!(precision["draws"], 10);
    let error = precision["gain_standard_error"].as_f64().unwrap();
    assert!(error > 1e-4 && error < 0.1, "{error}");
    assert!(precision["effective_draws"].as_f64().is_some_and(|draws| (1.0..20.0).contains(&draws)));
    let figure = fs::read_to_string(&svg).unwrap();
    for title in ["Before", "After", "Removed", "90 % interval", "in.wav", "0:01.0, 16 kHz, stereo"] {
        assert!(figure.contains(title), "{title}");
    }
    assert!(!figure.contains("Posterior standard deviation"), "ten draws do not say much of it");
    denoise([&input, &output])
        .args(["--force", "--em-iterations", "6", "--iterations", "40", "--plot", &path(&svg)])
        .args(["--plot-scale", "mel"])
        .assert()
        .success();
    let figure = fs::read_to_string(&svg).unwrap();
    assert!(figure.contains("Posterior standard deviation"));
    let has_snr =
        |figure: &str| figure.lines().any(|line| line.starts_with("<polyline") && line.contains("#C2570C"));
    assert!(has_snr(&figure));
    // Without denoising, the figure has no SNR curve.
    let unchanged = ["--force", "--quality", "fast", "--mix", "0", "--plot", &path(&svg)];
    denoise([&input, &output]).args(unchanged).assert().success();
    assert!(!has_snr(&fs::read_to_string(&svg).unwrap()));
    // Without sampling, there are no Monte Carlo statistics.
    let assert = denoise([&input, &output])
        .args(["--force", "--quality", "fast", "--stats", "-", "--plot", &path(&png)])
        .assert()
        .success();
    let record: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert!(record["files"][0]["monte_carlo"].is_null());
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    fails(&[&input, &output], &["--plot", "figure.gif"], USAGE, &["figure.gif", "SVG or PNG"]);
    let nowhere = path(&folder.join("missing").join("stats.json"));
    fails(&[&input, &output], &["--force", "--stats", &nowhere], OUTPUT, &["stats.json", "missing"]);
}

#[test]
fn manual_and_completions_have_the_options() {
    let printed = |arguments: &[&str]| {
        let assert = denoise(arguments).assert().success().stderr("");
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("noise-from") && script.contains("protocol"), "{shell}");
        // Completions for either name of the program.
        let other = printed(&["completions", shell, "alphamf"]);
        let count = |script: &str| script.matches("alphamf").count();
        assert!(count(&other) > count(&script), "{shell}");
        assert_eq!(other.replace("alphamf", "denoise"), script.replace("alphamf", "denoise"), "{shell}");
    }
    denoise(["completions", "csh"]).assert().code(USAGE);
    let page = printed(&["man"]);
    assert!(page.contains(".TH denoise 1") && page.contains("noise\\-from") && page.contains("interrupted"));
    // The page has aliases of options, and the help of an option on the line after its name.
    assert!(
        page.contains("[alias: \\-\\-for]") && page.contains("\\-\\-version\\fR\nPrint version"),
        "{page}"
    );
    // A sentence after a table is not part of its last row.
    assert!(page.contains("  130  interrupted\n\nWith several inputs"), "{page}");
    // Every page that the manual refers to exists, and is part of the packages.
    let script = fs::read_to_string(demo("../packaging/build.sh")).unwrap();
    let (_, packaged) = script.split_once("for command in ").unwrap();
    let packaged: Vec<&str> = packaged.split(';').next().unwrap().split(' ').collect();
    let listed = page.split(".SH SUBCOMMANDS").nth(1).unwrap().lines();
    let listed: Vec<&str> =
        listed.filter_map(|line| line.strip_prefix("denoise\\-")?.strip_suffix("(1)")).collect();
    assert!(
        listed.len() == 7 && listed.iter().all(|name| packaged.contains(name)),
        "{listed:?}, {packaged:?}"
    );
    for name in listed {
        assert!(printed(&["man", name]).contains(&format!(".TH denoise-{name} 1")), "{name}");
    }
    assert!(printed(&["man", "train"]).contains("rank"));
    let usage = "[OPTIONS] \\-\\-output <FILE> <TAKE> <TAKE>...";
    let join = printed(&["man", "join"]);
    let version = format!("\"denoise {}\"", env!("CARGO_PKG_VERSION"));
    assert!(join.contains(usage) && join.contains(&version), "{join}");
    // General options may stand before a command.
    let train = printed(&["train", "--help"]);
    for general in [&["-q"][..], &["--threads", "2", "--log=info"], &["--threads=2", "--quiet"]] {
        assert_eq!(printed(&[general, &["train", "--help"]].concat()), train);
    }
    denoise(["man", "nothing"]).assert().code(USAGE);
    let help = printed(&["--help"]);
    assert!(help.contains("Exit codes") && help.contains("  130  interrupted\n"));
}

#[test]
fn a_recording_without_speech_is_named() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let messages = |input: &Path| {
        let mut command = denoise([input, &output]);
        command.args(["--force", "--quality", "fast"]);
        stderr_of(command, 0)
    };
    write(&input, spec(16_000, 1), hiss(48_000).map(|x| 0.1 * x));
    assert!(
        messages(&input).contains("no speech found (if there is a voice, try --no-neural)"),
        "{}",
        messages(&input)
    );
    assert!(!messages(&demo("demo-noisy.wav")).contains("no speech found"));
}

#[test]
fn the_log_has_levels() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(16_000, 1), noisy(0.3));
    let log = |level: &str| {
        let mut command = denoise([&input, &output]);
        command.args(["--force", "--quality", "fast", "--log", level]);
        stderr_of(command, 0)
    };
    assert!(log("info").contains("dictionary"));
    for level in ["error", "warn"] {
        assert_eq!(log(level).lines().count(), 1, "the summary alone");
    }
    denoise([&input, &output]).args(["--log", "loud"]).assert().code(USAGE);
    denoise([&input, &output]).args(["--log", "info", "-q"]).assert().code(USAGE);
}

/// A tier of a TextGrid: its name, and its intervals (start, end, label).
type Tier = (String, Vec<(f64, f64, String)>);

/// The tiers of a TextGrid in long format.
fn tiers(text: &str) -> Vec<Tier> {
    let mut tiers: Vec<Tier> = Vec::new();
    let mut times = Vec::new();
    for line in text.lines().map(str::trim) {
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let quoted = || value.trim_matches('"').to_owned();
        match key {
            "name" => {
                tiers.push((quoted(), Vec::new()));
                times.clear();
            }
            "xmin" | "xmax" => times.push(value.parse::<f64>().unwrap()),
            "text" => {
                let end = times.pop().unwrap();
                tiers.last_mut().unwrap().1.push((times.pop().unwrap(), end, quoted()));
            }
            _ => {}
        }
    }
    tiers
}

#[test]
fn the_speech_track_is_the_same_in_every_format() {
    let folder = Folder::new();
    let (input, output) = (folder.join("a talk.wav"), folder.join("out.wav"));
    let samples = noisy(4.0).into_iter().zip(0..).map(|(x, n)| if n < 24_000 { 0.02 * x } else { x });
    write(&input, spec(16_000, 1), samples);
    let track = |name: &str| {
        let path = folder.join(name);
        let file = path.to_str().unwrap();
        denoise([&input, &output]).args(FAST).args(["--speech", file]).assert().success();
        fs::read_to_string(path).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&track("a.json")).unwrap();
    assert_eq!((&json["file"], &json["duration_seconds"]), (&"a talk.wav".into(), &4.0.into()));
    assert_eq!(json["slot_seconds"], 0.01);
    let channel = &json["channels"][0];
    let probability: Vec<f64> =
        channel["probability"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect();
    let segments: Vec<[f64; 4]> = channel["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            ["start_seconds", "end_seconds", "level_dbfs", "snr_db"].map(|key| found[key].as_f64().unwrap())
        })
        .collect();
    assert_eq!(probability.len(), 400);
    assert!(probability.iter().all(|p| (0.0..=1.0).contains(p)) && probability.iter().any(|&p| p > 0.5));
    assert!(!segments.is_empty());
    for [start, end, level, snr] in &segments {
        assert!(start < end && *end <= 4.0 && (-60.0..0.0).contains(level) && (-20.0..=100.0).contains(snr));
    }

    let csv = track("a.CSV");
    let mut rows = csv.lines();
    assert_eq!(rows.next(), Some("channel,start_seconds,probability,segment,level_dbfs,snr_db"));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 400);
    for (slot, row) in rows.iter().enumerate() {
        let middle = 0.01 * (slot as f64 + 0.5);
        assert_eq!((row[0], row[1]), ("1", format!("{:.2}", 0.01 * slot as f64).as_str()));
        assert!((row[2].parse::<f64>().unwrap() - probability[slot]).abs() < 1e-9);
        match segments.iter().position(|[start, end, ..]| (start..end).contains(&&middle)) {
            Some(index) => {
                let [.., level, snr] = segments[index];
                assert_eq!(row[3], (index + 1).to_string());
                assert!((row[4].parse::<f64>().unwrap() - level).abs() < 1e-9, "{row:?}");
                assert!((row[5].parse::<f64>().unwrap() - snr).abs() < 1e-9, "{row:?}");
            }
            None => assert_eq!(row[3..], ["", "", ""]),
        }
    }

    let rttm = track("a.rttm");
    assert_eq!(rttm.lines().count(), segments.len());
    for (line, [start, end, ..]) in rttm.lines().zip(&segments) {
        let fields: Vec<&str> = line.split(' ').collect();
        assert_eq!(fields[..3], ["SPEAKER", "a_talk", "1"]);
        assert_eq!(fields[5..], ["<NA>", "<NA>", "speech", "<NA>", "<NA>"]);
        let [from, length] = [3, 4].map(|field| fields[field].parse::<f64>().unwrap());
        assert!((from - start).abs() < 1e-9 && (from + length - end).abs() < 1e-9, "{line}");
    }

    let grid = track("a.TextGrid");
    assert!(grid.starts_with("File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n"));
    let tiers = tiers(&grid);
    assert_eq!(tiers.iter().map(|tier| &tier.0).collect::<Vec<_>>(), ["speech", "level_dbfs", "snr_db"]);
    for (name, intervals) in &tiers {
        // Intervals cover the recording without gaps.
        assert!(intervals[0].0 == 0.0 && intervals.last().unwrap().1 == 4.0);
        assert!(intervals.windows(2).all(|pair| pair[0].1 == pair[1].0));
        let labelled: Vec<_> = intervals.iter().filter(|interval| !interval.2.is_empty()).collect();
        assert_eq!(labelled.len(), segments.len());
        for ((start, end, label), segment) in labelled.into_iter().zip(&segments) {
            assert!((start - segment[0]).abs() < 1e-9 && (end - segment[1]).abs() < 1e-9);
            match name.as_str() {
                "speech" => assert_eq!(label, "speech"),
                "level_dbfs" => assert!((label.parse::<f64>().unwrap() - segment[2]).abs() < 0.06),
                _ => assert!((label.parse::<f64>().unwrap() - segment[3]).abs() < 0.06),
            }
        }
    }
}

#[test]
fn the_speech_track_suits_every_recording() {
    let folder = Folder::new();
    let (input, output, track) = (folder.join("in.wav"), folder.join("out.wav"), folder.join("track.json"));
    let file = track.to_str().unwrap();
    let found = |options: &[&str]| -> serde_json::Value {
        denoise([&input, &output]).args(FAST).args(["--speech", file]).args(options).assert().success();
        serde_json::from_str(&fs::read_to_string(&track).unwrap()).unwrap()
    };
    let slots = |json: &serde_json::Value, channel: usize| {
        json["channels"][channel]["probability"].as_array().map_or(0, Vec::len)
    };
    // Silence, a tenth of a second, narrow band, full band in stereo.
    write(&input, spec(16_000, 1), [0.0; 16_000]);
    let json = found(&[]);
    assert_eq!(slots(&json, 0), 100);
    assert!(json["channels"][0]["segments"].as_array().unwrap().is_empty());
    assert!(json["channels"][0]["probability"].as_array().unwrap().iter().all(|p| *p == 0.0));
    write(&input, spec(16_000, 1), noisy(0.1));
    assert_eq!(slots(&found(&[]), 0), 10);
    // Every other sample of the demo voice.
    let (_, clean) = read(&demo("demo-clean.wav"));
    write(&input, spec(8_000, 1), clean.into_iter().step_by(2).take(12_000));
    let json = found(&[]);
    assert!(slots(&json, 0) == 150 && !json["channels"][0]["segments"].as_array().unwrap().is_empty());
    write(&input, spec(48_000, 2), voice(48_000, 1.0, 140.0).into_iter().flat_map(|x| [x, 0.0]));
    let json = found(&[]);
    assert_eq!((slots(&json, 0), json["channels"].as_array().unwrap().len()), (100, 1));
    let json = found(&["--channels", "separate"]);
    assert_eq!((slots(&json, 0), slots(&json, 1)), (100, 100));
    assert!(json["channels"][1]["segments"].as_array().unwrap().is_empty(), "a silent channel");
    // Standard output, and a format other than that of the file extension.
    let assert = denoise([&input, &output]).args(FAST).args(["--speech", "-"]).assert().success();
    assert!(assert.get_output().stdout.starts_with(b"{\"file\":\"in.wav\""));
    let format = ["--speech", file, "--speech-format", "textgrid", "--channels", "separate"];
    denoise([&input, &output]).args(FAST).args(format).assert().success();
    let tiers = tiers(&fs::read_to_string(&track).unwrap());
    assert_eq!((tiers.len(), tiers[3].0.as_str()), (6, "speech 2"));
    fails(&[&input, &output], &["--force", "--speech", "a.txt"], USAGE, &["a.txt", ".TextGrid"]);
    fails(&[&input, &output], &["--force", "--speech", input.to_str().unwrap()], USAGE, &["in.wav"]);
    denoise([&input, &output]).args(["--live", "--speech", file]).assert().code(USAGE);
}
