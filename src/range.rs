//! Checks of the ranges of settings.

use std::fmt;
use std::ops::RangeInclusive;

/// A setting out of its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {value}; expected {expected}")]
pub struct SettingsError {
    /// Name of the setting.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The values that it may have.
    pub expected: String,
}

/// Checks that a value lies in its range; a NaN does not.
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

/// Checks that a value is above 0 and at most so large.
pub(crate) fn positive(name: &'static str, value: f64, most: f64) -> Result<(), SettingsError> {
    if value > 0.0 && value <= most {
        return Ok(());
    }
    Err(SettingsError { name, value: short(value), expected: format!("more than 0, and {most} at most") })
}

/// A number as it is written by hand: not with hundreds of digits.
fn short<T: fmt::Display + fmt::LowerExp>(value: T) -> String {
    const DIGITS: usize = 20;
    let text = value.to_string();
    if text.len() > DIGITS { format!("{value:e}") } else { text }
}
