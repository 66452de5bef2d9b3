//! Resampling by any ratio, which may vary, from any start time.
//!
//! The asynchronous resamplers of rubato (5.1) work in chunks, start at whole frames and report their delay in whole
//! frames. Joined takes need fractions of a frame, and live output needs single frames, as input arrives.

use std::f64::consts::PI;

/// Interpolator of frames by a windowed sinc.
pub struct Resampler<const CHANNELS: usize> {
    /// Weights of the frames around a time, for each of `PHASES + 1` fractions of a frame.
    weights: Vec<Vec<f32>>,
    frames: Vec<[f32; CHANNELS]>,
    /// Time since the middle frame, in frames.
    at: f64,
}

/// Taps for the whole band; a fraction of the band needs proportionally more.
const TAPS: usize = 32;
const PHASES: usize = 256;

impl<const CHANNELS: usize> Resampler<CHANNELS> {
    /// Creates a resampler that passes a fraction of the band, above 0.
    pub fn new(band: f64) -> Self {
        let cutoff = if band < 1.0 { 0.92 * band } else { 1.0 };
        let taps = TAPS * (1.0 / band).ceil().max(1.0) as usize;
        let weights = |phase: usize| {
            let middle = (taps / 2 - 1) as f64 + phase as f64 / PHASES as f64;
            let weight = |tap: usize| {
                let time = tap as f64 - middle;
                // Blackman window over all taps.
                let turn = 2.0 * PI * time / taps as f64;
                let window = 0.42 + 0.5 * turn.cos() + 0.08 * (2.0 * turn).cos();
                let x = PI * cutoff * time;
                window * cutoff * if x.abs() < 1e-9 { 1.0 } else { x.sin() / x }
            };
            let weights: Vec<f64> = (0..taps).map(weight).collect();
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| (weight / sum) as f32).collect()
        };
        Self { weights: (0..=PHASES).map(weights).collect(), frames: vec![[0.0; CHANNELS]; taps], at: 0.0 }
    }

    /// Starts at this time, 0 or more, in frames after the first that will be pulled.
    pub fn start_at(&mut self, time: f64) {
        // The middle frame is the last at or before the time.
        self.at = time + (self.frames.len() / 2 + 1) as f64;
    }

    /// Upper bound of the number of frames that the next `count` calls with this `step` pull. It is at most `step` + 2
    /// too high.
    pub fn wants(&self, step: f64, count: usize) -> usize {
        (self.at + step * count as f64) as usize + 1
    }

    /// Returns the next frame, and advances by `step` input frames; `None` if input is missing.
    pub fn next(
        &mut self,
        step: f64,
        mut pull: impl FnMut() -> Option<[f32; CHANNELS]>,
    ) -> Option<[f32; CHANNELS]> {
        while self.at >= 1.0 {
            let frame = pull()?;
            self.frames.rotate_left(1);
            if let Some(last) = self.frames.last_mut() {
                *last = frame;
            }
            self.at -= 1.0;
        }
        let place = self.at * PHASES as f64;
        let (phase, fraction) = (place as usize, place.fract() as f32);
        let (before, after) = (&self.weights[phase], &self.weights[phase + 1]);
        let mut sum = [0.0; CHANNELS];
        for ((frame, &before), &after) in self.frames.iter().zip(before).zip(after) {
            let weight = before + fraction * (after - before);
            sum.iter_mut().zip(frame).for_each(|(sum, value)| *sum += weight * value);
        }
        self.at += step;
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lower_rate_cannot_hold_is_left_out() {
        // Relative to the lower rate, 0.54, just above its half, and 0.72.
        for tone in [0.18, 0.24] {
            let mut resampler = Resampler::<1>::new(1.0 / 3.0);
            let mut time = 0.0;
            let mut pull = || {
                time += 1.0;
                Some([(std::f64::consts::TAU * tone * time).sin() as f32])
            };
            let found: Vec<f32> =
                (0..200).filter_map(|_| resampler.next(3.0, &mut pull)).map(|[x]| x).collect();
            assert!(found[50..].iter().all(|x| x.abs() < 2e-3), "{tone}: {found:?}");
        }
    }

    #[test]
    fn a_tone_is_itself_at_other_times() {
        let tone = |time: f64| (0.3 * time).sin();
        for (start, step) in [(0.0, 1.0), (2.75, 1.0), (40.5, 1.0001), (7.0, 0.9), (3.0, 0.17), (60.0, 3.0)] {
            let mut resampler = Resampler::<1>::new(1.0 / f64::max(1.0, step));
            resampler.start_at(start);
            let wanted = resampler.wants(step, 300);
            let (mut pulled, mut compared) = (0, 0);
            for n in 0..300 {
                let [found] = resampler
                    .next(step, || {
                        pulled += 1;
                        Some([tone(f64::from(pulled - 1)) as f32])
                    })
                    .unwrap();
                let time = start + step * f64::from(n);
                // Before the first frame there is silence, which half of the taps reach.
                if time > (resampler.frames.len() / 2) as f64 {
                    assert!((f64::from(found) - tone(time)).abs() < 1e-4, "{start} {step} {n}: {found}");
                    compared += 1;
                }
            }
            assert!(compared > 200, "{start} {step}: {compared}");
            let spare = f64::from(wanted as u32) - f64::from(pulled);
            assert!((0.0..=step + 2.0).contains(&spare), "{start} {step}: {wanted} for {pulled}");
        }
    }
}
