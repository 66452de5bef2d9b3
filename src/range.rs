//! Range checks of settings.

use std::fmt;
use std::ops::RangeInclusive;

/// A setting out of range, or without effect.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {value}; expected {expected}")]
pub struct SettingsError {
    /// The setting, by its path in the settings: `sampling.step_size`.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The expected values.
    pub expected: String,
}

/// Checks that a value lies in `range`; NaN does not.
pub(crate) fn within<T: PartialOrd + fmt::Display + fmt::LowerExp>(
    name: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), SettingsError> {
    if range.contains(&value) {
        return Ok(());
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(SettingsError { name, value: short(value), expected })
}

/// Checks that a value is above 0 and at most `most`.
pub(crate) fn positive(name: &'static str, value: f64, most: f64) -> Result<(), SettingsError> {
    if value > 0.0 && value <= most {
        return Ok(());
    }
    Err(SettingsError { name, value: short(value), expected: format!("more than 0, and {most} at most") })
}

/// Formats a number in at most 20 characters, or in exponent form.
fn short<T: fmt::Display + fmt::LowerExp>(value: T) -> String {
    const DIGITS: usize = 20;
    let text = value.to_string();
    if text.len() > DIGITS { format!("{value:e}") } else { text }
}
