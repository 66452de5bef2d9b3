//! Fields and variants by name, as serde reads them.

use crate::range::SettingsError;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Deserialize, Serialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

/// Replaces fields of `whole` by those of a JSON object; `kind` is the word for a field in errors. The error for an
/// unknown field lists all names except the `unlisted`.
///
/// # Errors
/// If the text is not an object, or a field has an unknown name or a wrong type. The message contains no terms of Rust.
pub(crate) fn with_json<T: Serialize + DeserializeOwned>(
    whole: &T,
    kind: &'static str,
    unlisted: &[&str],
    json: &str,
) -> Result<T, SettingsError> {
    let all = serde_json::to_value(whole).unwrap_or_default();
    let error = |all: &Value| read::<T>(all).err().map(|error| error.to_string());
    let all = merged(all, names::<T>(), unlisted, &error, kind, json)?;
    read(&all).map_err(|error| SettingsError {
        name: kind,
        value: json.to_owned(),
        expected: error.to_string(),
    })
}

/// Deserialises all fields; compiled once, as it is large.
#[inline(never)]
fn read<T: DeserializeOwned>(all: &Value) -> serde_json::Result<T> {
    T::deserialize(all)
}

/// Replaces fields by those of a JSON object; `error` returns the error of deserialising the fields. Compiled once for
/// all types.
fn merged(
    mut all: Value,
    names: &'static [&'static str],
    unlisted: &[&str],
    error: &dyn Fn(&Value) -> Option<String>,
    kind: &'static str,
    json: &str,
) -> Result<Value, SettingsError> {
    let refused = |name, value, expected| Err(SettingsError { name, value, expected });
    let Ok(given) = serde_json::from_str::<Map<String, Value>>(json) else {
        return refused(kind, json.to_owned(), "a JSON object of names and values".to_owned());
    };
    for (name, value) in given {
        let Some(name) = names.iter().copied().find(|known| *known == name) else {
            let listed: Vec<&str> = names.iter().copied().filter(|name| !unlisted.contains(name)).collect();
            return refused(kind, name, listed.join(", "));
        };
        let text = serde_json::to_string(&value).unwrap_or_default();
        all[name] = value;
        if error(&all).is_some() {
            // No field accepts an empty text, so the error states the expected type.
            all[name] = Value::String(String::new());
            return refused(name, text, expected(&error(&all).unwrap_or_default()));
        }
    }
    Ok(all)
}

/// Translates the type that serde expects for users.
fn expected(error: &str) -> String {
    match error.split_once("expected ").map_or("", |(_, expected)| expected) {
        "f32" | "f64" => "a number".to_owned(),
        "u64" => format!("a whole number from 0 to {}", u64::MAX),
        "usize" => "a whole number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        words => words.replace('`', ""),
    }
}

/// Names of a struct's fields or an enum's variants, in order of declaration.
pub(crate) fn names<T: for<'a> Deserialize<'a>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Deserialises no value: serde passes the names with its request.
    let _ = T::deserialize(Names(&mut names));
    names
}

/// Deserializer that stores the names of the fields or variants that a type requests.
struct Names<'a>(&'a mut &'static [&'static str]);

impl Names<'_> {
    fn keep<T>(self, names: &'static [&'static str]) -> Result<T, Error> {
        *self.0 = names;
        Err(Error::custom("names alone"))
    }
}

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.keep(fields)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.keep(variants)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.keep(&[])
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use crate::Options;
    use crate::denoiser::LiveControls;

    #[test]
    fn errors_name_the_field_in_words_for_users() {
        for (json, message) in [
            (r#"{"strength": "gentle", "mix": "0.8"}"#, r#"`mix` is "0.8": expected a number"#),
            (r#"{"floor_db": true}"#, "`floor_db` is true: expected a number"),
            (r#"{"strength": "weak"}"#, r#"`strength` is "weak": expected one of gentle, normal, strong"#),
            (r#"{"quality": 1}"#, "`quality` is 1: expected normal or fast"),
            (r#"{"method": ""}"#, r#"`method` is "": expected published"#),
            (r#"{"seed": -1}"#, "`seed` is -1: expected a whole number from 0 to 18446744073709551615"),
            (r#"{"iterations": 1.5}"#, "`iterations` is 1.5: expected a whole number"),
            (r#"{"no_neural": 1}"#, "`no_neural` is 1: expected true or false"),
            ("[]", "option is []; expected a JSON object of names and values"),
        ] {
            assert_eq!(Options::from_json(json).unwrap_err().to_string(), message);
        }
        let unknown = Options::from_json(r#"{"colour": 1}"#).unwrap_err().to_string();
        assert!(unknown.starts_with("option is colour; expected quality, purpose, "), "{unknown}");
        let controls = LiveControls { mix: 0.25, ..LiveControls::default() };
        for (json, message) in [
            (r#"{"bypass": 1}"#, "bypass is 1; expected true or false"),
            (r#"{"mix": null}"#, "mix is null; expected a number"),
            (r#"{"mix": 1, "floor_db": [0]}"#, "floor_db is [0]; expected a number"),
        ] {
            assert_eq!(controls.with_json(json).unwrap_err().to_string(), message);
        }
        let unknown = controls.with_json(r#"{"colour": 1}"#).unwrap_err().to_string();
        assert!(unknown.starts_with("control is colour; expected gain_exponent, floor_db, "), "{unknown}");
    }

    #[test]
    fn an_unknown_field_is_answered_with_those_that_are_listed() {
        let controls = LiveControls::default();
        let expected = |unlisted: &[&str]| {
            super::with_json(&controls, "control", unlisted, r#"{"colour": 1}"#).unwrap_err().expected
        };
        let all = super::names::<LiveControls>();
        assert_eq!(expected(&[]), all.join(", "));
        assert_eq!(expected(&["gain_exponent"]), all[1..].join(", "));
        // Unlisted fields are still accepted.
        assert!(super::with_json(&controls, "control", &["mix"], r#"{"mix": 0.5}"#).is_ok());
    }

    #[test]
    fn fields_that_are_not_given_stay() {
        let controls = LiveControls { mix: 0.3, ..LiveControls::default() };
        let changed = controls.with_json(r#"{"floor_db": -20, "bypass": true}"#).unwrap();
        assert_eq!(changed, LiveControls { floor_db: -20.0, bypass: true, ..controls });
        assert_eq!(controls.with_json("{}").unwrap(), controls);
        let options = Options::from_json(r#"{"mix": 0.3, "seed": 18446744073709551615}"#).unwrap();
        assert_eq!((options.mix, options.seed), (Some(0.3), Some(u64::MAX)));
        let changed = options.with_json(r#"{"seed": 1, "quality": "fast"}"#).unwrap();
        assert_eq!((changed.mix, changed.seed, changed.given().len()), (Some(0.3), Some(1), 3));
    }
}
