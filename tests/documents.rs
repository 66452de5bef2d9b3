//! Documents agree with the repository: links, names, recorded figures and words.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold no document or source of this repository.
const SKIPPED: [&str; 5] = ["target", "node_modules", "vendor", "shared", "venv"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below the root with this extension, relative to it.
fn files(extension: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type().unwrap().is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&name.as_ref()) {
                    walk(&path, extension, found);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), extension, &mut found);
    found.sort();
    found
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A document without its fenced and indented blocks of code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= is_fence;
        if !fenced && !is_fence && !line.starts_with("    ") {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// The spans in backticks of a text.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Targets of the links of a text, inline ones as in `[text](target)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// The anchor that GitHub makes of a heading.
fn anchor(heading: &str) -> String {
    let plain = heading.trim_start_matches('#').trim().to_lowercase();
    // A link in a heading counts by its text.
    let plain = plain.split("](").next().unwrap_or_default();
    let kept = plain.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().replace(' ', "-")
}

#[test]
fn relative_links_lead_somewhere() {
    let mut broken = Vec::new();
    let mut count = 0;
    for document in files("md") {
        let text = read(&document);
        let folder = document.parent().unwrap();
        for link in links(&prose(&text)) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { document.clone() } else { folder.join(path) };
            let mut at = root().join(&target);
            if at.is_dir() && at.join("README.md").is_file() {
                at.push("README.md");
            }
            let is_there = at.exists()
                && (heading.is_empty()
                    || fs::read_to_string(&at).is_ok_and(|text| {
                        text.lines().any(|line| line.starts_with('#') && anchor(line) == heading)
                    }));
            if !is_there {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(count > 100, "only {count} links were found");
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// Where names of this project are defined: a crate's name in Rust, or a room of `src/`, and its folder.
fn rooms() -> Vec<(String, PathBuf)> {
    let mut rooms = vec![("alphamf".to_owned(), PathBuf::from("src"))];
    for name in ["signal", "samplers", "files", "eval", "fourier"] {
        let source = PathBuf::from(format!("crates/{name}/src"));
        rooms.push((format!("alphamf_{name}"), source.clone()));
        rooms.push((name.to_owned(), source));
    }
    rooms.push(("random".to_owned(), PathBuf::from("crates/samplers/src/random.rs")));
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        rooms.push((name, path.strip_prefix(root()).unwrap().to_owned()));
    }
    rooms
}

/// All source in a file or folder.
fn source(at: &Path) -> String {
    let at = root().join(at);
    if at.is_file() {
        return fs::read_to_string(at).unwrap();
    }
    let mut all = String::new();
    for entry in fs::read_dir(&at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            all += &source(path.strip_prefix(root()).unwrap());
        }
    }
    all
}

/// Whether a source defines, re-exports or (as a field, variant or module) holds a name.
fn defines(source: &str, name: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    source.match_indices(name).any(|(at, _)| {
        let (before, after) = (&source[..at], &source[at + name.len()..]);
        if before.ends_with(is_word) || after.starts_with(is_word) {
            return false;
        }
        let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
        if line.starts_with("//") {
            return false;
        }
        let keywords =
            ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "mod ", "static ", "macro_rules! "];
        let is_item = keywords.iter().any(|keyword| before.ends_with(keyword));
        let is_member =
            (line.is_empty() || line.starts_with("pub")) && after.starts_with([':', ',', '(', ' ', '{']);
        let is_exported = line.starts_with("pub use ")
            || before.rsplit(';').next().is_some_and(|statement| {
                let statement = statement.trim_start();
                statement.starts_with("pub use ") && !statement.contains('}')
            });
        is_item || is_member || is_exported
    })
}

/// The names that a path such as `a::{b, c}` stands for.
fn expand(path: &str) -> Vec<String> {
    match path.split_once('{') {
        Some((front, rest)) => {
            let names = rest.trim_end_matches('}').split(',');
            names.map(|name| format!("{front}{}", name.trim())).collect()
        }
        None => vec![path.to_owned()],
    }
}

#[test]
fn names_in_documents_are_those_of_the_source() {
    let rooms = rooms();
    let mut documents: Vec<PathBuf> =
        files("md").into_iter().filter(|path| path.starts_with("docs")).collect();
    documents.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(PathBuf::from));
    let whole = source(Path::new("src")) + &source(Path::new("crates"));
    let (mut missing, mut count) = (BTreeSet::new(), 0);
    for document in documents {
        let text = prose(&read(&document));
        for path in code_spans(&text).filter(|span| span.contains("::")).flat_map(expand) {
            let path = path.trim_end_matches("()");
            let mut names = path.split("::").peekable();
            let first = *names.peek().unwrap();
            if ["std", "core"].contains(&first)
                || !path.chars().all(|c| c.is_alphanumeric() || "_:".contains(c))
            {
                continue;
            }
            count += 1;
            // As far as the path names rooms, the source is that of the room; a type is looked up everywhere.
            let mut within = whole.clone();
            if let Some((_, at)) = rooms.iter().find(|(name, _)| name == first) {
                names.next();
                within = source(at);
                let next = names.peek().filter(|_| first == "alphamf");
                if let Some((_, at)) = next.and_then(|next| rooms.iter().find(|(name, _)| name == next)) {
                    within = source(at);
                    names.next();
                }
            }
            for name in names {
                if !defines(&within, name) {
                    missing.insert(format!("{}: {path}: {name}", document.display()));
                }
            }
        }
    }
    assert!(count >= 20, "only {count} paths were found");
    assert!(missing.is_empty(), "names that are defined nowhere:\n{missing:#?}");
}

