//! Checks of settings.

use super::SamplerError;

/// Returns an error for the setting `name` unless `holds`.
pub(super) fn check(
    name: &'static str,
    value: f64,
    expected: &'static str,
    holds: bool,
) -> Result<(), SamplerError> {
    if holds { Ok(()) } else { Err(SamplerError::Setting { name, value, expected }) }
}

/// Returns an error unless `value` is finite and above 0.
pub(super) fn check_positive(name: &'static str, value: f64) -> Result<(), SamplerError> {
    check(name, value, "a finite number above 0", value.is_finite() && value > 0.0)
}

/// Returns an error unless `value` is finite and at least 0.
pub(super) fn check_from_zero(name: &'static str, value: f64) -> Result<(), SamplerError> {
    check(name, value, "a finite number from 0", value.is_finite() && value >= 0.0)
}

/// Returns an error unless `acceptance` is in (0, 1).
pub(super) fn check_acceptance(name: &'static str, acceptance: f64) -> Result<(), SamplerError> {
    check(name, acceptance, "in (0, 1)", acceptance > 0.0 && acceptance < 1.0)
}

/// Returns an error unless `holds`: `setting` cannot be combined with `with`, a sampler or another setting.
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
