//! Safetensors files with a format's name, its version and a header as metadata.

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What kind of file.
pub(crate) struct Format {
    pub name: &'static str,
    pub version: u32,
}

/// Why some bytes are not a file of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorFileError {
    /// The bytes are not a whole safetensors file.
    #[error("not a safetensors file, or a truncated one: {0}")]
    Bytes(String),
    /// A safetensors file of something else.
    #[error("the metadata lacks a valid '{0}'")]
    Metadata(&'static str),
    /// Written by another version of the format.
    #[error("format version {found}; this program reads version {expected}")]
    Version {
        /// The file's version.
        found: String,
        /// The one that is read.
        expected: u32,
    },
}

impl From<safetensors::SafeTensorError> for TensorFileError {
    fn from(error: safetensors::SafeTensorError) -> Self {
        Self::Bytes(error.to_string())
    }
}

/// The header and the tensors of a file.
pub(crate) fn read<'a, H: DeserializeOwned>(
    bytes: &'a [u8],
    format: &Format,
) -> Result<(H, SafeTensors<'a>), TensorFileError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes)?;
    let metadata = metadata.metadata().clone().unwrap_or_default();
    if metadata.get("format").map(String::as_str) != Some(format.name) {
        return Err(TensorFileError::Metadata("format"));
    }
    let version = metadata.get("version").cloned().unwrap_or_default();
    if version != format.version.to_string() {
        return Err(TensorFileError::Version { found: version, expected: format.version });
    }
    let header = metadata
        .get("header")
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or(TensorFileError::Metadata("header"))?;
    Ok((header, SafeTensors::deserialize(bytes)?))
}

/// The values of a tensor of type F32.
pub(crate) fn floats(tensor: &TensorView) -> impl Iterator<Item = f32> {
    let (values, _) = tensor.data().as_chunks::<4>();
    values.iter().map(|value| f32::from_le_bytes(*value))
}

/// The bytes of a file with tensors of type F32, each with its name and shape; equal contents give equal bytes.
pub(crate) fn write<H: Serialize>(
    format: &Format,
    header: &H,
    tensors: &[(&str, Vec<usize>, &[f32])],
) -> Result<Vec<u8>, TensorFileError> {
    let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let data: Vec<Vec<u8>> = tensors.iter().map(|(_, _, values)| bytes(values)).collect();
    let views = tensors.iter().zip(&data).map(|((name, shape, _), data)| {
        TensorView::new(Dtype::F32, shape.clone(), data).map(|view| (*name, view))
    });
    let views = views.collect::<Result<Vec<_>, _>>()?;
    let header = serde_json::to_string(header).map_err(|error| TensorFileError::Bytes(error.to_string()))?;
    let metadata = [
        ("format".to_owned(), format.name.to_owned()),
        ("version".to_owned(), format.version.to_string()),
        ("header".to_owned(), header),
    ];
    let mut bytes = safetensors::serialize(views, Some(metadata.into_iter().collect()))?;
    sort_header(&mut bytes);
    Ok(bytes)
}

/// Puts the keys of a safetensors header in order, which its writer does not.
fn sort_header(bytes: &mut [u8]) {
    let Some((length, rest)) = bytes.split_first_chunk_mut::<8>() else { return };
    let length = u64::from_le_bytes(*length) as usize;
    let Some(header) = rest.get_mut(..length) else { return };
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(header) else { return };
    let sorted = value.to_string();
    if sorted.len() <= length {
        // The container pads its header by spaces.
        header.fill(b' ');
        header[..sorted.len()].copy_from_slice(sorted.as_bytes());
    }
}
