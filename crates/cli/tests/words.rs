//! Help, errors, messages and documents contain no words that the style of CONTRIBUTING.md replaces.

mod shared;

use shared::denoise;
use std::fs;
use std::path::{Path, PathBuf};

/// Words to avoid of programs, models and recordings, each with its replacement.
const AVOIDED: [(&str, &str); 36] = [
    ("hears", "detects, estimates"),
    ("heard", "detected, measured, audible"),
    ("listens", "estimates"),
    ("the listener", "the speech-presence network"),
    ("is told", "is reported"),
    ("are told", "are reported"),
    ("tells", "reports"),
    ("told apart", "distinguished"),
    ("told from", "distinguished from"),
    ("knows", "reads, uses"),
    ("is learned", "is trained, is estimated"),
    ("takes out", "removes"),
    ("taken out", "removed"),
    ("rings on", "late reverberation"),
    ("made anew", "recomputed"),
    ("made again", "recomputed"),
    ("done again", "recomputed"),
    ("of no use", "invalid"),
    ("of use", "valid"),
    ("misfit", "incompatible"),
    ("likewise", "the noun"),
    ("goes on from", "resumes"),
    ("goes on above", "extends"),
    ("hands on", "carries over"),
    ("what is to come", "future samples"),
    ("what came", "the input"),
    ("as it comes", "in real time"),
    ("sound for sound", "causally"),
    ("noise moves", "the noise is non-stationary"),
    ("noise that moves", "non-stationary noise"),
    ("noises that move", "non-stationary noise"),
    ("moving noise", "non-stationary noise"),
    ("in the midst", "early"),
    ("in good order", "cleanly"),
    ("how sure", "uncertainty"),
    ("to the letter", "exactly as published"),
];

/// Avoided words that a text contains, matched as whole words, in the order of the list.
fn avoided(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    let holds = |words: &str| {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        text.match_indices(words)
            .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + words.len()..].starts_with(is_word))
    };
    let found = AVOIDED.iter().filter(|(words, _)| holds(words));
    found.map(|(words, _)| *words).collect()
}

/// Fails if one of the texts, each with its place, contains an avoided word.
fn check(texts: impl IntoIterator<Item = (String, String)>) {
    let mut found = String::new();
    let mut count = 0;
    for (place, text) in texts {
        count += 1;
        for words in avoided(&text) {
            let (_, instead) = AVOIDED.iter().find(|(avoided, _)| *avoided == words).unwrap();
            found += &format!("{place}: \"{words}\" (write: {instead}): {}\n", text.trim());
        }
    }
    assert!(count > 0 && found.is_empty(), "of {count} texts, reword:\n{found}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Collects files below `folder` with names that end in `ending`, without hidden, test, build and third-party folders.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !name.starts_with('.')
                && !["target", "tests", "node_modules", "vendor", "shared", "venv"].contains(&name.as_str())
            {
                files(&path, ending, found);
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

/// Paths and Rust sources of the program, libraries, bindings and plugins, without their tests.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["src", "crates", "bindings", "plugins", "cluster"] {
        files(&root().join(folder), ".rs", &mut found);
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
        (path.strip_prefix(root()).unwrap().display().to_string(), code)
    };
    found.into_iter().filter(|path| !path.ends_with("tests.rs")).map(read).collect()
}

/// Text between quotation marks in a line of code.
fn literals(line: &str) -> Vec<&str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return Vec::new();
    }
    code.split('"').skip(1).step_by(2).collect()
}

/// Every two adjacent lines, joined, with the number of the first, as a line break may split avoided words.
fn pairs(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pairs: Vec<String> = lines.windows(2).map(|pair| pair.join(" ")).collect();
    (1..).zip(pairs)
}

