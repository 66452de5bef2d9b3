//! `--live`: causal denoising of recordings and pipes.

use super::failure::usage;
use super::interrupts::check_interrupt;
use super::model::Mode;
use alphamf::denoiser::{DEFAULT_LATENCY_MS, LATENCY_RANGE_SECONDS, LiveDenoiser, LiveSettings};
use alphamf::signal::Signal;
use alphamf::{DenoiseError, Denoiser};

/// Options of `--live`.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Live")]
pub struct Live {
    /// Denoise causally, with low latency.
    ///
    /// Uses --latency, --model, --purpose, --strength, --floor-db, --mix, --no-neural, --alpha-speech and --alpha-noise;
    /// --seed and --no-dither affect the file that is written. Other options of the denoiser are refused.
    #[arg(long)]
    live: bool,

    /// Set the latency of --live, in ms.
    ///
    /// Range: 4 to 64. Default: 16.
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = parse_latency)]
    latency: Option<f64>,
}

pub fn parse_latency(text: &str) -> Result<f64, String> {
    let (least, most) = (1000.0 * LATENCY_RANGE_SECONDS.start(), 1000.0 * LATENCY_RANGE_SECONDS.end());
    match text.parse() {
        Ok(latency) if (least..=most).contains(&latency) => Ok(latency),
        _ => Err(format!("expected {least} to {most}")),
    }
}

/// Settings for a latency; `mix` is the fraction of denoised signal.
pub fn settings(denoiser: &Denoiser, latency_seconds: f64, mix: f32) -> LiveSettings {
    LiveSettings { latency_seconds, controls: denoiser.live_controls(mix) }
}

impl Live {
    /// Refuses a latency without `--live`.
    pub fn check(&self) -> anyhow::Result<()> {
        let has_effect = self.live || self.latency.is_none();
        if has_effect { Ok(()) } else { Err(usage("--latency has no effect without --live: omit it")) }
    }

    /// Whether `--live` was given.
    pub fn mode(&self) -> Mode {
        if self.live { Mode::Live } else { Mode::Offline }
    }

    /// These options without a latency that equals the default: both give equal results.
    pub fn resolved(self) -> Self {
        Self { latency: self.latency.filter(|latency| *latency != DEFAULT_LATENCY_MS), ..self }
    }

    /// Latency in seconds, with `--live`.
    pub fn latency_seconds(&self) -> Option<f64> {
        self.live.then(|| self.latency.unwrap_or(DEFAULT_LATENCY_MS) / 1000.0)
    }

    /// Live settings, with `--live`; `mix` is the fraction of denoised signal.
    pub fn settings(&self, denoiser: &Denoiser, mix: f32) -> Option<LiveSettings> {
        self.latency_seconds().map(|latency_seconds| settings(denoiser, latency_seconds, mix))
    }
}

/// A [`LiveDenoiser`] whose output is aligned with its input: without the initial delay, and as long.
pub struct AlignedDenoiser {
    live: LiveDenoiser,
    sections: Sections,
    /// Samples per channel of the delay that are still to be dropped.
    early: usize,
    input: Vec<f32>,
    output: Vec<f32>,
}

impl AlignedDenoiser {
    pub fn new(
        denoiser: &Denoiser,
        sample_rate: u32,
        channels: usize,
        settings: LiveSettings,
    ) -> Result<Self, DenoiseError> {
        let live = denoiser.live(sample_rate, channels, settings)?;
        Ok(Self {
            early: live.latency(),
            live,
            sections: Sections::default(),
            input: Vec::new(),
            output: Vec::new(),
        })
    }

    /// Delay of the output during processing, samples per channel.
    pub fn latency(&self) -> usize {
        self.live.latency()
    }

    /// Processes the next samples of every channel. Returns the output without the initial delay.
    pub fn push(&mut self, block: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let (width, count) = (block.len(), block.first().map_or(0, Vec::len));
        self.input.clear();
        self.input.extend((0..count).flat_map(|n| block.iter().map(move |samples| samples[n])));
        self.output.resize(self.input.len(), 0.0);
        let latency = self.live.latency() as u64;
        self.live.process_with_events(&self.input, &mut self.output, |event| {
            self.sections.push(event.speaking, event.sample.saturating_sub(latency));
        });
        let early = self.early.min(count);
        self.early -= early;
        let due = &self.output[early * width..];
        (0..width).map(|channel| due.iter().skip(channel).step_by(width).copied().collect()).collect()
    }

    /// Returns the remaining output.
    pub fn finish(&mut self) -> Vec<Vec<f32>> {
        self.push(&vec![vec![0.0; self.live.latency()]; self.live.channels()])
    }

    /// Starts and ends of speech, in an output of `length` samples per channel.
    pub fn speech_sections(&self, length: u64) -> Vec<[u64; 2]> {
        let open = self.sections.open.map(|start| [start, length]);
        let all = self.sections.closed.iter().copied().chain(open);
        all.map(|[start, end]| [start, end.min(length)]).filter(|[start, end]| start < end).collect()
    }
}

/// Sections with speech, in samples per channel.
#[derive(Default)]
struct Sections {
    closed: Vec<[u64; 2]>,
    /// Start of a section that has not ended yet.
    open: Option<u64>,
}

impl Sections {
    fn push(&mut self, starts: bool, sample: u64) {
        match (starts, self.open.take()) {
            (true, _) => self.open = Some(sample),
            (false, Some(start)) => self.closed.push([start, sample]),
            (false, None) => {}
        }
    }
}

/// Denoises a whole recording, until Ctrl-C.
pub fn denoise(denoiser: &Denoiser, noisy: &Signal, settings: &LiveSettings) -> Result<Signal, DenoiseError> {
    let mut live =
        AlignedDenoiser::new(denoiser, noisy.sample_rate(), noisy.channels().len(), settings.clone())?;
    let mut channels: Vec<Vec<f32>> = vec![Vec::new(); noisy.channels().len()];
    let block = noisy.sample_rate() as usize;
    for start in (0..noisy.len()).step_by(block) {
        check_interrupt()?;
        let end = noisy.len().min(start + block);
        let block: Vec<_> = noisy.channels().iter().map(|samples| samples[start..end].to_vec()).collect();
        channels.iter_mut().zip(live.push(&block)).for_each(|(samples, next)| samples.extend(next));
    }
    for (samples, rest) in channels.iter_mut().zip(live.finish()) {
        samples.extend(rest);
    }
    Ok(noisy.with_channels(channels)?)
}
