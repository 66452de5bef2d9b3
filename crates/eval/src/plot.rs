//! Figures of recordings during denoising, by [`alphamf_plot`], which is re-exported here.

use alphamf::denoiser::{SettingsError, SpeechLevels};
use alphamf::transform::{Analyser, Spectrogram, Stft};
pub use alphamf_plot::*;
use std::collections::VecDeque;

/// Minimum number of posterior draws for a panel of their standard deviation.
pub const MIN_DRAWS: usize = 20;

/// Maximum power of a drawn bin, 300 dBFS, so that sums do not overflow. Files in floating point may contain larger
/// values.
const MAX_POWER: f64 = 1e30;

/// Waveform, spectrogram and power of a signal, block by block, over all channels.
struct Gatherer {
    analysers: Vec<Analyser>,
    frames: Vec<Spectrogram>,
    envelope: Envelope,
    columns: Columns,
    /// Power of the bin of a full-scale sine.
    full_scale: f64,
    /// Whether the first frame, whose centre is before the start, was dropped.
    is_started: bool,
    /// Number of samples analysed at a time, to limit memory.
    step: usize,
}

impl Gatherer {
    fn new(stft: &Stft, channels: usize, scale: FrequencyScale) -> Self {
        let highest = f64::from(stft.sample_rate()) / 2.0;
        Self {
            analysers: (0..channels).map(|_| stft.analyser()).collect(),
            frames: vec![Spectrogram::new(stft.bins(), 0); channels],
            envelope: Envelope::new(),
            columns: Columns::new(stft.bins(), scale, highest),
            full_scale: (stft.window() as f64 / 4.0).powi(2),
            is_started: false,
            step: 64 * stft.hop(),
        }
    }

    fn push(&mut self, channels: &[&[f32]]) {
        self.envelope.push(channels);
        let length = channels.first().map_or(0, |channel| channel.len());
        for start in (0..length).step_by(self.step) {
            let end = (start + self.step).min(length);
            for ((analyser, frames), samples) in self.analysers.iter_mut().zip(&mut self.frames).zip(channels)
            {
                analyser.push(&samples[start..end], frames);
            }
            self.gather();
        }
    }

    fn finish(mut self) -> Stage {
        for (analyser, frames) in std::mem::take(&mut self.analysers).into_iter().zip(&mut self.frames) {
            analyser.finish(frames);
        }
        self.gather();
        Stage { envelope: self.envelope, columns: self.columns }
    }

    /// Adds the complete frames; all channels have an equal number.
    fn gather(&mut self) {
        let Some(first) = self.frames.first() else { return };
        let (bins, count) = (first.bins(), first.frames());
        let scale = 1.0 / (self.full_scale * self.frames.len() as f64);
        for frame in 0..count {
            if std::mem::replace(&mut self.is_started, true) {
                let power = |bin: usize| {
                    let square = |frames: &Spectrogram| {
                        let value = frames.frame(frame)[bin];
                        f64::from(value.re).powi(2) + f64::from(value.im).powi(2)
                    };
                    (scale * self.frames.iter().map(square).sum::<f64>()).min(MAX_POWER) as f32
                };
                let powers: Vec<f32> = (0..bins).map(power).collect();
                self.columns.push(&powers);
            }
        }
        for frames in &mut self.frames {
            *frames = Spectrogram::new(bins, 0);
        }
    }
}

/// Mean squares in slots of time.
struct SlotPowers {
    samples: usize,
    filled: usize,
    sums: [f64; 2],
    /// Whether the input has a sample that is not zero.
    has_input: bool,
    means: Means<2>,
}

impl SlotPowers {
    fn push(&mut self, values: [f64; 2], has_input: bool) {
        self.sums = sums(self.sums, values);
        self.has_input |= has_input;
        self.filled += 1;
        if self.filled == self.samples {
            self.complete();
        }
    }

    /// Ends a slot. For digital silence, the output is slight leakage, and the removed signal its negative: both count
    /// as zero.
    fn complete(&mut self) {
        let sums = if self.has_input { self.sums } else { [0.0; 2] };
        self.means.push(sums.map(|sum| sum / self.samples as f64));
        (self.filled, self.sums, self.has_input) = (0, [0.0; 2], false);
    }

    /// Returns the means, including the last slot, which is padded with silence if it is shorter.
    fn finish(mut self) -> Means<2> {
        if self.filled > 0 {
            self.complete();
        }
        self.means
    }
}

/// Collects the figure of a recording while it is denoised, in bounded memory.
pub struct RecordingPlot {
    before: Gatherer,
    after: Gatherer,
    removed: Gatherer,
    /// Input samples of every channel without output yet.
    waiting: Vec<VecDeque<f32>>,
    bins: usize,
    hop_seconds: f64,
    highest_hertz: f64,
    scale: FrequencyScale,
    deviation: Columns,
    /// Whether the first frame of deviations was dropped, as in a [`Gatherer`].
    has_deviations: bool,
    levels: Means<3>,
    powers: SlotPowers,
    /// Fraction of the denoised signal in the output.
    mix: f64,
}

