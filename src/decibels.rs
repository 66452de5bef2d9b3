//! Levels in decibels.

/// Converts a ratio of powers to a level in dB.
pub(crate) fn decibels(power: f64) -> f64 {
    10.0 * libm::log10(power)
}

/// Converts a level in dB to a ratio of powers.
pub(crate) fn power(level_db: f64) -> f64 {
    libm::pow(10.0, level_db / 10.0)
}

/// Converts a level in dB to an amplitude factor.
pub(crate) fn amplitude(level_db: f64) -> f32 {
    libm::pow(10.0, level_db / 20.0) as f32
}
