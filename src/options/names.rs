//! Arguments of the program, by the names that serde reads.

use crate::fields;
use serde::Deserialize;
use serde::de::value::Error;

/// Reads an enum by the names that serde gives its variants.
pub(super) fn words<T>() -> impl clap::builder::TypedValueParser<Value = T>
where
    T: for<'a> Deserialize<'a> + Clone + Send + Sync + 'static,
{
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    use serde::de::value::StringDeserializer;
    PossibleValuesParser::new(fields::names::<T>())
        .try_map(|word| T::deserialize(StringDeserializer::<Error>::new(word)))
}

/// Reads a seed.
///
/// # Errors
/// A text that says what was expected.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}