#[test]
fn new_names_of_the_changelog_exist() {
    let mut all = source(Path::new("src")) + &source(Path::new("crates")) + &source(Path::new("bindings"));
    for extension in ["py", "h", "ts", "js", "toml"] {
        files(extension).iter().for_each(|path| all += &read(path));
    }
    let changelog = read("CHANGELOG.md");
    // The last column of a table of renames.
    let rows = changelog.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let cells: Vec<_> = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next()).collect();
    let (mut missing, mut count) = (BTreeSet::new(), 0);
    for path in cells.iter().flat_map(|cell| code_spans(cell)).flat_map(expand) {
        // `a::b`, `a.b` and `--a-b` by their last names; files by their path.
        let is_there = if path.contains('/') {
            root().join(&path).exists()
        } else {
            let name = path.trim_end_matches("()").rsplit([':', '.', ' ']).next().unwrap_or_default();
            let name = name.trim_start_matches("--").replace('-', "_");
            count += 1;
            has_words(&all, &name)
        };
        if !is_there {
            missing.insert(path);
        }
    }
    assert!(count > 50, "only {count} names were found");
    assert!(missing.is_empty(), "names of CHANGELOG.md that are nowhere: {missing:#?}");
}

#[test]
fn definitions_are_told_from_mentions() {
    let source = "// fn gone\npub fn here() {}\npub struct Options {\n    pub seed: u64,\n}\nenum A {\n    First,\n}\n\
                  pub use other::{Shown, Thing};\nlet x = inner(used);\n";
    for name in ["here", "Options", "seed", "First", "Shown", "Thing"] {
        assert!(defines(source, name), "{name}");
    }
    for name in ["gone", "her", "used", "inner", "See"] {
        assert!(!defines(source, name), "{name}");
    }
    assert_eq!(expand("a::{B, c}"), ["a::B", "a::c"]);
    assert_eq!(anchor("## How sure: `--levels`, 2"), "how-sure---levels-2");
}

/// The means of a recorded evaluation: of the input and the output, by the metric.
fn recorded(path: &str, metric: &str) -> [f64; 2] {
    let record: serde_json::Value = serde_json::from_str(&read(path)).unwrap();
    let metrics = record["evaluations"][0]["summary"][0]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|found| found["metric"] == metric).unwrap();
    ["input", "output"].map(|side| found[side]["mean"].as_f64().unwrap())
}

/// The rows of the tables of a document whose first cell is or links to a record, as in `[name](name.json)`.
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

/// `value` as a table writes it, which may have fewer digits.
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
        for (cell, metric) in cells[3..].iter().zip(["sdr", "si_sdr", "estoi"]) {
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

#[test]
fn the_readme_has_the_recorded_scores() {
    let readme = read("README.md");
    let row = readme.lines().find(|line| line.starts_with("| `denoise` |")).unwrap();
    let cell = row.split('|').nth(2).unwrap().replace(['*', ','], "").replace('/', " ");
    let [sdr, si_sdr, _pesq, estoi] = cell.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("expected SDR / SI-SDR, PESQ, ESTOI: {cell}")
    };
    for (shown, metric) in [(sdr, "sdr"), (si_sdr, "si_sdr"), (estoi, "estoi")] {
        let [_, after] = recorded("eval/results/noizeus-5db-built-in.json", metric);
        assert!(agrees(shown, after), "{metric} is {after}, not {shown}");
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
    /// First cells that are not the name of the recorded system.
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

/// A scored system of a record.
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

/// Words of the style's list that are not written of software, models and recordings.
const AVOIDED: [&str; 27] = [
    "hears",
    "heard",
    "listens",
    "rings on",
    "of no use",
    "of use",
    "to the letter",
    "made anew",
    "made again",
    "done again",
    "sound for sound",
    "as it comes",
    "moving noise",
    "noise that moves",
    "noises that move",
    "noise moves",
    "what is to come",
    "is told",
    "tells",
    "told apart",
    "told from",
    "misfit",
    "likewise",
    "is learned",
    "the listener",
    "in the midst",
    "goes on above",
];

/// Whether a text holds these words, whole and in this order.
fn has_words(text: &str, words: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(words)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + words.len()..].starts_with(is_word))
}

