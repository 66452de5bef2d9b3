//! Safetensors files with format name, version and header as metadata.

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// Name and version of a format.
pub(crate) struct Format {
    pub name: &'static str,
    pub version: u32,
}

/// Why bytes are not a model file of the expected format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorFileError {
    /// The bytes are not a complete safetensors file.
    #[error("not a safetensors file, or truncated: {0}")]
    Bytes(String),
    /// A safetensors file of another format.
    #[error("format is '{found}'; expected '{expected}'")]
    Format {
        /// The file's format; empty if it names none.
        found: String,
        /// The expected format.
        expected: &'static str,
    },
    /// The header is missing or invalid.
    #[error("header: {0}")]
    Header(String),
    /// Written by another version of the format.
    #[error("format version {found}; expected {expected}")]
    Version {
        /// The file's version.
        found: String,
        /// The supported version.
        expected: u32,
    },
    /// A tensor is missing.
    #[error("tensor '{0}' is missing")]
    Tensor(&'static str),
    /// A tensor has the wrong shape, or is not F32.
    #[error("tensor '{tensor}' has shape {found:?} ({dtype}); expected {expected:?} (F32)")]
    Shape {
        /// The tensor's name.
        tensor: &'static str,
        /// Shape in the file.
        found: Vec<usize>,
        /// Element type in the file.
        dtype: String,
        /// Expected shape.
        expected: Vec<usize>,
    },
}

impl From<safetensors::SafeTensorError> for TensorFileError {
    fn from(error: safetensors::SafeTensorError) -> Self {
        Self::Bytes(error.to_string())
    }
}

/// Reads the header and the tensors of a file.
pub(crate) fn read<'a, H: DeserializeOwned>(
    bytes: &'a [u8],
    format: &Format,
) -> Result<(H, SafeTensors<'a>), TensorFileError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes)?;
    let metadata = metadata.metadata().clone().unwrap_or_default();
    let text = |key: &str| metadata.get(key).cloned().unwrap_or_default();
    let (name, version) = (text("format"), text("version"));
    if name != format.name {
        return Err(TensorFileError::Format { found: name, expected: format.name });
    }
    if version != format.version.to_string() {
        return Err(TensorFileError::Version { found: version, expected: format.version });
    }
    let header =
        serde_json::from_str(&text("header")).map_err(|error| TensorFileError::Header(error.to_string()))?;
    Ok((header, SafeTensors::deserialize(bytes)?))
}

/// The values of the F32 tensor of this name and shape.
pub(crate) fn values(
    tensors: &SafeTensors,
    name: &'static str,
    shape: &[usize],
) -> Result<Vec<f32>, TensorFileError> {
    let tensor = tensors.tensor(name).map_err(|_| TensorFileError::Tensor(name))?;
    if tensor.dtype() == Dtype::F32 && tensor.shape() == shape {
        return Ok(floats(&tensor).collect());
    }
    let (found, dtype) = (tensor.shape().to_vec(), format!("{:?}", tensor.dtype()));
    Err(TensorFileError::Shape { tensor: name, found, dtype, expected: shape.to_vec() })
}

/// Order of the values of a layer with biases. The size of a tensor is equal in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// For each input, the weights to all outputs; then all biases.
    ByInput,
    /// For each output, the weights of all inputs, then its bias.
    ByOutput,
}

/// Reads the three layers of a small network, each with its biases, stored in `layout` and returned in
/// [`Layout::ByInput`]. `sizes` are the numbers of inputs, of hidden units of both layers, and of outputs.
pub(crate) fn three_layers(
    bytes: &[u8],
    format: &Format,
    layout: Layout,
    sizes: [usize; 4],
) -> Result<[Vec<f32>; 3], TensorFileError> {
    let (_, tensors): (IgnoredAny, _) = read(bytes, format)?;
    let layer = |name, at: usize| -> Result<Vec<f32>, TensorFileError> {
        let (rows, outputs) = (sizes[at] + 1, sizes[at + 1]);
        let found = values(&tensors, name, &[rows * outputs])?;
        Ok(match layout {
            Layout::ByInput => found,
            Layout::ByOutput => {
                (0..rows * outputs).map(|to| found[to % outputs * rows + to / outputs]).collect()
            }
        })
    };
    Ok([layer("first", 0)?, layer("second", 1)?, layer("third", 2)?])
}

/// The values of a tensor of type F32.
pub(crate) fn floats(tensor: &TensorView) -> impl Iterator<Item = f32> {
    let (values, _) = tensor.data().as_chunks::<4>();
    values.iter().map(|value| f32::from_le_bytes(*value))
}

/// The bytes of a file with F32 tensors, each with name and shape; equal contents give equal bytes.
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

/// Sorts the keys of a safetensors header, which the crate `safetensors` writes unsorted.
fn sort_header(bytes: &mut [u8]) {
    let Some((length, rest)) = bytes.split_first_chunk_mut::<8>() else { return };
    let length = u64::from_le_bytes(*length) as usize;
    let Some(header) = rest.get_mut(..length) else { return };
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(header) else { return };
    let sorted = value.to_string();
    if sorted.len() <= length {
        // The container pads its header with spaces.
        header.fill(b' ');
        header[..sorted.len()].copy_from_slice(sorted.as_bytes());
    }
}
