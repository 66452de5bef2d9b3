//! Tables agree with the recorded evaluations.

use crate::{links, read, root};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Means of a metric in a recorded evaluation, of the input and of the output.
fn recorded(path: &str, metric: &str) -> [f64; 2] {
    let record: serde_json::Value = serde_json::from_str(&read(path)).unwrap();
    let metrics = record["evaluations"][0]["summary"][0]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|found| found["metric"] == metric).unwrap();
    ["input", "output"].map(|side| found[side]["mean"].as_f64().unwrap())
}

/// Table rows of a document whose first cell links to a record, as in `[name](name.json)`: its path and the cells.
fn rows(document: &str) -> Vec<(String, Vec<String>)> {
    let text = read(document);
    let folder = Path::new(document).parent().unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|'));
    rows.filter_map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let link = links(&cells[0]).find(|link| link.ends_with(".json")).map(str::to_owned)?;
        Some((folder.join(link).to_str()?.to_owned(), cells))
    })
    .collect()
}

/// Whether the cell of a table is `value`, rounded to the digits of the cell.
fn agrees(cell: &str, value: f64) -> bool {
    let cell = cell.replace('*', "");
    let cell = cell.trim();
    let digits = cell.split_once('.').map_or(0, |(_, digits)| digits.len());
    cell.parse::<f64>().is_ok_and(|shown| (shown - value).abs() <= 0.5001 * 0.1_f64.powi(digits as i32))
}

#[test]
fn the_table_of_quality_is_that_of_the_records() {
    let rows = rows("eval/results/quality.md");
    assert!(rows.len() >= 7, "{rows:?}");
    for (record, cells) in rows {
        let parsed: serde_json::Value = serde_json::from_str(&read(&record)).unwrap();
        let evaluation = &parsed["evaluations"][0];
        assert_eq!(cells[1], evaluation["summary"][0]["files"].to_string(), "{record}: files");
        let dictionary = evaluation["provenance"]["dictionary_sha256"].as_str().unwrap();
        assert_eq!(cells[2], format!("`{}`", &dictionary[..8]), "{record}: dictionary");
        let pesq = if record.contains("noizeus") { "narrow_band_pesq" } else { "wide_band_pesq" };
        for (cell, metric) in cells[3..].iter().zip(["sdr", "si_sdr", pesq, "estoi"]) {
            let [before, after] = recorded(&record, metric);
            let (shown, input) = cell.split_once(" (").unwrap();
            assert!(agrees(shown, after), "{record}: {metric} is {after}, not {shown}");
            assert!(
                agrees(input.trim_end_matches(')'), before),
                "{record}: {metric} was {before}, not {input}"
            );
        }
    }
}

/// The table `[training]` of a protocol.
fn training(protocol: &str) -> Option<String> {
    let table = protocol.split_once("[training]\n")?.1;
    Some(
        table
            .lines()
            .take_while(|line| !line.starts_with('['))
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned(),
    )
}

#[test]
fn the_records_of_quality_are_of_this_version_and_its_dictionary() {
    let built_in = fs::read(root().join("models/speech-16k.safetensors")).unwrap();
    let built_in: String = Sha256::digest(built_in).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut with_built_in = 0;
    let mut trained = BTreeMap::new();
    for (record, _) in rows("eval/results/quality.md") {
        let parsed: serde_json::Value = serde_json::from_str(&read(&record)).unwrap();
        let provenance = &parsed["evaluations"][0]["provenance"];
        assert_eq!(provenance["version"], env!("CARGO_PKG_VERSION"), "{record}");
        let hash = provenance["dictionary_sha256"].as_str().unwrap();
        let name = Path::new(&record).file_stem().unwrap().to_str().unwrap();
        match training(&read(format!("eval/{name}.toml"))) {
            None => {
                assert_eq!(hash, built_in, "{record}");
                with_built_in += 1;
            }
            // Equal training settings give equal dictionaries.
            Some(training) => {
                assert_ne!(hash, built_in, "{record}");
                let (first, of_first) =
                    trained.entry(training).or_insert_with(|| (record.clone(), hash.to_owned()));
                assert_eq!(hash, of_first, "{record} and {first} have the same training");
            }
        }
    }
    assert_eq!(with_built_in, 3, "records with the built-in dictionary");
    assert_eq!(trained.len(), 1, "dictionaries trained by protocols: {trained:?}");
}

