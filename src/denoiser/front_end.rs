//! From samples to frames: the one way for streams and noise profiles.

use super::DenoiseError;
use crate::repair::{Impulses, Offset, remove_outliers, repair};
use crate::signal::{InvalidSignal, check_recording};
use crate::transform::{Analyser, Spectrogram, Stft};

/// Frames that samples are gathered for before impulses are looked for in them.
pub(super) const BLOCK_FRAMES: usize = 512;

/// Gathers samples into blocks that begin at fixed places of the recording, takes what the spectral model cannot
/// see, a constant offset and impulses, out of them, and makes frames of them. So these do not depend on how the
/// samples come in.
#[derive(Clone)]
pub(super) struct FrontEnd {
    stft: Stft,
    channels: Vec<InputChannel>,
    /// Samples per channel so far.
    samples: u64,
    /// Whether the recording has ended.
    finished: bool,
    /// Clicks in time that were cut out, all channels together.
    pub clicks: usize,
    /// Blocks of a channel in which a noise with heavy tails was suppressed in time.
    pub heavy_tailed_blocks: usize,
}

/// Refuses a block of other than so many channels, of unequal length, or with samples that are not finite.
pub(super) fn check_block(block: &[&[f32]], expected: usize) -> Result<(), DenoiseError> {
    if block.len() != expected {
        return Err(DenoiseError::Channels { found: block.len(), expected });
    }
    let expected = block[0].len();
    for (channel, samples) in block.iter().enumerate() {
        let found = samples.len();
        if found != expected {
            Err(InvalidSignal::UnequalChannels { channel, found, expected })?;
        }
        if let Some(sample) = samples.iter().position(|x| !x.is_finite()) {
            Err(InvalidSignal::NotFinite { channel, sample, value: samples[sample] })?;
        }
    }
    Ok(())
}

#[derive(Clone)]
struct InputChannel {
    /// Samples that wait for a whole block.
    waiting: Vec<f32>,
    offset: Offset,
    analyser: Analyser,
    /// Frames that are complete.
    frames: Spectrogram,
}

impl FrontEnd {
    pub(super) fn new(sample_rate: u32, channels: usize, window_seconds: f64) -> Result<Self, DenoiseError> {
        check_recording(sample_rate, channels)?;
        let stft = Stft::new(sample_rate, window_seconds)?;
        let channel = || InputChannel {
            waiting: Vec::new(),
            offset: Offset::default(),
            analyser: stft.analyser(),
            frames: Spectrogram::new(stft.bins(), 0),
        };
        let channels = (0..channels).map(|_| channel()).collect();
        Ok(Self { channels, stft, samples: 0, finished: false, clicks: 0, heavy_tailed_blocks: 0 })
    }

    pub(super) fn stft(&self) -> &Stft {
        &self.stft
    }

    /// Samples of a block, per channel.
    pub(super) fn block_samples(&self) -> usize {
        BLOCK_FRAMES * self.stft.hop()
    }

    /// Samples per channel so far.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// Frames of every channel that are complete and were not taken.
    pub(super) fn frames(&self) -> usize {
        self.channels.first().map_or(0, |channel| channel.frames.frames())
    }

    /// The same frames, channel by channel.
    pub(super) fn spectrograms(&self) -> impl Iterator<Item = &Spectrogram> {
        self.channels.iter().map(|channel| &channel.frames)
    }

    /// Takes the first `frames` of every channel out.
    pub(super) fn take(&mut self, frames: usize) -> Vec<Spectrogram> {
        self.channels.iter_mut().map(|channel| channel.frames.split_front(frames)).collect()
    }

    /// Takes the next samples of every channel; [`next_block`](Self::next_block) makes frames of them.
    pub(super) fn push(&mut self, block: &[&[f32]]) -> Result<(), DenoiseError> {
        if self.finished {
            return Err(DenoiseError::Finished);
        }
        check_block(block, self.channels.len())?;
        self.samples += block[0].len() as u64;
        for (channel, samples) in self.channels.iter_mut().zip(block) {
            channel.waiting.extend(*samples);
        }
        Ok(())
    }

    /// Makes frames of the next block, if all of its samples are there.
    pub(super) fn next_block(&mut self) -> bool {
        let size = self.block_samples();
        let complete = self.channels.first().is_some_and(|channel| channel.waiting.len() >= size);
        if complete {
            self.analyse(size);
        }
        complete
    }

    /// Makes frames of the samples that still wait.
    pub(super) fn flush(&mut self) {
        let rest = self.channels.first().map_or(0, |channel| channel.waiting.len());
        self.analyse(rest);
    }

    /// The same, and of what overlaps the end of the recording, which is reached once.
    pub(super) fn finish(&mut self) -> Result<(), DenoiseError> {
        if std::mem::replace(&mut self.finished, true) {
            return Err(DenoiseError::Finished);
        }
        self.flush();
        for channel in &mut self.channels {
            let analyser = std::mem::replace(&mut channel.analyser, self.stft.analyser());
            analyser.finish(&mut channel.frames);
        }
        Ok(())
    }

    fn analyse(&mut self, samples: usize) {
        for channel in &mut self.channels {
            let (bounded, outliers) = remove_outliers(&channel.waiting[..samples]);
            self.clicks += outliers;
            let mut centred = bounded.into_owned();
            channel.offset.remove(&mut centred, self.stft.sample_rate());
            let (repaired, found) = repair(&centred, self.stft.sample_rate());
            match found {
                Impulses::None => {}
                Impulses::Clicks { count, .. } => self.clicks += count,
                Impulses::HeavyTails { .. } => self.heavy_tailed_blocks += 1,
            }
            if found != Impulses::None {
                tracing::info!(?found, "impulses were removed in time");
            }
            channel.analyser.push(&repaired, &mut channel.frames);
            channel.waiting.drain(..samples);
        }
    }
}
