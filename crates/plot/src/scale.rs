//! Scales of frequency.

/// Lower end of a logarithmic scale, Hz.
const MIN_HERTZ: f64 = 50.0;

/// Frequency scale of a spectrogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrequencyScale {
    /// Linear, from 0 Hz.
    #[default]
    Linear,
    /// Mel scale (perceived pitch), from 0 Hz: `2595 log10(1 + f / 700)`.
    Mel,
    /// Logarithmic, from 50 Hz.
    Log,
}

impl FrequencyScale {
    /// Position of a frequency in Hz, 0 at the bottom to 1 at `highest_hertz`; negative below the lower end.
    #[must_use]
    pub fn fraction(self, hertz: f64, highest_hertz: f64) -> f64 {
        let mel = |hertz: f64| (1.0 + hertz / 700.0).ln();
        match self {
            Self::Linear => hertz / highest_hertz,
            Self::Mel => mel(hertz) / mel(highest_hertz),
            Self::Log => {
                (hertz.max(1e-3) / MIN_HERTZ).ln() / (highest_hertz.max(2.0 * MIN_HERTZ) / MIN_HERTZ).ln()
            }
        }
    }

    /// The frequency at a position, Hz: the inverse of [`fraction`](Self::fraction).
    #[must_use]
    pub fn hertz(self, fraction: f64, highest_hertz: f64) -> f64 {
        match self {
            Self::Linear => fraction * highest_hertz,
            Self::Mel => 700.0 * ((fraction * (1.0 + highest_hertz / 700.0).ln()).exp() - 1.0),
            Self::Log => MIN_HERTZ * (highest_hertz.max(2.0 * MIN_HERTZ) / MIN_HERTZ).powf(fraction),
        }
    }

    /// Frequencies to label, kHz, ascending, at most about `most`.
    #[must_use]
    pub fn ticks(self, highest_hertz: f64, most: usize) -> Vec<f64> {
        const OCTAVES: [f64; 10] = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        let highest = highest_hertz / 1000.0;
        if self == Self::Linear {
            let step = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
                .into_iter()
                .find(|step| highest / step < most as f64)
                .unwrap_or(32.0);
            return (0..=(highest / step + 1e-9) as usize).map(|i| i as f64 * step).collect();
        }
        let mut ticks: Vec<f64> = Vec::new();
        let mut last = f64::NEG_INFINITY;
        for kilohertz in OCTAVES {
            let place = self.fraction(1000.0 * kilohertz, highest_hertz);
            if (0.0..=1.0 + 1e-9).contains(&place) && place - last >= 1.0 / most as f64 {
                ticks.push(kilohertz);
                last = place;
            }
        }
        ticks
    }
}
