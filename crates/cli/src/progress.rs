//! Progress of one task, and of the files of a folder: bars on a terminal, a line per file elsewhere.

use super::interrupts::interrupted;
use super::terminal::{files, is_interactive, printable, say};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Steps of a bar.
const STEPS: u64 = 1000;
/// Shortest time between two changes of the figures beside a bar.
const REFRESH: Duration = Duration::from_millis(100);
/// Maximum number of files with their own bars.
const MAX_BARS: usize = 8;

/// Label, bar and figures. The label has a fixed width, so that bars of several files are aligned.
const ALIGNED: &str = "{msg:24!} {wide_bar:.cyan/dim} {prefix}";
const SINGLE: &str = "{msg} {wide_bar:.cyan/dim} {prefix}";
/// Without a bar, for an unknown length.
const ENDLESS: &str = "{msg} {prefix}";

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("━╸─")
}

/// A duration in minutes and seconds, with hours if there are any.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Seconds of audio per second of work.
fn rate(audio_seconds: f64, elapsed: f64) -> String {
    match audio_seconds / elapsed {
        rate if !(rate.is_finite() && rate > 0.0) => "-".to_owned(),
        rate if rate < 9.95 => format!("{rate:.1}x"),
        rate => format!("{rate:.0}x"),
    }
}

/// Estimates the remaining time of a task, of which this fraction took `elapsed` seconds.
fn time_left(fraction: f64, elapsed: f64) -> String {
    if fraction > 0.0 { clock(elapsed * (1.0 - fraction) / fraction) } else { "-:--".to_owned() }
}

/// Completed fraction, rate and time left, in columns.
fn figures(fraction: f64, audio_seconds: f64, elapsed: f64) -> String {
    // Never 100 % before the end.
    let percent = (100.0 * fraction).floor();
    let (rate, left) = (rate(audio_seconds, elapsed), time_left(fraction, elapsed));
    format!("{percent:>3.0} % {rate:>5} real time {left:>7} left")
}

fn bar(style: ProgressStyle, label: String) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::hidden());
    bar.set_style(style);
    bar.set_message(label);
    bar
}

/// A progress bar on a terminal.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
}

impl Progress {
    /// A bar with a label, unless `quiet`.
    pub fn new(label: &str, quiet: bool) -> Self {
        let bar = bar(style(SINGLE), label.to_owned());
        if !quiet && is_interactive() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        Self { bar, began: Instant::now() }
    }

    /// Shows the processed seconds, out of the duration if known; breaks after Ctrl-C.
    pub fn update_seconds(&self, seconds: f64, duration: Option<f64>) -> ControlFlow<()> {
        let elapsed = self.began.elapsed().as_secs_f64();
        if let Some(duration) = duration.filter(|&duration| duration > 0.0) {
            let fraction = (seconds / duration).min(1.0);
            self.bar.set_prefix(figures(fraction, seconds, elapsed));
            return self.set(fraction);
        }
        if self.bar.length().is_some() {
            self.bar.unset_length();
            self.bar.set_style(style(ENDLESS));
        }
        let rate = rate(seconds, elapsed);
        self.bar.set_prefix(format!("{} of audio, {rate} real time", clock(seconds)));
        interrupted()
    }

    /// Shows the completed fraction, 0 to 1; breaks after Ctrl-C.
    pub fn update(&self, fraction: f64) -> ControlFlow<()> {
        let left = time_left(fraction, self.began.elapsed().as_secs_f64());
        self.bar.set_prefix(format!("{:>3.0} % {left:>7} left", (100.0 * fraction).floor()));
        self.set(fraction)
    }

