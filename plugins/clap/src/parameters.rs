//! Parameters for the host: values, texts, and the state saved with a project.

use alphamf::denoiser::LiveControls;
use alphamf_plugin::{FLOOR_DB, GAIN_EXPONENT, Knob, MIX};
use clack_extensions::params::{ParamInfo, ParamInfoFlags};
use clack_plugin::events::UnknownEvent;
use clack_plugin::events::spaces::CoreEventSpace;
use clack_plugin::utils::{ClapId, Cookie};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Unit of a displayed value.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Number,
    Decibels,
    Percent,
    Switch,
}

/// A parameter. Its index identifies it in saved projects: append new ones at the end.
pub struct Parameter {
    name: &'static str,
    /// Name in a saved state.
    key: &'static str,
    unit: Unit,
    knob: Knob,
    bypasses: bool,
}

const OFF: Knob = Knob { min: 0.0, max: 1.0, default: 0.0 };

const fn parameter(name: &'static str, key: &'static str, unit: Unit, knob: Knob) -> Parameter {
    Parameter { name, key, unit, knob, bypasses: false }
}

/// All parameters, by index.
pub static ALL: [Parameter; 5] = [
    parameter("Gain exponent", "strength", Unit::Number, GAIN_EXPONENT),
    parameter("Floor", "floor_db", Unit::Decibels, FLOOR_DB),
    parameter("Mix", "mix", Unit::Percent, MIX),
    Parameter { bypasses: true, ..parameter("Bypass", "bypass", Unit::Switch, OFF) },
    parameter("Learn noise", "learn_noise", Unit::Switch, OFF),
];

const GAIN_EXPONENT_AT: usize = 0;
const FLOOR_AT: usize = 1;
const MIX_AT: usize = 2;
const BYPASS_AT: usize = 3;
const LEARN_AT: usize = 4;

/// A saved state of another plugin or version.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignState(String);

impl ForeignState {
    /// Creates the error for an invalid line, with the start of the line.
    pub fn of(line: &str) -> Self {
        Self(line.chars().take(40).collect())
    }
}

impl fmt::Display for ForeignState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: expected a saved state of alphamf", self.0)
    }
}

impl std::error::Error for ForeignState {}

impl Parameter {
    /// Nearest value in range.
    fn near(&self, value: f64) -> f64 {
        let Knob { min, max, default } = self.knob;
        let value = if value.is_nan() { default.into() } else { value.clamp(min.into(), max.into()) };
        if self.unit == Unit::Switch { value.round() } else { value }
    }

    /// Writes a value with its unit.
    pub fn show(&self, value: f64, writer: &mut impl Write) -> fmt::Result {
        match self.unit {
            Unit::Number => write!(writer, "{value:.2}"),
            Unit::Decibels => write!(writer, "{value:.1} dB"),
            Unit::Percent => write!(writer, "{:.0} %", 100.0 * value),
            Unit::Switch => writer.write_str(if value < 0.5 { "Off" } else { "On" }),
        }
    }

    /// Parses a value typed by a user.
    pub fn read(&self, text: &str) -> Option<f64> {
        let text = text.trim().to_ascii_lowercase();
        let value = match (self.unit, text.as_str()) {
            (Unit::Switch, "on") => 1.0,
            (Unit::Switch, "off") => 0.0,
            (Unit::Decibels, text) => text.trim_end_matches("db").trim_end().parse().ok()?,
            (Unit::Percent, text) => text.trim_end_matches('%').trim_end().parse::<f64>().ok()? / 100.0,
            (_, text) => text.parse().ok()?,
        };
        (!value.is_nan()).then(|| self.near(value))
    }
}

/// Describes a parameter for the host.
pub fn info(index: u32) -> Option<ParamInfo<'static>> {
    let Parameter { name, unit, knob, bypasses, .. } = ALL.get(index as usize)?;
    let mut flags = ParamInfoFlags::IS_AUTOMATABLE;
    flags.set(ParamInfoFlags::IS_STEPPED, *unit == Unit::Switch);
    flags.set(ParamInfoFlags::IS_BYPASS, *bypasses);
    Some(ParamInfo {
        id: ClapId::new(index),
        flags,
        cookie: Cookie::empty(),
        name: name.as_bytes(),
        module: b"",
        min_value: knob.min.into(),
        max_value: knob.max.into(),
        default_value: knob.default.into(),
    })
}

/// Current values; any thread may read and change them.
pub struct Parameters([AtomicU64; ALL.len()]);

impl Default for Parameters {
    fn default() -> Self {
        Self(ALL.each_ref().map(|parameter| AtomicU64::new(f64::from(parameter.knob.default).to_bits())))
    }
}