#[test]
fn documents_keep_to_plain_words() {
    let mut found = Vec::new();
    for document in files("md") {
        // One lists the names of earlier versions, the other the words themselves.
        if ["CHANGELOG.md", "CONTRIBUTING.md"].contains(&document.to_str().unwrap()) {
            continue;
        }
        for (number, line) in read(&document).lines().enumerate() {
            let line = line.to_lowercase();
            for words in AVOIDED.iter().filter(|words| has_words(&line, words)) {
                found.push(format!("{}:{}: {words}", document.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "reword:\n{}", found.join("\n"));
    assert!(has_words("it hears, too", "hears") && !has_words("of user", "of use"));
}

#[test]
fn the_python_page_counts_its_options() {
    let source = read("bindings/python/alphamf/_denoiser.py");
    let class = source.split("class Denoiser:").nth(1).unwrap();
    let signature = class.split("def __init__(").nth(1).unwrap().split(") ->").next().unwrap();
    let count = signature.lines().filter(|line| line.contains(": ") && line.trim().ends_with(',')).count();
    let page = read("bindings/python/README.md");
    assert!(page.contains(&format!("takes {count} of the program's")), "Denoiser has {count} options");
}

/// The value that a text gives after a word, as in `Range: 0 to 1.`, up to the end of the sentence or clause.
fn value_after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.split_once(word)?.1;
    let end = [". ", "; ", ", "].iter().filter_map(|end| rest.find(end)).min();
    Some(end.map_or(rest.trim_end_matches('.'), |end| &rest[..end]))
}

/// Numbers as the guide writes them: with commas, and the greatest seed as a power.
fn as_in_the_guide(value: &str) -> String {
    let number = |word: &str| match word {
        "18446744073709551615" => "2^64 - 1".to_owned(),
        _ if word.len() > 4 && word.chars().all(|digit| digit.is_ascii_digit()) => {
            let (front, back) = word.split_at(word.len() - 3);
            let (front, middle) = front.split_at(front.len().saturating_sub(3));
            [front, middle, back].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
        }
        _ => word.to_owned(),
    };
    value.split(' ').map(number).collect::<Vec<_>>().join(" ")
}

/// The names, and the documentation, of the options of `src/options.rs`.
fn documented_options() -> Vec<(String, String)> {
    let source = read("src/options.rs");
    let body = source.split("pub struct Options {").nth(1).unwrap().split("\n}").next().unwrap();
    let (mut options, mut words) = (Vec::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            words = words + text.trim() + " ";
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|line| line.split_once(':')) {
            options.push((format!("--{}", name.replace('_', "-")), std::mem::take(&mut words)));
        }
    }
    options
}

#[test]
fn the_guide_has_the_ranges_and_defaults_of_options() {
    let guide = read("docs/guide.md");
    let options = documented_options();
    assert!(options.len() >= 15, "{options:?}");
    let mut compared = 0;
    for (name, words) in options {
        let row = guide.lines().find(|line| line.starts_with(&format!("| `{name}")));
        let row = row.unwrap_or_else(|| panic!("docs/guide.md has no row for {name}"));
        if let Some(range) = value_after(&words, "Range: ") {
            let range = as_in_the_guide(range).replace("--iterations", "`--iterations`");
            assert!(row.contains(&range), "{name}: expected the range {range} in {row}");
            compared += 1;
        }
        let default = value_after(&words, "Default: ").filter(|value| !value.contains(' '));
        if let Some(default) = default {
            assert!(
                row.contains(&format!("default: {default}")),
                "{name}: expected the default {default} in {row}"
            );
            compared += 1;
        }
    }
    assert!(compared > 15, "only {compared} values were compared");
    let row = guide.lines().find(|line| line.starts_with("| `--sampler")).unwrap();
    let kinds = read("crates/samplers/src/kind.rs");
    let names = kinds.lines().filter_map(|line| line.split_once("=> \"")?.1.strip_suffix("\","));
    assert!(names.clone().count() >= 12);
    for name in names {
        assert!(code_spans(row).any(|span| span == name), "--sampler {name} is not in {row}");
    }
    assert_eq!(as_in_the_guide("0 to 1000000"), "0 to 1,000,000");
}
