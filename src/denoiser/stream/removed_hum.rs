//! Hum removed from the input, which the output keeps at the minimum gain.

/// The removed hum of every channel, from the first sample that has not been output.
pub(super) struct RemovedHum {
    channels: Vec<Vec<f32>>,
    /// Number of samples per channel before the stored hum.
    start: u64,
    /// Minimum gain.
    floor: f32,
}

impl RemovedHum {
    pub(super) fn new(channels: usize, floor: f32) -> Self {
        Self { channels: vec![Vec::new(); channels], start: 0, floor }
    }

    /// Appends the hum removed from the next samples of every channel.
    pub(super) fn push(&mut self, hum: Vec<Vec<f32>>) {
        self.channels.iter_mut().zip(hum).for_each(|(channel, hum)| channel.extend(hum));
    }

    /// Mean square of the hum in the frame of `window` samples before sample `end`, averaged over channels.
    pub(super) fn mean_square(&self, window: usize, end: u64) -> f64 {
        let at = |sample: u64| sample.saturating_sub(self.start) as usize;
        let frame = at(end.saturating_sub(window as u64))..at(end);
        let squares = self.channels.iter().flat_map(|hum| {
            let frame = frame.start.min(hum.len())..frame.end.min(hum.len());
            hum[frame].iter().map(|&x| f64::from(x).powi(2))
        });
        squares.sum::<f64>() / (window * self.channels.len()) as f64
    }

    /// Ratio of the power of hum in the output to that of the removed hum.
    pub(super) fn kept_power_fraction(&self) -> f64 {
        f64::from(self.floor).powi(2)
    }

    /// Adds the hum at the minimum gain to the speech of every channel, from the first stored sample on.
    pub(super) fn add(&self, speech: &mut [Vec<f32>]) {
        for (samples, hum) in speech.iter_mut().zip(&self.channels) {
            samples.iter_mut().zip(hum).for_each(|(sample, hum)| *sample += self.floor * hum);
        }
    }

    /// Discards the hum of the next `samples` samples of every channel.
    pub(super) fn skip(&mut self, samples: usize) {
        self.start += samples as u64;
        for hum in &mut self.channels {
            hum.drain(..samples.min(hum.len()));
        }
    }
}