impl Parameters {
    fn at(&self, index: usize) -> f64 {
        f64::from_bits(self.0[index].load(Ordering::Relaxed))
    }

    /// Value of a parameter, or `None` for an unknown id.
    pub fn get(&self, id: u32) -> Option<f64> {
        self.0.get(id as usize).map(|value| f64::from_bits(value.load(Ordering::Relaxed)))
    }

    /// Applies an event, if it sets a parameter.
    pub fn apply(&self, event: &UnknownEvent) {
        if let Some(CoreEventSpace::ParamValue(event)) = event.as_core_event()
            && let Some(index) = event.param_id().map(|id| id.get() as usize)
            && let (Some(value), Some(parameter)) = (self.0.get(index), ALL.get(index))
        {
            value.store(parameter.near(event.value()).to_bits(), Ordering::Relaxed);
        }
    }

    /// The controls of the denoiser.
    pub fn controls(&self) -> LiveControls {
        LiveControls {
            gain_exponent: self.at(GAIN_EXPONENT_AT) as f32,
            floor_db: self.at(FLOOR_AT) as f32,
            mix: self.at(MIX_AT) as f32,
            bypass: self.at(BYPASS_AT) > 0.5,
            ..LiveControls::default()
        }
    }

    /// Whether the noise is to be learned from the input.
    pub fn learning(&self) -> bool {
        self.at(LEARN_AT) > 0.5
    }

    /// Saved state: one line per value.
    pub fn state(&self) -> String {
        ALL.iter().enumerate().map(|(n, parameter)| format!("{} {}\n", parameter.key, self.at(n))).collect()
    }

    /// Restores a saved state, without its first line. Missing values get their default, unknown ones are ignored; an invalid
    /// state changes nothing.
    pub fn set_state<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Result<(), ForeignState> {
        let foreign = ForeignState::of;
        let mut values = ALL.each_ref().map(|parameter| f64::from(parameter.knob.default));
        for line in lines {
            let (key, value) = line.split_once(' ').ok_or_else(|| foreign(line))?;
            // A later version may save a text.
            let Some(index) = ALL.iter().position(|parameter| parameter.key == key) else { continue };
            values[index] = ALL[index].near(value.parse().map_err(|_| foreign(line))?);
        }
        let changed = self.0.iter().zip(values);
        changed.for_each(|(own, value)| own.store(value.to_bits(), Ordering::Relaxed));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for (index, value, text) in [
            (GAIN_EXPONENT_AT, 0.75, "0.75"),
            (FLOOR_AT, -20.0, "-20.0 dB"),
            (MIX_AT, 0.4, "40 %"),
            (BYPASS_AT, 1.0, "On"),
            (LEARN_AT, 0.0, "Off"),
        ] {
            let mut shown = String::new();
            ALL[index].show(value, &mut shown).unwrap();
            assert_eq!(shown, text);
            assert_eq!(ALL[index].read(text), Some(value));
        }
        assert_eq!(ALL[FLOOR_AT].read(" -80 DB "), Some(-60.0));
        assert_eq!(ALL[MIX_AT].read("50"), Some(0.5));
        assert_eq!(ALL[BYPASS_AT].read("on"), Some(1.0));
        for wrong in ["", "loud", "nan", "1 2"] {
            assert_eq!(ALL[GAIN_EXPONENT_AT].read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_invalid_state_changes_nothing() {
        let parameters = Parameters::default();
        let state = parameters.state();
        assert_eq!(state, "strength 1\nfloor_db -45\nmix 1\nbypass 0\nlearn_noise 0\n");
        let later = "mix 0.25\nfloor_db -1e9\nof_a_later_version 3\nmodel of 2027\n";
        parameters.set_state(later.lines()).unwrap();
        assert_eq!(parameters.get(MIX_AT as u32), Some(0.25));
        assert_eq!(parameters.get(FLOOR_AT as u32), Some(-60.0));
        for wrong in ["nonsense", "mix\n", "strength 2\nmix loud\n"] {
            assert!(parameters.set_state(wrong.lines()).is_err(), "{wrong}");
            assert_eq!(parameters.get(GAIN_EXPONENT_AT as u32), Some(1.0));
        }
        assert_eq!(ForeignState("x".into()).to_string(), "\"x\": expected a saved state of alphamf");
        parameters.set_state(state.lines()).unwrap();
        assert_eq!(parameters.controls(), LiveControls::default());
        assert!(!parameters.learning());
        assert_eq!(parameters.get(5), None);
    }
}
