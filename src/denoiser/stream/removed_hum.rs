//! Hum that was removed from the input, of which the output keeps the minimum gain.

/// The hum of the channels, from the first sample on that the output has not had yet.
pub(super) struct RemovedHum {
    channels: Vec<Vec<f32>>,
    /// Samples per channel before these.
    start: u64,
    /// Minimum gain.
    floor: f32,
}

impl RemovedHum {
    pub(super) fn new(channels: usize, floor: f32) -> Self {
        Self { channels: vec![Vec::new(); channels], start: 0, floor }
    }

    /// Appends what was removed from the next samples of every channel.
    pub(super) fn push(&mut self, hum: Vec<Vec<f32>>) {
        self.channels.iter_mut().zip(hum).for_each(|(channel, hum)| channel.extend(hum));
    }

    /// Its mean square in the frame of `window` samples before sample `end`, in the mean over the channels.
    pub(super) fn mean_square(&self, window: usize, end: u64) -> f64 {
        let at = |sample: u64| sample.saturating_sub(self.start) as usize;
        let frame = at(end.saturating_sub(window as u64))..at(end);
        let squares = self.channels.iter().flat_map(|hum| {
            let frame = frame.start.min(hum.len())..frame.end.min(hum.len());
            hum[frame].iter().map(|&x| f64::from(x).powi(2))
        });
        squares.sum::<f64>() / (window * self.channels.len()) as f64
    }

    /// The power of what is left relative to what was removed.
    pub(super) fn power_left(&self) -> f64 {
        f64::from(self.floor).powi(2)
    }

    /// Adds what is left of it to the speech of every channel, from the first sample of the hum on.
    pub(super) fn add(&self, speech: &mut [Vec<f32>]) {
        for (samples, hum) in speech.iter_mut().zip(&self.channels) {
            samples.iter_mut().zip(hum).for_each(|(sample, hum)| *sample += self.floor * hum);
        }
    }

    /// Removes the first samples of every channel.
    pub(super) fn skip(&mut self, samples: usize) {
        self.start += samples as u64;
        for hum in &mut self.channels {
            hum.drain(..samples.min(hum.len()));
        }
    }
}
