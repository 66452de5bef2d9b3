//! The second pass over the channels of an array.

use super::array_floor::ArrayFloor;
use super::{DenoiseStream, Output};
use crate::array::LinearFilter;
use crate::denoiser::block::Separator;
use crate::denoiser::{DenoiseError, append};
use crate::repair::MAX_AMPLITUDE;
use crate::signal::progress::ProgressCallback;
use crate::transform::{Analyser, Spectrogram, Stft};
use crate::wiener::NORMAL_FLOOR_DB;
use std::sync::Arc;

/// Window of the linear filter, s; it spans most room echoes.
const WINDOW_SECONDS: f64 = 0.256;
/// Number of frames filtered at a time, a quarter of a window apart: 12 s.
const FRAMES: usize = 187;

/// Filters the channels linearly towards the speech estimate of the first pass, and denoises the result. The result has
/// less noise than any channel, so the network detects more of the voice in it.
pub(super) struct SecondPass {
    stft: Stft,
    inputs: Channels,
    /// Speech in each channel by the first pass.
    found: Channels,
    filter: LinearFilter,
    /// Number of frames, 0 or 1, kept from the last block as neighbours of the next.
    kept: usize,
    filtered: Output,
    /// Samples so far.
    samples: u64,
    /// Stream that denoises the filtered signal.
    pub stream: Box<DenoiseStream>,
}

/// Transform of channels from samples to frames.
struct Channels {
    analysers: Vec<Analyser>,
    frames: Vec<Spectrogram>,
}

impl Channels {
    fn new(stft: &Stft, channels: usize) -> Self {
        Self {
            analysers: (0..channels).map(|_| stft.analyser()).collect(),
            frames: vec![Spectrogram::new(stft.bins(), 0); channels],
        }
    }

    fn push(&mut self, samples: &[Vec<f32>]) {
        for ((analyser, frames), samples) in self.analysers.iter_mut().zip(&mut self.frames).zip(samples) {
            let limited: Vec<f32> =
                samples.iter().map(|sample| sample.clamp(-MAX_AMPLITUDE, MAX_AMPLITUDE)).collect();
            analyser.push(&limited, frames);
        }
    }

    /// Completes the frames that overlap the end.
    fn finish(&mut self) {
        for (analyser, frames) in self.analysers.drain(..).zip(&mut self.frames) {
            analyser.finish(frames);
        }
    }

    /// Number of waiting frames.
    fn waiting(&self) -> usize {
        self.frames[0].frames()
    }

    fn remove(&mut self, frames: usize) {
        self.frames.iter_mut().for_each(|channel| drop(channel.split_front(frames)));
    }
}

impl SecondPass {
    pub(super) fn new(
        separator: Arc<Separator>,
        sample_rate: u32,
        channels: usize,
    ) -> Result<Self, DenoiseError> {
        let stft = Stft::new(sample_rate, WINDOW_SECONDS)?;
        let floor_db = separator.settings.gain.floor_db;
        let mut stream = Box::new(DenoiseStream::new(separator, sample_rate, channels)?);
        stream.front_end.skip_repair();
        stream.passes_clean_blocks = false;
        // At the default minimum gain, noise is inaudible after either pass.
        stream.array_floor =
            (floor_db > NORMAL_FLOOR_DB).then(|| ArrayFloor::new(stream.stft().bins(), channels, floor_db));
        Ok(Self {
            inputs: Channels::new(&stft, channels),
            found: Channels::new(&stft, channels),
            filter: LinearFilter::new(channels, stft.grid()),
            kept: 0,
            filtered: Output::new(&stft, channels),
            samples: 0,
            stream,
            stft,
        })
    }

    /// Maximum number of samples that have been pushed and not returned.
    pub(super) fn latency(&self) -> usize {
        // The last complete frame waits for the next one.
        FRAMES * self.stft.hop() + self.stft.window() + self.stream.latency()
    }

    /// Adds the next frames of every microphone, which the first pass has finished.
    pub(super) fn push_frames(&mut self, spectra: &[Spectrogram]) {
        if let Some(array_floor) = &mut self.stream.array_floor {
            array_floor.push(spectra);
        }
    }

    /// Filters and denoises the next samples of every channel towards the speech `found` by the first pass. Returns the
    /// finished samples.
    pub(super) fn push(
        &mut self,
        inputs: &[Vec<f32>],
        found: &[Vec<f32>],
        progress: &mut dyn ProgressCallback,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.samples += inputs[0].len() as u64;
        self.inputs.push(inputs);
        self.found.push(found);
        // The filter also uses the frame after the last filtered one.
        while self.inputs.waiting() > self.kept + FRAMES {
            self.filter(FRAMES);
        }
        self.denoise_filtered(progress)
    }

    /// Ends the recording and returns the remaining samples.
    pub(super) fn finish(
        &mut self,
        progress: &mut dyn ProgressCallback,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.inputs.finish();
        self.found.finish();
        let rest = self.inputs.waiting() - self.kept;
        if rest > 0 {
            self.filter(rest);
        }
        self.filtered.finish(&self.stft, self.samples);
        let mut speech = self.denoise_filtered(progress)?;
        append(&mut speech, self.stream.finish(progress, None)?);
        Ok(speech)
    }

    /// Filters the next `frames` frames.
    fn filter(&mut self, frames: usize) {
        let end = self.kept + frames;
        self.filtered.push(&self.filter.filter(&self.inputs.frames, &self.found.frames, self.kept..end));
        self.inputs.remove(end - 1);
        self.found.remove(end - 1);
        self.kept = 1;
    }

    fn denoise_filtered(
        &mut self,
        progress: &mut dyn ProgressCallback,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        let filtered = self.filtered.take();
        let filtered: Vec<&[f32]> = filtered.iter().map(Vec::as_slice).collect();
        self.stream.push(&filtered, progress)
    }
}
