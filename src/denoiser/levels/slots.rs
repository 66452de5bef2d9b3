//! Mean squares in third octaves and slots, by ideal filters.
//!
//! Windows of 64 slots, 32 apart, are transformed as a whole. The inverse transform of the bins of one band, at the
//! lowest sufficient number of samples, gives the power of that band over time. Within the middle 32 slots this power
//! is that of one transform of the whole signal, except for the filters' responses beyond 1.6 s.

use alphamf_fourier::{ComplexToReal, RealToComplex};
use num_complex::Complex;
use std::f64::consts::PI;
use std::ops::Range;
use std::sync::Arc;

/// Lengths of a window, of its advance, and of each of its faded edges, slots.
const WINDOW: usize = 64;
const ADVANCE: usize = 32;
const EDGE: usize = (WINDOW - ADVANCE) / 2;
/// Minimum number of samples of a band's power per slot.
const MIN_SLOT_SAMPLES: usize = 32;

/// Computes the mean squares of one signal as its samples arrive.
pub(crate) struct SlotBank {
    plan: Arc<SlotPlan>,
    /// Samples from the start of the next window.
    waiting: Vec<f32>,
    /// Index of the next window, and number of samples so far.
    window: u64,
    samples: u64,
    /// Mean squares of finished slots that have not been removed, the bands of a slot contiguous.
    pub(crate) rows: Vec<f64>,
}

/// Transforms and bands of all signals of one sample rate.
pub(crate) struct SlotPlan {
    slot_samples: f64,
    forward: Arc<dyn RealToComplex<f32>>,
    taper: Vec<f32>,
    bands: Vec<Band>,
}

/// One band: its bins in the transform of a window, and the inverse transform of them alone.
struct Band {
    bins: Range<usize>,
    inverse: Arc<dyn ComplexToReal<f32>>,
}

impl SlotPlan {
    /// A plan for slots of `seconds` at this sample rate, and bands with these edges.
    pub(crate) fn new(sample_rate: u32, seconds: f64, edges_hertz: &[f64]) -> Self {
        let slot_samples = f64::from(sample_rate) * seconds;
        let length = (((WINDOW as f64 * slot_samples).round() as usize).div_ceil(2) * 2).max(2);
        let bin_hertz = f64::from(sample_rate) / length as f64;
        let first_bin = |hertz: f64| ((hertz / bin_hertz).ceil() as usize).min(length / 2);
        let band = |edges: &[f64]| {
            let bins = first_bin(edges[0])..first_bin(edges[1]);
            // The power varies at up to twice the width of the band.
            let samples = (bins.len() + 2).div_ceil(WINDOW / 2).next_power_of_two().max(MIN_SLOT_SAMPLES);
            Band { bins, inverse: alphamf_fourier::inverse(WINDOW * samples) }
        };
        let edge = length * EDGE / WINDOW;
        let fade = |n: usize| 0.5 - 0.5 * libm::cos(PI * (n as f64 + 0.5) / edge as f64);
        let taper = |n: usize| fade(n.min(length - 1 - n).min(edge - 1)) as f32;
        Self {
            slot_samples,
            forward: alphamf_fourier::forward(length),
            taper: (0..length).map(taper).collect(),
            bands: edges_hertz.windows(2).map(band).collect(),
        }
    }

    /// The first sample of a slot.
    fn start(&self, slot: u64) -> u64 {
        (slot as f64 * self.slot_samples).round() as u64
    }
}

impl SlotBank {
    pub(crate) fn new(plan: Arc<SlotPlan>) -> Self {
        let waiting = vec![0.0; plan.start(EDGE as u64) as usize];
        Self { plan, waiting, window: 0, samples: 0, rows: Vec::new() }
    }

    /// Adds the next samples.
    pub(crate) fn push(&mut self, samples: &[f32]) {
        self.samples += samples.len() as u64;
        self.waiting.extend(samples);
        while self.waiting.len() >= self.plan.taper.len() {
            self.end_window();
        }
    }

    /// Ends the signal after `samples` samples and `slots` slots. Missing samples count as zero; surplus samples are
    /// removed.
    pub(crate) fn finish(&mut self, samples: u64, slots: u64) {
        let surplus = self.samples.saturating_sub(samples) as usize;
        self.waiting.truncate(self.waiting.len().saturating_sub(surplus));
        while self.window * (ADVANCE as u64) < slots {
            self.waiting.resize(self.plan.taper.len(), 0.0);
            self.end_window();
        }
        // The last slot may be shorter.
        let bands = self.plan.bands.len();
        let done = self.window * ADVANCE as u64;
        self.rows.truncate(self.rows.len().saturating_sub((done - slots) as usize * bands));
        let (start, end) = (self.plan.start(slots.saturating_sub(1)), self.plan.start(slots));
        let part = (end - start) as f64 / samples.min(end).saturating_sub(start).max(1) as f64;
        let last = self.rows.len().saturating_sub(bands);
        self.rows[last..].iter_mut().for_each(|square| *square *= part);
    }

    /// Computes the mean squares of the middle slots of the next window.
    fn end_window(&mut self) {
        let plan = &self.plan;
        let length = plan.taper.len();
        let mut samples: Vec<f32> = self.waiting.iter().zip(&plan.taper).map(|(x, w)| x * w).collect();
        let mut spectrum = plan.forward.make_output_vec();
        let transformed = plan.forward.process(&mut samples, &mut spectrum);
        debug_assert!(transformed.is_ok(), "all lengths come from the plan");
        let bands = plan.bands.len();
        let first = self.rows.len();
        self.rows.resize(first + ADVANCE * bands, 0.0);
        for (k, band) in plan.bands.iter().enumerate() {
            let powers = band.powers(&spectrum, length);
            for (row, square) in self.rows[first..].chunks_exact_mut(bands).zip(powers) {
                row[k] = square;
            }
        }
        let start = |window: u64| plan.start(window * ADVANCE as u64 + EDGE as u64);
        let advance = (start(self.window + 1) - start(self.window)) as usize;
        self.waiting.drain(..advance.min(length));
        self.window += 1;
    }
}

impl Band {
    /// The mean square of the band in each of the middle slots of a window of `length` samples with this spectrum.
    fn powers(&self, spectrum: &[Complex<f32>], length: usize) -> [f64; ADVANCE] {
        let mut squares = vec![0.0_f64; self.inverse.len()];
        // The real and the imaginary part of the analytic signal.
        for turn in [Complex::new(1.0, 0.0), Complex::new(0.0, -1.0)] {
            let (mut part, mut samples) = (self.inverse.make_input_vec(), self.inverse.make_output_vec());
            let bins = part[1..].iter_mut().zip(&spectrum[self.bins.clone()]);
            bins.for_each(|(to, from)| *to = from * turn);
            let transformed = self.inverse.process(&mut part, &mut samples);
            debug_assert!(transformed.is_ok(), "all lengths come from the plan");
            squares.iter_mut().zip(samples).for_each(|(sum, x)| *sum += f64::from(x).powi(2));
        }
        let slot = self.inverse.len() / WINDOW;
        let scale = 0.5 / (length as f64).powi(2) / slot as f64;
        std::array::from_fn(|k| {
            let at = (EDGE + k) * slot;
            // The trapezoidal rule, as samples lie on the edges of slots.
            let ends = 0.5 * (squares[at + slot] - squares[at]);
            scale * (squares[at..at + slot].iter().sum::<f64>() + ends)
        })
    }
}
