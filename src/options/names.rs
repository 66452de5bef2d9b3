//! Names of fields and variants, as serde reads them.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Names of a struct's fields or an enum's variants, in order of declaration.
pub(super) fn of<T: for<'a> Deserialize<'a>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Reads nothing: the names come with the request.
    let _ = T::deserialize(Names(&mut names));
    names
}

/// Keeps the names that a type asks to be read by.
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

/// Reads an enum by the names that serde gives its variants.
#[cfg(feature = "clap")]
pub(super) fn words<T>() -> impl clap::builder::TypedValueParser<Value = T>
where
    T: for<'a> Deserialize<'a> + Clone + Send + Sync + 'static,
{
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    use serde::de::value::StringDeserializer;
    PossibleValuesParser::new(of::<T>())
        .try_map(|word| T::deserialize(StringDeserializer::<Error>::new(word)))
}

/// Reads a seed.
///
/// # Errors
/// A text that says what was expected.
#[cfg(feature = "clap")]
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}
