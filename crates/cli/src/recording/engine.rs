//! Denoising block by block, by a session or live.

use super::source::Count;
use crate::live::AlignedDenoiser;
use alphamf::denoiser::{SessionOutput, Statistics};
use alphamf::repair::Clipping;
use alphamf::{Cancelled, Session};
use std::ops::ControlFlow;

/// A session, or a live denoiser.
pub(super) struct Engine {
    pub(super) session: Session,
    live: Option<AlignedDenoiser>,
    /// Clipping of every channel in live denoising; a session counts its own.
    clipping: Vec<Clipping>,
    sample_rate: u32,
    /// Samples per channel processed so far.
    pub(super) samples: u64,
}

impl Engine {
    pub(super) fn new(
        session: Session,
        live: Option<AlignedDenoiser>,
        sample_rate: u32,
        channels: usize,
    ) -> Self {
        Self { session, live, clipping: vec![Clipping::default(); channels], sample_rate, samples: 0 }
    }

    /// Whether it denoises live.
    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Samples to read at a time. A session collects blocks itself; live, all available samples are processed at once.
    pub(super) fn count(&self) -> Count {
        let samples = self.session.block_samples().div_ceil(8);
        if self.live.is_some() { Count::Available(samples) } else { Count::Exact(samples) }
    }

    /// Processes the next samples of every channel, or none at the end. Returns the completed output.
    pub(super) fn denoise(
        &mut self,
        block: &[Vec<f32>],
        progress: &mut (dyn FnMut(f64) -> ControlFlow<()> + Send),
    ) -> anyhow::Result<SessionOutput> {
        self.samples += block[0].len() as u64;
        let is_last = block[0].is_empty();
        let Some(live) = &mut self.live else {
            let mut progress = progress;
            return Ok(if is_last {
                self.session.finish_with_progress(&mut progress)?
            } else {
                let block: Vec<&[f32]> = block.iter().map(Vec::as_slice).collect();
                self.session.push_with_progress(&block, &mut progress)?
            });
        };
        if progress(self.samples as f64 / f64::from(self.sample_rate)).is_break() {
            return Err(Cancelled.into());
        }
        self.clipping.iter_mut().zip(block).for_each(|(clipping, samples)| clipping.count(samples));
        let speech = if is_last { live.finish() } else { live.push(block) };
        Ok(SessionOutput { speech, residual: Vec::new() })
    }

    /// Delay of the output in live denoising, s.
    pub(super) fn latency_seconds(&self) -> Option<f64> {
        self.live.as_ref().map(|live| live.latency() as f64 / f64::from(self.sample_rate))
    }

    /// Starts and ends of speech in live denoising, s.
    pub(super) fn speech_sections(&self) -> Option<Vec<[f64; 2]>> {
        let seconds = |sample: u64| sample as f64 / f64::from(self.sample_rate);
        let live = self.live.as_ref()?;
        Some(live.speech_sections(self.samples).into_iter().map(|section| section.map(seconds)).collect())
    }

    pub(super) fn statistics(&self) -> Statistics {
        let mut statistics = self.session.statistics();
        if self.live.is_some() {
            // All other statistics are estimated by a session only.
            statistics.samples = self.samples;
            statistics.duration_seconds = self.samples as f64 / f64::from(self.sample_rate);
            statistics.clipped_input_samples = self.clipping.iter().map(Clipping::samples).sum();
        }
        statistics
    }
}
