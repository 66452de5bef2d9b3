//! Names of results.

use crate::letters::{folded, is_case_insensitive};
use crate::manifest::Listed;
use crate::processing::Processing;
use crate::record;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// How names of files in the results folder are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// Case-sensitive.
    Exact,
    /// Case-insensitive.
    Folded,
}

impl Names {
    /// Determines the comparison for a folder, which need not exist. The file system is tested only if two names differ
    /// in case alone.
    pub(super) fn of(found: &[Listed], results: &Path) -> Self {
        let mut stems: HashMap<PathBuf, PathBuf> = HashMap::new();
        let is_another = |Listed { name, .. }: &Listed| {
            let stem = name.with_extension("");
            *stems.entry(folded(&stem)).or_insert_with(|| stem.clone()) != stem
        };
        if found.iter().any(is_another) && is_case_insensitive(results) { Self::Folded } else { Self::Exact }
    }

    /// Key that all names of one file share.
    pub(super) fn key(self, name: &Path) -> PathBuf {
        match self {
            Self::Exact => name.to_owned(),
            Self::Folded => folded(name),
        }
    }
}

/// Distinct output names: `talk.mp3` becomes `talk.wav`, or `talk.mp3.wav` beside `talk.wav`; recordings with the same name in
/// two folders are numbered. A recording that has a result keeps its name, whatever else is listed.
pub(super) fn names(
    found: &[Listed],
    processing: &Processing,
    sources: &HashMap<String, String>,
    one: Names,
) -> Vec<PathBuf> {
    let ending = |name: &Path| processing.ending(name);
    let renamed = |name: &Path| with_ending(name, ending(name));
    let mut count: HashMap<PathBuf, usize> = HashMap::new();
    found.iter().for_each(|listed| *count.entry(one.key(&renamed(&listed.name))).or_default() += 1);
    let mut taken = HashSet::new();
    let mut kept = kept_names(found, processing, sources);
    for name in &mut kept {
        name.take_if(|name| !taken.insert(one.key(name)));
    }
    // Next number to append to a name that is taken.
    let mut next: HashMap<PathBuf, usize> = HashMap::new();
    let result = found.iter().zip(kept).map(|(Listed { input, name }, kept)| {
        if let Some(kept) = kept {
            return kept;
        }
        let is_of_another = |name: &Path| {
            let owner = sources.get(&record::key(name));
            owner.is_some_and(|owner| *owner != record::source(input) && Path::new(owner).exists())
        };
        let mut result = renamed(name);
        if count.get(&one.key(&result)).is_some_and(|&count| count > 1) && result != *name {
            result = name.to_owned();
            result.as_mut_os_string().push(format!(".{}", ending(name)));
        }
        let mut unique = result.clone();
        while taken.contains(&one.key(&unique)) || (unique != result && is_of_another(&unique)) {
            let number = next.entry(one.key(&result)).or_insert(2);
            let mut stem = result.file_stem().unwrap_or_default().to_owned();
            stem.push(format!("-{number}.{}", ending(name)));
            unique = result.with_file_name(stem);
            *number += 1;
        }
        taken.insert(one.key(&unique));
        unique
    });
    result.collect()
}

/// Names of the recordings' results from earlier runs.
fn kept_names(
    found: &[Listed],
    processing: &Processing,
    sources: &HashMap<String, String>,
) -> Vec<Option<PathBuf>> {
    if sources.is_empty() {
        return vec![None; found.len()];
    }
    let mut results: HashMap<&str, Vec<&str>> = HashMap::new();
    sources.iter().for_each(|(result, source)| results.entry(source).or_default().push(result));
    let kept = |Listed { input, name }: &Listed| {
        let results = results.get(record::source(input).as_str())?;
        let fitting =
            results.iter().map(Path::new).filter(|result| fits(result, name, processing.ending(name)));
        fitting.min().map(Path::to_owned)
    };
    found.iter().map(kept).collect()
}

/// Whether `result` is a possible result name of the recording `name`: its name with or without its extension, and with
/// or without a number.
fn fits(result: &Path, name: &Path, ending: &str) -> bool {
    let is_numbered = |rest: &str| {
        rest.is_empty()
            || rest.strip_prefix('-').is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
            })
    };
    let (Some(stem), Some(whole), Some(found)) = (name.file_stem(), name.file_name(), result.file_stem())
    else {
        return false;
    };
    let found = found.to_string_lossy();
    result.parent() == name.parent()
        && result.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
        && [whole, stem]
            .iter()
            .any(|name| found.strip_prefix(&*name.to_string_lossy()).is_some_and(is_numbered))
}

/// Replaces the extension of a name, unless it is already `ending` in upper or lower case.
pub(super) fn with_ending(name: &Path, ending: &str) -> PathBuf {
    let has = name.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    if has { name.to_owned() } else { name.with_extension(ending) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        processing: Processing,
    }

    #[test]
    fn names_in_upper_and_lower_case_are_numbered_where_they_are_one() {
        let listed = |name: &&str| Listed { input: Path::new("in").join(name), name: name.into() };
        let found: Vec<Listed> =
            ["t.wav", "T.WAV", "a/t.wav", "A/T.mp3", "b.mp3"].iter().map(listed).collect();
        let options = Options::parse_from(["denoise"]);
        let named = |one, sources: &[(&str, &str)]| {
            let sources = sources.iter().map(|&(result, source)| (result.to_owned(), source.to_owned()));
            names(&found, &options.processing, &sources.collect(), one)
        };
        let paths = |names: [&str; 5]| names.map(PathBuf::from);
        assert_eq!(named(Names::Exact, &[]), paths(["t.wav", "T.WAV", "a/t.wav", "A/T.wav", "b.wav"]));
        let expected = paths(["t.wav", "T-2.wav", "a/t.wav", "A/T.mp3.wav", "b.wav"]);
        assert_eq!(named(Names::Folded, &[]), expected);
        // Names of earlier runs are kept, also from a file system that compares otherwise.
        let source = record::source(&found[1].input);
        assert_eq!(named(Names::Folded, &[("T-2.wav", &source)]), expected);
        let kept = paths(["t-2.wav", "T.WAV", "a/t.wav", "A/T.mp3.wav", "b.wav"]);
        assert_eq!(named(Names::Folded, &[("T.WAV", &source)]), kept);
    }
}
