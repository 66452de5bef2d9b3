//! Targets of links exist, and names in documents are defined in the source.

use crate::{code_spans, files, links, prose, read, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The anchor that GitHub generates from a heading.
fn anchor(heading: &str) -> String {
    let plain = heading.trim_start_matches('#').trim().to_lowercase();
    // A link in a heading contributes only its text.
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

/// Names of crates and of modules of `src/`, each with the file or folder of its source.
fn module_sources() -> Vec<(String, PathBuf)> {
    let mut module_sources = vec![("alphamf".to_owned(), PathBuf::from("src"))];
    for name in ["signal", "samplers", "files", "eval", "fourier"] {
        let source = PathBuf::from(format!("crates/{name}/src"));
        module_sources.push((format!("alphamf_{name}"), source.clone()));
        module_sources.push((name.to_owned(), source));
    }
    module_sources.push(("random".to_owned(), PathBuf::from("crates/samplers/src/random.rs")));
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        module_sources.push((name, path.strip_prefix(root()).unwrap().to_owned()));
    }
    module_sources
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

/// Expands a path such as `a::{b, c}` to single paths.
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
    let module_sources = module_sources();
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
            // A leading crate or module limits the search to its source; other names are searched everywhere.
            let mut within = whole.clone();
            if let Some((_, at)) = module_sources.iter().find(|(name, _)| name == first) {
                names.next();
                within = source(at);
                let next = names.peek().filter(|_| first == "alphamf");
                if let Some((_, at)) =
                    next.and_then(|next| module_sources.iter().find(|(name, _)| name == next))
                {
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

/// Whether a text contains `words` as whole words, in their order.
fn has_words(text: &str, words: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(words)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + words.len()..].starts_with(is_word))
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
        // Looks up `a::b`, `a.b` and `--a-b` by their last name, and files by their path.
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
fn definitions_are_distinguished_from_mentions() {
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
