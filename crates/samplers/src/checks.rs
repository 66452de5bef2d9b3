//! Checks of settings.

use super::SamplerError;

/// Refuses a value of which `holds` is false.
pub(super) fn check(
    name: &'static str,
    value: f64,
    expected: &'static str,
    holds: bool,
) -> Result<(), SamplerError> {
    if holds { Ok(()) } else { Err(SamplerError::Setting { name, value, expected }) }
}

/// Refuses numbers that are not finite, zero and negative ones.
pub(super) fn check_positive(name: &'static str, value: f64) -> Result<(), SamplerError> {
    check(name, value, "a finite number above 0", value.is_finite() && value > 0.0)
}

/// Refuses numbers that are not finite, and negative ones.
pub(super) fn check_from_zero(name: &'static str, value: f64) -> Result<(), SamplerError> {
    check(name, value, "a finite number from 0", value.is_finite() && value >= 0.0)
}

/// Refuses an acceptance probability that no step reaches.
pub(super) fn check_acceptance(name: &'static str, acceptance: f64) -> Result<(), SamplerError> {
    check(name, acceptance, "in (0, 1)", acceptance > 0.0 && acceptance < 1.0)
}

/// Refuses a setting that does not go with another, or with a sampler.
pub(super) fn check_combination(
    setting: &'static str,
    with: &'static str,
    holds: bool,
) -> Result<(), SamplerError> {
    if holds { Ok(()) } else { Err(SamplerError::Incompatible { setting, with }) }
}

pub(super) fn check_shape(dimension: usize, blocks: usize) -> Result<(), SamplerError> {
    check("dimension", dimension as f64, "at least 1", dimension > 0)?;
    check("number of blocks", blocks as f64, "at least 1", blocks > 0)
}
