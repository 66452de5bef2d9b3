//! Vector and matrix kernels.

pub(crate) mod convolution;
pub(crate) mod packed_matrix;
pub(crate) mod products;
#[cfg(any(target_family = "wasm", test))]
mod small_products;
pub(crate) mod vector;