#[test]
fn help_has_plain_words() {
    let printed = |arguments: &[&str]| {
        let assert = denoise(arguments).assert().success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    let mut texts = Vec::new();
    for arguments in [
        &["--help"] as &[&str],
        &["-h"],
        &["man"],
        &["train", "--help"],
        &["eval", "--help"],
        &["live", "--help"],
        &["join", "--help"],
        &["merge", "--help"],
        &["man", "eval"],
    ] {
        let text = printed(arguments);
        assert!(text.lines().count() > 10, "{arguments:?}");
        assert!(*arguments != ["-h"] || text.lines().count() <= 24, "more than a screen:\n{text}");
        texts.extend(pairs(&text).map(|(_, pair)| (format!("denoise {}", arguments.join(" ")), pair)));
    }
    check(texts);
}

#[test]
fn errors_have_plain_words() {
    let sources = sources();
    assert!(sources.len() > 100, "{}", sources.len());
    let errors = sources.iter().flat_map(|(path, code)| {
        let errors = code.split("#[error(").skip(1).map(|rest| rest.split(")]").next().unwrap_or_default());
        errors.map(|error| (path.clone(), error.replace('\n', " "))).collect::<Vec<_>>()
    });
    let errors: Vec<_> = errors.collect();
    assert!(errors.len() > 50, "{}", errors.len());
    // Error messages are not sentences: they end without a full stop.
    for (path, error) in &errors {
        if let Some(text) = error.strip_prefix('"') {
            let text = text.split('"').next().unwrap_or_default();
            assert!(!text.ends_with('.') || text.ends_with(".."), "{path}: {text}");
        }
    }
    check(errors);
}

#[test]
fn messages_of_the_program_have_plain_words() {
    let program = sources().into_iter().filter(|(path, _)| path.starts_with("crates/cli/src"));
    let messages = program.flat_map(|(path, code)| {
        let lines = code.lines().enumerate();
        let found = lines.flat_map(|(number, line)| {
            let place = format!("{path}:{}", number + 1);
            literals(line).into_iter().map(move |text| (place.clone(), text.to_owned()))
        });
        found.collect::<Vec<_>>()
    });
    check(messages);
}

/// Their comments document the bindings and the scripts of training and evaluation.
#[test]
fn interfaces_and_scripts_have_plain_words() {
    let mut interfaces = Vec::new();
    for (folder, ending) in [
        ("bindings/python/alphamf", ".py"),
        ("bindings/python/alphamf", ".pyi"),
        ("bindings/c/include", ".h"),
        ("bindings/web", ".d.ts"),
        ("training", ".py"),
        ("eval", ".py"),
        ("docs/listen", ".py"),
    ] {
        let before = interfaces.len();
        files(&root().join(folder), ending, &mut interfaces);
        assert!(interfaces.len() > before, "{folder}/*{ending}");
    }
    check(interfaces.into_iter().flat_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let place = |number: usize| format!("{}:{number}", path.display());
        pairs(&text).map(|(number, pair)| (place(number), pair)).collect::<Vec<_>>()
    }));
}

#[test]
fn documents_have_plain_words() {
    let mut documents = Vec::new();
    files(&root(), ".md", &mut documents);
    files(&root().join("eval"), ".toml", &mut documents);
    // The changelog contains the names of earlier versions, the other file the avoided words themselves.
    documents.retain(|path| !path.ends_with("CHANGELOG.md") && !path.ends_with("CONTRIBUTING.md"));
    assert!(documents.len() > 40, "{documents:?}");
    let lines = documents.into_iter().flat_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let place = |number: usize| format!("{}:{}", path.display(), number + 1);
        let lines = text.lines().enumerate();
        lines.map(|(number, line)| (place(number), line.to_owned())).collect::<Vec<_>>()
    });
    check(lines);
}

#[test]
fn words_are_found_whole() {
    assert_eq!(avoided("It Hears, too"), ["hears"]);
    assert!(avoided("the share of users overheard it").is_empty());
    assert_eq!(literals("let x = format!(\"a {b}\", \"c\");"), ["a {b}", "c"]);
    assert!(literals("/// \"hears\"").is_empty());
}
