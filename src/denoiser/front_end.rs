//! Front end from samples to frames: repair and short-time Fourier transform, for streams and noise profiles.

use super::DenoiseError;
use crate::repair::{Declipper, Hum, ImpulseRepair, Impulses, Offset, Outliers};
use crate::signal::{InvalidSignal, check_recording};
use crate::transform::{Analyser, Spectrogram, Stft};

/// Frames per block; impulses are detected block by block.
pub(super) const BLOCK_FRAMES: usize = 512;

/// Collects samples into blocks at fixed positions of the recording, removes constant offset, hum and impulses, and transforms
/// them to frames. The frames do not depend on how the samples are divided into pushes.
#[derive(Clone)]
pub(super) struct FrontEnd {
    stft: Stft,
    channels: Vec<InputChannel>,
    /// Factor applied to all samples.
    scale: f32,
    /// Samples per channel so far.
    samples: u64,
    /// Whether the recording has ended.
    finished: bool,
    /// Removed time-domain clicks, summed over channels.
    pub clicks: usize,
    /// Blocks, summed over channels, in which heavy-tailed noise was suppressed in time.
    pub heavy_tailed_blocks: usize,
}

/// Checks that a block has `expected` channels of equal length and finite samples.
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
    /// Samples waiting for a complete block, after the first `taken` samples, which are transformed.
    waiting: Vec<f32>,
    taken: usize,
    /// `None` if the samples are not repaired.
    repair: Option<Repair>,
    analyser: Analyser,
    /// Complete frames.
    frames: Spectrogram,
}

/// Removal of outliers, offset, hum and impulses from a channel, and restoration of clipped samples.
#[derive(Clone)]
struct Repair {
    /// `None` unless clipped samples are restored.
    declipper: Option<Declipper>,
    /// Number of restored samples.
    restored: usize,
    outliers: Outliers,
    offset: Offset,
    hum: Hum,
    impulses: ImpulseRepair,
    /// Removed hum that has not been returned.
    removed_hum: Vec<f32>,
}

impl Repair {
    /// Repairs the next samples. Returns them, the number of runs of outliers, and the detected impulses.
    fn repaired(&mut self, samples: &[f32], sample_rate: u32) -> (Vec<f32>, usize, Impulses) {
        let (bounded, outliers) = self.outliers.remove(samples);
        let mut centred = bounded.into_owned();
        if let Some(declipper) = &mut self.declipper {
            self.restored += declipper.restore(&mut centred, sample_rate);
        }
        self.offset.remove(&mut centred, sample_rate);
        let with_hum = centred.clone();
        let tones = self.hum.remove(&mut centred);
        self.removed_hum.extend(with_hum.iter().zip(&centred).map(|(with, without)| with - without));
        if tones > 0 {
            tracing::info!(tones, "removed hum");
        }
        let (repaired, found) = self.impulses.repair(&centred, sample_rate);
        if found != Impulses::None {
            tracing::info!(?found, "removed time-domain impulses");
        }
        (repaired.into_owned(), outliers, found)
    }
}

impl FrontEnd {
    pub(super) fn new(sample_rate: u32, channels: usize, window_seconds: f64) -> Result<Self, DenoiseError> {
        check_recording(sample_rate, channels)?;
        let stft = Stft::new(sample_rate, window_seconds)?;
        let hum = Hum::new(sample_rate)?;
        let repair = Repair {
            declipper: None,
            restored: 0,
            outliers: Outliers::default(),
            offset: Offset::default(),
            hum,
            impulses: ImpulseRepair::default(),
            removed_hum: Vec::new(),
        };
        let channel = || InputChannel {
            waiting: Vec::new(),
            taken: 0,
            repair: Some(repair.clone()),
            analyser: stft.analyser(),
            frames: Spectrogram::new(stft.bins(), 0),
        };
        let channels = (0..channels).map(|_| channel()).collect();
        Ok(Self {
            channels,
            stft,
            scale: 1.0,
            samples: 0,
            finished: false,
            clicks: 0,
            heavy_tailed_blocks: 0,
        })
    }

    /// Restores clipped samples from now on, at `scale` times the level of the input.
    pub(super) fn restore_clipped(&mut self, scale: f32) {
        self.scale = scale;
        for repair in self.channels.iter_mut().filter_map(|channel| channel.repair.as_mut()) {
            repair.declipper.get_or_insert_default();
        }
    }

    /// Restored samples, summed over channels.
    pub(super) fn restored(&self) -> usize {
        self.channels.iter().filter_map(|channel| channel.repair.as_ref()).map(|repair| repair.restored).sum()
    }

    /// Disables repair from now on, for samples that have been repaired before.
    pub(super) fn skip_repair(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.repair = None);
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

    /// Number of complete frames per channel that have not been removed.
    pub(super) fn frames(&self) -> usize {
        self.channels.first().map_or(0, |channel| channel.frames.frames())
    }

    /// The complete frames that have not been removed, channel by channel.
    pub(super) fn spectrograms(&self) -> impl Iterator<Item = &Spectrogram> {
        self.channels.iter().map(|channel| &channel.frames)
    }