impl RecordingPlot {
    /// An empty plot. `sample_rate` in Hz, length of the analysis window in seconds.
    ///
    /// # Errors
    /// If `window_seconds` is outside [`WINDOW_RANGE_SECONDS`](alphamf::transform::WINDOW_RANGE_SECONDS).
    pub fn new(
        sample_rate: u32,
        channels: usize,
        window_seconds: f64,
        scale: FrequencyScale,
    ) -> Result<Self, SettingsError> {
        let stft = Stft::new(sample_rate, window_seconds)?;
        let highest_hertz = f64::from(sample_rate) / 2.0;
        let gatherer = || Gatherer::new(&stft, channels, scale);
        Ok(Self {
            before: gatherer(),
            after: gatherer(),
            removed: gatherer(),
            waiting: vec![VecDeque::new(); channels],
            bins: stft.bins(),
            hop_seconds: stft.hop() as f64 / f64::from(sample_rate),
            highest_hertz,
            scale,
            deviation: Columns::new(stft.bins(), scale, highest_hertz),
            has_deviations: false,
            levels: Means::new(),
            powers: SlotPowers {
                samples: ((SLOT_SECONDS * f64::from(sample_rate)).round() as usize).max(1),
                filled: 0,
                sums: [0.0; 2],
                has_input: false,
                means: Means::new(),
            },
            mix: 1.0,
        })
    }

    /// Sets the fraction of the denoised signal in the output, 0 to 1; the rest is the input. The SNR is that of the
    /// denoised signal alone; its panel is empty for a fraction of 0. Default: 1.
    pub fn set_mix(&mut self, mix: f32) {
        self.mix = mix.into();
    }

    /// Adds input and output samples of every channel; the output may lag behind the input.
    ///
    /// # Panics
    /// If the channels of `before`, or those of `after`, differ in length, or some of them are missing.
    pub fn push(&mut self, before: &[Vec<f32>], after: &[Vec<f32>]) {
        self.before.push(&slices(before));
        for (waiting, samples) in self.waiting.iter_mut().zip(before) {
            waiting.extend(samples);
        }
        self.after.push(&slices(after));
        let residual = |(waiting, after): (&mut VecDeque<f32>, &Vec<f32>)| -> Vec<f32> {
            let count = after.len().min(waiting.len());
            waiting.drain(..count).zip(after).map(|(before, after)| before - after).collect()
        };
        let removed: Vec<Vec<f32>> = self.waiting.iter_mut().zip(after).map(residual).collect();
        let length = removed.iter().map(Vec::len).min().unwrap_or(0);
        for n in 0..length {
            let samples = after.iter().zip(&removed).map(|(after, removed)| [after[n], removed[n]]);
            let has_input = samples.clone().any(|[after, removed]| after != -removed);
            let powers = samples.map(|samples| self.unmixed(samples.map(f64::from))).fold([0.0; 2], sums);
            self.powers.push(powers, has_input);
        }
        self.removed.push(&slices(&removed));
    }

    /// Computes the squares of a sample of the denoised signal and of the signal removed from it, from the samples of
    /// the output and of the residual.
    fn unmixed(&self, [after, removed]: [f64; 2]) -> [f64; 2] {
        let whole = removed / self.mix;
        // The input alone contains neither.
        if self.mix > 0.0 { [after + removed - whole, whole].map(|x| x * x) } else { [0.0; 2] }
    }

    /// Adds standard deviations of the gain over at least [`MIN_DRAWS`] posterior draws (bins x frames), one matrix for all
    /// channels or one each.
    pub fn push_deviations(&mut self, deviations: &[Vec<f32>]) {
        let Some(first) = deviations.first() else { return };
        for frame in 0..first.len() / self.bins {
            let of_bin = |bin: usize| {
                let values = deviations.iter().filter_map(|values| values.get(frame * self.bins + bin));
                values.sum::<f32>() / deviations.len() as f32
            };
            if std::mem::replace(&mut self.has_deviations, true) {
                let values: Vec<f32> = (0..self.bins).map(of_bin).collect();
                self.deviation.push(&values);
            }
        }
    }

    /// Adds speech levels, one table for all channels or one each.
    ///
    /// Powers of bands are summed, as are the ends of their intervals: exact if the errors of bands are fully correlated, too wide
    /// otherwise.
    pub fn push_levels(&mut self, levels: &[SpeechLevels]) {
        let Some(first) = levels.first() else { return };
        let bands = first.edges_hertz.len().saturating_sub(1).max(1);
        for slot in 0..first.cells.len() / bands {
            let cells = levels.iter().flat_map(|levels| levels.cells.get(slot * bands..(slot + 1) * bands));
            let mut sums = [0.0; 3];
            for cell in cells.flatten().flatten() {
                let ends = [cell.lower_dbfs, cell.level_dbfs, cell.upper_dbfs];
                sums.iter_mut().zip(ends).for_each(|(sum, end)| *sum += 10_f64.powf(end / 10.0));
            }
            self.levels.push(sums.map(|sum| sum / levels.len() as f64));
        }
    }

    /// The complete figure.
    #[must_use]
    pub fn finish(self, caption: Caption) -> Figure {
        Figure {
            caption,
            hop_seconds: self.hop_seconds,
            highest_hertz: self.highest_hertz,
            scale: self.scale,
            stages: [self.before.finish(), self.after.finish(), self.removed.finish()],
            deviation: self.deviation,
            levels: self.levels,
            powers: self.powers.finish(),
        }
    }
}

fn sums(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

fn slices(channels: &[Vec<f32>]) -> Vec<&[f32]> {
    channels.iter().map(Vec::as_slice).collect()
}