#[test]
fn the_readme_has_the_recorded_scores() {
    let readme = read("README.md");
    for (side, system) in ["noisy", "`denoise`"].into_iter().enumerate() {
        let row = readme.lines().find(|line| line.starts_with(&format!("| {system} |"))).unwrap();
        let cell = row.split('|').nth(2).unwrap().replace(['*', ','], "").replace('/', " ");
        let [sdr, si_sdr, pesq, estoi] = cell.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("expected SDR / SI-SDR, PESQ, ESTOI: {cell}")
        };
        let mut scores = vec![(sdr, "sdr"), (si_sdr, "si_sdr"), (estoi, "estoi")];
        // PESQ of the input is from the Python package, as for the other denoisers: 0.02 above the record.
        if system != "noisy" {
            scores.push((pesq, "narrow_band_pesq"));
        }
        for (shown, metric) in scores {
            let value = recorded("eval/results/noizeus-5db-built-in.json", metric)[side];
            assert!(agrees(shown, value), "{system}: {metric} is {value}, not {shown}");
        }
    }
}

/// A table of a document and the record that it shows.
struct Table<'a> {
    document: &'a str,
    /// The start of the heading above it.
    heading: &'a str,
    record: &'a str,
    /// The metrics of the second to fourth column.
    metrics: [&'a str; 3],
    /// Names of recorded systems, each with its first cell in the table, where the two differ.
    renamed: &'a [(&'a str, &'a str)],
}

const TABLES: [Table<'_>; 6] = [
    Table {
        document: "samplers-in-the-denoiser.md",
        heading: "# Samplers",
        record: "samplers-5db.json",
        metrics: ["sdr", "si_sdr", "estoi"],
        renamed: &[],
    },
    Table {
        document: "ablation/README.md",
        heading: "## NOIZEUS",
        record: "ablation/noizeus-5db.json",
        metrics: ["sdr", "si_sdr", "estoi"],
        renamed: &[],
    },
    Table {
        document: "ablation/README.md",
        heading: "## VoiceBank",
        record: "ablation/voicebank.json",
        metrics: ["sdr", "si_sdr", "estoi"],
        renamed: &[],
    },
    Table {
        document: "figure-3/README.md",
        heading: "# Figure 3",
        record: "figure-3/figure-3.json",
        metrics: ["sdr", "si_sdr", "stoi"],
        renamed: &[],
    },
    Table {
        document: "figure-3/README.md",
        heading: "## The reference",
        record: "figure-3/reference.json",
        metrics: ["sdr", "si_sdr", "stoi"],
        renamed: &[
            ("HAMCMC", "HAMCMC, last 200 of 2500"),
            ("SGRLD, log map", "SGRLD, step 0.1, last 1000 of 4000"),
            ("HMC, log map", "HMC, step adapted, last 1000 of 2500"),
        ],
    },
    Table {
        document: "figure-3/README.md",
        heading: "## Exact published settings",
        record: "figure-3/letter.json",
        metrics: ["sdr", "si_sdr", "stoi"],
        renamed: &[
            ("HAMCMC", "HAMCMC, first step 1e-3, gamma 1, lambda 100"),
            ("SGLD", "SGLD, first step 1e-9"),
            ("PSGLD", "PSGLD, first step 1e-7"),
            (
                "HAMCMC, otherwise as published",
                "HAMCMC, exact but for start, units, limit, gains and minibatch (of bins and frames) as in `published`, \
                 lambda 1",
            ),
        ],
    },
];

/// Name of an evaluated system, and the mean of a metric over its outputs.
fn system<'a>(evaluation: &'a serde_json::Value, metric: &str) -> (&'a str, f64) {
    let metrics = evaluation["summary"][0]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|found| found["metric"] == metric).unwrap();
    (evaluation["provenance"]["system"].as_str().unwrap(), found["output"]["mean"].as_f64().unwrap())
}

#[test]
fn tables_of_several_systems_are_those_of_their_records() {
    for Table { document, heading, record, metrics, renamed } in TABLES {
        let text = read(format!("eval/results/{document}"));
        let section = text.split(heading).nth(1).unwrap_or_else(|| panic!("{heading}"));
        let record: serde_json::Value =
            serde_json::from_str(&read(format!("eval/results/{record}"))).unwrap();
        for evaluation in record["evaluations"].as_array().unwrap() {
            let version = evaluation["provenance"]["version"].as_str().unwrap();
            let is_stated = text.contains(&format!("version {version}"));
            assert!(is_stated || version == env!("CARGO_PKG_VERSION"), "{document} does not state {version}");
            for (column, metric) in metrics.iter().enumerate() {
                let (name, mean) = system(evaluation, metric);
                let row = renamed.iter().find(|(system, _)| *system == name).map_or(name, |(_, row)| row);
                let cells = section.lines().find_map(|line| line.strip_prefix(&format!("| {row} |")));
                let cells = cells.unwrap_or_else(|| panic!("{document}: no row {row}"));
                let cell = cells.split('|').nth(column).unwrap().split(" ±").next().unwrap();
                assert!(agrees(cell, mean), "{document}: {row}: {metric} is {mean}, not {cell}");
            }
        }
    }
}