    /// Removes and returns the first `frames` of every channel.
    pub(super) fn take(&mut self, frames: usize) -> Vec<Spectrogram> {
        self.channels.iter_mut().map(|channel| channel.frames.split_front(frames)).collect()
    }

    /// Returns the hum removed from every channel since the last call; empty without repair.
    pub(super) fn take_hum(&mut self) -> Vec<Vec<f32>> {
        let repairs = self.channels.iter_mut().filter_map(|channel| channel.repair.as_mut());
        repairs.map(|repair| std::mem::take(&mut repair.removed_hum)).collect()
    }

    /// Adds the next samples of every channel; [`next_block`](Self::next_block) transforms them.
    pub(super) fn push(&mut self, block: &[&[f32]]) -> Result<(), DenoiseError> {
        if self.finished {
            return Err(DenoiseError::Finished);
        }
        check_block(block, self.channels.len())?;
        self.samples += block[0].len() as u64;
        for (channel, samples) in self.channels.iter_mut().zip(block) {
            channel.waiting.drain(..std::mem::take(&mut channel.taken));
            channel.waiting.extend(samples.iter().map(|x| self.scale * x));
        }
        Ok(())
    }

    /// Transforms the next block, if it is complete.
    pub(super) fn next_block(&mut self) -> bool {
        let size = self.block_samples();
        let complete = self.waiting() >= size;
        if complete {
            self.analyse(size);
        }
        complete
    }

    /// Transforms the waiting samples.
    pub(super) fn flush(&mut self) {
        self.analyse(self.waiting());
    }

    /// Number of waiting samples per channel.
    fn waiting(&self) -> usize {
        self.channels.first().map_or(0, |channel| channel.waiting.len() - channel.taken)
    }

    /// Ends the recording: transforms the waiting samples, and completes the frames that overlap the end.
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
            let input = &channel.waiting[channel.taken..][..samples];
            if let Some(repair) = &mut channel.repair {
                let (repaired, outliers, found) = repair.repaired(input, self.stft.sample_rate());
                self.clicks += outliers;
                match found {
                    Impulses::None => {}
                    Impulses::Clicks { count, .. } => self.clicks += count,
                    Impulses::HeavyTails { .. } => self.heavy_tailed_blocks += 1,
                }
                channel.analyser.push(&repaired, &mut channel.frames);
            } else {
                channel.analyser.push(input, &mut channel.frames);
            }
            channel.taken += samples;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The front end after a recording at 8 kHz in pushes of `length` samples.
    fn analysed(recording: &[f32], length: usize) -> FrontEnd {
        let mut front_end = FrontEnd::new(8_000, 1, 0.064).unwrap();
        for samples in recording.chunks(length) {
            front_end.push(&[samples]).unwrap();
            while front_end.next_block() {}
        }
        front_end.finish().unwrap();
        front_end
    }

    #[test]
    fn samples_that_were_repaired_before_stay() {
        let recording: Vec<f32> = (0..60_000_u16).map(|n| 0.2 + 0.1 * (f32::from(n) * 0.3).sin()).collect();
        let mut front_end = FrontEnd::new(8_000, 1, 0.064).unwrap();
        front_end.skip_repair();
        front_end.push(&[&recording]).unwrap();
        front_end.finish().unwrap();
        let frames = front_end.stft().analyse(&recording);
        assert!(front_end.spectrograms().all(|found| found.as_slice() == frames.as_slice()));
        assert!(front_end.take_hum().is_empty());
        // With repair, offset and tone are removed.
        let repaired = analysed(&recording, recording.len());
        assert!(repaired.spectrograms().all(|found| found.as_slice() != frames.as_slice()));
    }

    #[test]
    fn the_last_block_has_the_evidence_of_those_before() {
        // A gliding tone, which is not hum.
        let tone = |n: u16| 0.03 * (f32::from(n) * 0.16 + 40.0 * (f32::from(n) * 0.001).sin()).sin();
        let mut recording: Vec<f32> = (0..48_000).chain(0..48_000).map(tone).collect();
        recording[500..].iter_mut().step_by(2_667).for_each(|x| *x = 1.0);
        let whole = analysed(&recording, recording.len());
        assert_eq!(whole.clicks, 36, "3 clicks a second, in the last 3.8 s as well");
        let pieces = analysed(&recording, 7_001);
        assert_eq!(pieces.clicks, 36);
        assert!(whole.spectrograms().zip(pieces.spectrograms()).all(|(a, b)| a.as_slice() == b.as_slice()));
        // The last block of this recording has 50 samples.
        recording.truncate(BLOCK_FRAMES * 128 + 50);
        let sound = analysed(&recording, recording.len()).clicks;
        let end = recording.len() - 3;
        recording[end..].fill(1e9);
        let damaged = analysed(&recording, recording.len());
        assert_eq!(damaged.clicks, sound + 1, "one run of outliers");
        assert!(damaged.spectrograms().all(|frames| frames.as_slice().iter().all(|x| x.norm() < 100.0)));
    }
}
