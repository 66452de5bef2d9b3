//! Shared parts of the examples: a report of tables, a line figure, command-line options.

#![allow(dead_code)] // Each example uses a part.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{env, fs};

use alphamf_plot::{Curve, curves};
use alphamf_samplers::Real;
use alphamf_samplers::random::SeededRng;
use flate2::read::GzDecoder;
use rand::RngExt;
use rand_distr::{Distribution, Gamma};

pub type Outcome = Result<(), Box<dyn Error>>;

/// Checks that the command line has only options in `known` and `--out`, each with a value. The check comes first, as
/// an example may run for hours and replaces the page of an earlier run.
pub fn check_options(known: &[&str]) -> Outcome {
    check_arguments(env::args_os().skip(1), known)
}

pub fn check_arguments(mut arguments: impl Iterator<Item = OsString>, known: &[&str]) -> Outcome {
    while let Some(name) = arguments.next() {
        if !known.iter().chain(&["--out"]).any(|known| name == *known) {
            let expected = known.iter().map(|known| format!("{known}, ")).collect::<String>();
            return Err(format!("{}: expected {expected}--out", name.display()).into());
        }
        if arguments.next().is_none() {
            return Err(format!("{}: expected a value", name.display()).into());
        }
    }
    Ok(())
}

/// Returns the value after the option `name` on the command line.
pub fn option(name: &str) -> Option<PathBuf> {
    let mut arguments = env::args_os().skip_while(|argument| argument.to_str() != Some(name));
    arguments.nth(1).map(PathBuf::from)
}

/// Returns the whole number after the option `name`, at least 1, or `otherwise` if the option is absent.
pub fn number_option(name: &str, otherwise: usize) -> Result<usize, Box<dyn Error>> {
    number_from(name, otherwise, 1)
}

/// Returns the whole number after the option `name`, at least `least`, or `otherwise` if the option is absent.
pub fn number_from(name: &str, otherwise: usize, least: usize) -> Result<usize, Box<dyn Error>> {
    option(name).map_or(Ok(otherwise), |value| whole_number(name, &value.to_string_lossy(), least))
}

pub fn whole_number(name: &str, text: &str, least: usize) -> Result<usize, Box<dyn Error>> {
    let number = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{name} {text}: expected a whole number, at least {least}").into())
}

/// Reads and decompresses a gzip file.
pub fn read_gzip(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    GzDecoder::new(file).read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// Draws from a Dirichlet distribution.
pub fn dirichlet(concentrations: &[f64], stream: &mut SeededRng) -> Vec<f64> {
    let parts: Vec<f64> = concentrations
        .iter()
        .map(|&shape| Gamma::new(shape, 1.0).map_or(0.0, |law| law.sample(stream)))
        .collect();
    let sum: f64 = parts.iter().sum();
    parts.iter().map(|part| part / sum).collect()
}

/// Draws an index with probabilities `shares`.
pub fn draw(shares: &[f64], stream: &mut SeededRng) -> usize {
    let mut left: f64 = stream.random();
    let found = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    found.unwrap_or(shares.len() - 1)
}

/// Appends a one and normal inputs of standard deviation `deviation` to `row`. Returns a label, drawn from the logistic
/// model with coefficients `truth`, the first of which is the constant.
pub fn logistic_row(deviation: f64, truth: &[f64], row: &mut Vec<f64>, stream: &mut SeededRng) -> bool {
    let start = row.len();
    row.push(1.0);
    row.extend((1..truth.len()).map(|_| deviation * f64::normal(stream)));
    let activation: f64 = row[start..].iter().zip(truth).map(|(x, t)| x * t).sum();
    let uniform: f64 = stream.random();
    activation + (uniform / (1.0 - uniform)).ln() > 0.0
}

/// Returns the mean of the last fifth of a trace, and the first sample, counted from one, from which the trace stays
/// within one percent of the mean.
pub fn convergence(trace: &[f64]) -> (f64, usize) {
    let settled = settled(trace);
    (settled, reached(trace, settled))
}

/// Computes the mean of the last fifth of a trace.
pub fn settled(trace: &[f64]) -> f64 {
    let tail = &trace[trace.len() - (trace.len() / 5).max(1)..];
    tail.iter().sum::<f64>() / tail.len() as f64
}

/// Returns the first sample, counted from one, from which a trace stays within one percent of `value`.
pub fn reached(trace: &[f64], value: f64) -> usize {
    let last_out = trace.iter().rposition(|sample| (sample / value - 1.0).abs() > 0.01);
    last_out.map_or(1, |index| index + 2)
}

/// Computes, after every draw, the mean of the latter half of the draws so far.
pub fn halves(trace: &[f64]) -> Vec<f64> {
    let latter = (1..=trace.len()).map(|count| &trace[count / 2..count]);
    latter.map(|half| half.iter().sum::<f64>() / half.len() as f64).collect()
}

/// The folder of tables and figures: `--out DIR`, by default `eval/results/samplers`.
fn folder() -> PathBuf {
    option("--out").unwrap_or_else(|| PathBuf::from("eval/results/samplers"))
}

/// A page of markdown, printed and saved.
pub struct Report {
    page: String,
    text: String,
}

impl Report {
    pub fn new(name: &str, title: &str) -> Self {
        Self {
            page: name.to_owned(),
            text: format!("# {title}\n\n`cargo run --release -p alphamf-samplers --example {name}`\n"),
        }
    }

    /// Sets the name of the page, which is otherwise that of the example.
    #[must_use]
    pub fn on(mut self, page: &str) -> Self {
        page.clone_into(&mut self.page);
        self
    }

    pub fn say(&mut self, paragraph: &str) {
        let _ = writeln!(self.text, "\n{paragraph}");
    }

    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let _ = writeln!(self.text, "\n| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
        for row in rows {
            let _ = writeln!(self.text, "| {} |", row.join(" | "));
        }
    }

    pub fn save(self) -> Outcome {
        print!("{}", self.text);
        fs::create_dir_all(folder())?;
        fs::write(folder().join(self.page).with_extension("md"), self.text)?;
        Ok(())
    }
}

/// A named curve.
pub type Series = (String, Vec<(f64, f64)>);

/// Draws curves into `NAME.svg`.
pub fn plot(name: &str, title: &str, axes: [&str; 2], series: &[Series]) -> Outcome {
    let without_error = |&(x, y): &(f64, f64)| (x, y, 0.0);
    let curve = |(name, points): &Series| Curve {
        name: name.clone(),
        points: points.iter().map(without_error).collect(),
    };
    let all: Vec<Curve> = series.iter().map(curve).collect();
    fs::create_dir_all(folder())?;
    fs::write(folder().join(name).with_extension("svg"), curves(title, axes, &all)?)?;
    Ok(())
}

/// Formats a number for a table.
pub fn number(value: f64) -> String {
    match value.abs() {
        magnitude if !value.is_finite() || magnitude == 0.0 => format!("{value}"),
        magnitude if magnitude >= 100.0 => format!("{value:.0}"),
        magnitude if magnitude >= 1.0 => format!("{value:.2}"),
        magnitude if magnitude >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// Formats `[first, numbers...]` as a row of a table.
pub fn row(first: &str, values: &[f64]) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(values.iter().map(|&value| number(value))).collect()
}
