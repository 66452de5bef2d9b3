//! Levels in decibels.

/// The level in dB of a ratio of powers.
pub(crate) fn decibels(power: f64) -> f64 {
    10.0 * libm::log10(power)
}

/// The ratio of powers of a level in dB.
pub(crate) fn power(level_db: f64) -> f64 {
    libm::pow(10.0, level_db / 10.0)
}

/// The factor of amplitude of a level in dB.
pub(crate) fn amplitude(level_db: f64) -> f32 {
    libm::pow(10.0, level_db / 20.0) as f32
}