    fn set(&self, fraction: f64) -> ControlFlow<()> {
        self.bar.set_position((fraction * STEPS as f64) as u64);
        interrupted()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Work of a folder. Files are weighted by their size, as their durations are not known before they are opened.
#[derive(Debug, Default)]
struct Totals {
    files: usize,
    finished: usize,
    /// Sum of the weights of all files that are not skipped.
    work: f64,
    done: f64,
    audio_seconds: f64,
    /// Files that have a bar.
    bars: usize,
}

impl Totals {
    /// Completed fraction of the work.
    fn fraction(&self) -> f64 {
        if self.work > 0.0 { (self.done / self.work).clamp(0.0, 1.0) } else { 1.0 }
    }

    fn figures(&self, elapsed: f64) -> String {
        figures(self.fraction(), self.audio_seconds, elapsed)
    }

    /// Adds progress of a file of this weight.
    fn advance(&mut self, weight: f64, fraction: f64, audio_seconds: f64) {
        self.done += weight * fraction;
        self.audio_seconds += audio_seconds;
    }

    /// Removes a file that needs no further work, and its counted fraction.
    fn leave_out(&mut self, weight: f64, fraction: f64) {
        self.work -= weight;
        self.done -= weight * fraction;
    }
}

/// How the progress of a folder is shown.
enum Shown {
    Nothing,
    Lines,
    Bars { all: MultiProgress, total: ProgressBar },
}

/// Progress of the files of a folder.
pub struct FolderProgress {
    shown: Shown,
    totals: Mutex<Totals>,
    began: Instant,
}

impl FolderProgress {
    /// Bars for files of these sizes in bytes, or a line per file without a terminal; nothing if `quiet`.
    pub fn new(sizes: impl Iterator<Item = u64>, quiet: bool) -> Self {
        let mut totals = Totals::default();
        for size in sizes {
            totals.files += 1;
            totals.work += weight(size);
        }
        let shown = match quiet {
            true => Shown::Nothing,
            false if !is_interactive() => Shown::Lines,
            false => {
                let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
                let total = all.add(bar(style(ALIGNED), format!("0 of {}", files(totals.files))));
                total.set_prefix(totals.figures(0.0));
                total.tick();
                Shown::Bars { all, total }
            }
        };
        Self { shown, totals: Mutex::new(totals), began: Instant::now() }
    }

    /// Starts the progress of a file.
    pub fn file(&self, name: &Path, size: u64) -> FileProgress<'_> {
        FileProgress {
            folder: self,
            name: printable(&name.display().to_string()),
            weight: weight(size),
            fraction: 0.0,
            seconds: 0.0,
            began: Instant::now(),
            bar: None,
            shown: None,
        }
    }

    /// Seconds since the start.
    fn elapsed(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Shows the figures of all files.
    fn show(&self, totals: &Totals) {
        if let Shown::Bars { total, .. } = &self.shown {
            total.set_message(format!("{} of {}", totals.finished, files(totals.files)));
            total.set_prefix(totals.figures(self.elapsed()));
            total.set_position((totals.fraction() * STEPS as f64) as u64);
        }
    }
}

impl Drop for FolderProgress {
    fn drop(&mut self) {
        if let Shown::Bars { all, total } = &self.shown {
            total.finish_and_clear();
            let _cleared = all.clear();
        }
    }
}

/// Weight of a file: its size in bytes, or 1 for an empty file or a pipe.
fn weight(size: u64) -> f64 {
    size.max(1) as f64
}

/// Progress of a file of a folder.
pub struct FileProgress<'a> {
    folder: &'a FolderProgress,
    name: String,
    weight: f64,
    /// Completed fraction, and seconds of audio, counted in the totals.
    fraction: f64,
    seconds: f64,
    began: Instant,
    bar: Option<ProgressBar>,
    /// Time of the last change of the figures.
    shown: Option<Instant>,
}

impl FileProgress<'_> {
    /// Shows the processed seconds, out of the duration if known; breaks after Ctrl-C.
    pub fn update(&mut self, seconds: f64, duration: Option<f64>) -> ControlFlow<()> {
        if self.shown.is_none_or(|shown| shown.elapsed() >= REFRESH) {
            let known = duration.filter(|&duration| duration > 0.0);
            self.count(seconds, known.map_or(0.0, |duration| (seconds / duration).clamp(0.0, 1.0)));
            self.shown = Some(Instant::now());
        }
        interrupted()
    }

    fn count(&mut self, seconds: f64, fraction: f64) {
        let Ok(mut totals) = self.folder.totals.lock() else { return };
        totals.advance(self.weight, fraction - self.fraction, seconds - self.seconds);
        (self.seconds, self.fraction) = (seconds, fraction);
        self.folder.show(&totals);
        let Shown::Bars { all, .. } = &self.folder.shown else { return };
        if self.bar.is_none() && totals.bars < MAX_BARS {
            totals.bars += 1;
            self.bar = Some(all.add(bar(style(ALIGNED), self.name.clone())));
        }
        if let Some(bar) = &self.bar {
            bar.set_prefix(figures(fraction, seconds, self.began.elapsed().as_secs_f64()));
            bar.set_position((fraction * STEPS as f64) as u64);
        }
    }

    /// Ends the file, of which `audio_seconds` were denoised; `None` if it was skipped or failed.
    pub fn finish(mut self, audio_seconds: Option<f64>) {
        if let Some(seconds) = audio_seconds {
            self.count(seconds, 1.0);
        }
        let Ok(mut totals) = self.folder.totals.lock() else { return };
        totals.finished += 1;
        if audio_seconds.is_none() {
            totals.leave_out(self.weight, self.fraction);
        }
        // Shown before the bar is removed, which redraws all bars.
        self.folder.show(&totals);
        if let (Some(bar), Shown::Bars { all, .. }) = (self.bar.take(), &self.folder.shown) {
            totals.bars -= 1;
            bar.finish_and_clear();
            all.remove(&bar);
        }
        if let (Shown::Lines, Some(seconds)) = (&self.folder.shown, audio_seconds) {
            let taken = self.began.elapsed().as_secs_f64();
            say(&line(&totals, &self.name, seconds, taken, self.folder.elapsed()));
        }
    }
}

/// A denoised file and the time left for all, in a line.
fn line(totals: &Totals, name: &str, audio_seconds: f64, taken: f64, elapsed: f64) -> String {
    let Totals { files, finished, .. } = totals;
    format!(
        "{finished} of {files}: {name}: {audio_seconds:.2} s of audio in {taken:.2} s; all {} real time, {} left",
        rate(totals.audio_seconds, elapsed),
        time_left(totals.fraction(), elapsed)
    )
}

#[cfg(test)]
#[path = "progress/tests.rs"]
mod tests;
