//! Division of work among machines, and merging of their results.

use super::claims::{Claims, check_absent};
use super::failure::{Failure, usage};
use super::stats::MAX_BYTES;
use super::streams::{check_output, read_bounded, write_whole};
use alphamf_eval::{checksum, first_difference};
use anyhow::{Context, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

/// One of the parts into which files are divided by a hash of their names, the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// 1 to `count`.
    number: u64,
    count: u64,
}

impl Shard {
    /// Whether a name, with `/` between its parts, is in this part.
    pub fn holds(self, name: &str) -> bool {
        let digits = &checksum(name.as_bytes())[..15];
        u64::from_str_radix(digits, 16).is_ok_and(|number| number % self.count == self.number - 1)
    }

    /// Like [`holds`](Self::holds), for a path below a folder.
    pub fn holds_file(self, name: &Path) -> bool {
        let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
        self.holds(&parts.join("/"))
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match numbers {
            Some((number, count)) if (1..=count).contains(&number) => Ok(Self { number, count }),
            _ => Err("expected K/N with 1 ≤ K ≤ N, such as 3/16".to_owned()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// Arguments of `denoise merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  denoise merge stats-*.json -o stats.json   statistics of runs with --shard K/N --stats stats-K.json
  denoise merge run-*.jsonl -o run.jsonl     journals of eval --shard K/N --resume run-K.jsonl;
                                             eval --resume run.jsonl then scores no file again

The order of the files does not matter. Results of a recording in several files must be equal.")]
pub struct Arguments {
    /// Read statistics of runs with -o, or journals of eval.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write the merged file.
    #[arg(short, long, value_name = "FILE", help_heading = "Input and output")]
    output: PathBuf,

    /// Overwrite an existing output.
    #[arg(long, help_heading = "Input and output")]
    force: bool,
}

/// Merges the results of sharded runs.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { files, output, force } = arguments;
    let mut claims = Claims::default();
    files.iter().for_each(|path| claims.read(path));
    claims.write(output)?;
    check_output(output)?;
    check_absent(output, *force, "")?;
    let texts = files
        .iter()
        .map(|path| {
            let bytes = read_bounded(path, MAX_BYTES)?.with_context(|| Failure::Input(path.clone()))?;
            let neither = || anyhow!("not statistics or a journal").context(Failure::Unusable(path.clone()));
            let text = String::from_utf8(bytes).map_err(|_| neither())?;
            Ok((path.as_path(), text))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let is_journal = |text: &str| text.starts_with("{\"journal\":");
    let merged = match texts.iter().filter(|(_, text)| is_journal(text)).count() {
        0 => merge_statistics(&texts)?,
        count if count == texts.len() => merge_journals(&texts)?,
        _ => return Err(usage("statistics and journals cannot be merged with each other")),
    };
    write_whole(output, merged.as_bytes(), *force)?;
    Ok(ExitCode::SUCCESS)
}

/// Statistics of a run with -o, whose fields keep their text.
#[derive(Serialize, Deserialize)]
struct Statistics {
    version: Box<RawValue>,
    dictionary: Box<RawValue>,
    dictionary_sha256: Box<RawValue>,
    options: Box<RawValue>,
    settings: Box<RawValue>,
    processing: Box<RawValue>,
    files: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<Box<RawValue>>,
}

impl Statistics {
    /// Fields that must be equal in all files.
    fn made_by(&self) -> [(&'static str, &str); 6] {
        [
            ("version", self.version.get()),
            ("dictionary", self.dictionary.get()),
            ("dictionary_sha256", self.dictionary_sha256.get()),
            ("options", self.options.get()),
            ("settings", self.settings.get()),
            ("processing", self.processing.get()),
        ]
    }
}

/// Unique entries by name.
struct Named<T> {
    all: BTreeMap<String, T>,
}

impl<T: PartialEq> Named<T> {
    fn add(&mut self, name: String, thing: T) -> anyhow::Result<()> {
        match self.all.get(&name) {
            Some(known) if *known != thing => bail!("'{name}' differs from its result in an earlier file"),
            _ => self.all.insert(name, thing),
        };
        Ok(())
    }
}

fn merge_statistics(texts: &[(&Path, String)]) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Entry {
        input: String,
    }
    #[derive(Deserialize)]
    struct LeftOut {
        path: String,
    }
    let mut first: Option<Statistics> = None;
    let mut files = Named { all: BTreeMap::new() };
    let mut left_out = Named { all: BTreeMap::new() };
    for (path, text) in texts {
        let mut add = || -> anyhow::Result<()> {
            let mut found: Statistics =
                serde_json::from_str(text).context("not statistics of a run with -o")?;
            if let Some(first) = &first {
                for ((what, expected), (_, found)) in first.made_by().into_iter().zip(found.made_by()) {
                    let [expected, found] = [expected, found].map(serde_json::from_str);
                    let difference = first_difference(what, &found?, &expected?);
                    ensure!(difference.is_none(), "from another run: {}", difference.unwrap_or_default());
                }
            }
            for entry in found.files.drain(..) {
                let name = serde_json::from_str::<Entry>(entry.get())?.input;
                files.add(name, entry.get().to_owned())?;
            }
            for entry in found.left_out.drain(..) {
                let name = serde_json::from_str::<LeftOut>(entry.get())?.path;
                left_out.add(name, entry.get().to_owned())?;
            }
            first.get_or_insert(found);
            Ok(())
        };
        add().with_context(|| Failure::Unusable(path.to_path_buf()))?;
    }
    let raw = |all: BTreeMap<String, String>| {
        all.into_values().map(RawValue::from_string).collect::<Result<Vec<_>, _>>()
    };
    let Some(mut whole) = first else { bail!("nothing to merge") };
    (whole.files, whole.left_out) = (raw(files.all)?, raw(left_out.all)?);
    let mut json = serde_json::to_string_pretty(&whole)?;
    json.push('\n');
    Ok(json)
}

fn merge_journals(texts: &[(&Path, String)]) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Line {
        result: Name,
    }
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    let mut headers = BTreeSet::new();
    let mut lines = Named { all: BTreeMap::new() };
    for (path, text) in texts {
        let mut add = || -> anyhow::Result<()> {
            let (header, rest) = text.split_once('\n').context("the first line has no end")?;
            headers.insert(header);
            ensure!(headers.len() == 1, "from another run than the files before");
            // Of several lines on one file in a journal, the last counts.
            let mut own = BTreeMap::new();
            for line in rest.split_terminator('\n') {
                let name = serde_json::from_str::<Line>(line).context("not a line of a journal")?.result.name;
                own.insert(name, line);
            }
            own.into_iter().try_for_each(|(name, line)| lines.add(name, line))
        };
        add().with_context(|| Failure::Unusable(path.to_path_buf()))?;
    }
    let all = headers.into_iter().chain(lines.all.into_values());
    Ok(all.flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_one_part() {
        for count in [1, 2, 7, 16] {
            let shards: Vec<Shard> =
                (1..=count).map(|number| format!("{number}/{count}").parse().unwrap()).collect();
            let mut held = vec![0; count];
            for name in (0..3_000).map(|number| format!("a/{number}.wav")) {
                let holders: Vec<usize> = (0..count).filter(|&k| shards[k].holds(&name)).collect();
                assert_eq!(holders.len(), 1, "{name}");
                assert!(shards[holders[0]].holds_file(Path::new(&name)));
                held[holders[0]] += 1;
            }
            let expected = 3_000 / count;
            assert!(held.iter().all(|&n: &usize| n.abs_diff(expected) < 100), "{held:?}");
        }
        // Never changes: restarted runs rely on it.
        assert_eq!((1..=16).find(|k| format!("{k}/16").parse::<Shard>().unwrap().holds("talk.wav")), Some(4));
        for wrong in ["", "3", "0/4", "5/4", "-1/4", "1/0", "a/b"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
