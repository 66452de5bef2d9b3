//! Errors of options, by the name of the option.

use super::Options;
use crate::denoiser::SettingsError;

/// Options that do not make a denoiser. In messages, names of options stand between backticks.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A value is out of its range, or of another type.
    #[error("`{name}` is {value}: expected {expected}")]
    Range {
        /// The option.
        name: &'static str,
        /// Its value.
        value: String,
        /// The values that it may have.
        expected: String,
    },
    /// A setting that no option names is out of its range, or an option has another name.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Two options exclude each other.
    #[error("`{name}` cannot be used with `{other}`: omit one of them")]
    Conflict {
        /// One of them.
        name: &'static str,
        /// The other.
        other: &'static str,
    },
    /// An option has no effect beside the others.
    #[error("`{name}` has no effect {context}: {remedy}")]
    NoEffect {
        /// The option.
        name: &'static str,
        /// Where it has none.
        context: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

/// The option that sets a field of [`Settings`](crate::Settings), by the field's path.
fn option_of(setting: &str) -> Option<&'static str> {
    Some(match setting {
        "em.iterations" => "em_iterations",
        "gain.dereverb" => "dereverb",
        "gain.floor_db" => "floor_db",
        "mix" => "mix",
        "model.alpha_noise" => "alpha_noise",
        "model.alpha_speech" => "alpha_speech",
        "model.noise.rank" => "noise_rank",
        "sampling.burn_in" => "burn_in",
        "sampling.iterations" => "iterations",
        "sampling.minibatch" => "minibatch",
        "sampling.positivity" => "positivity",
        "sampling.step_size" => "step_size",
        _ => return None,
    })
}

/// An error of the settings, by the name of the option that has led to it.
pub(super) fn by_option(error: SettingsError) -> OptionsError {
    renamed(option_of(error.name), error)
}

/// An error of an option, by its name.
pub(super) fn by_name(error: SettingsError) -> OptionsError {
    renamed(Options::names().iter().copied().find(|name| *name == error.name), error)
}

fn renamed(option: Option<&'static str>, error: SettingsError) -> OptionsError {
    match option {
        Some(name) => OptionsError::Range { name, value: error.value, expected: error.expected },
        None => error.into(),
    }
}
