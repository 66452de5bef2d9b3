//! Vector and matrix kernels.

pub(crate) mod convolution;
pub(crate) mod products;
pub(crate) mod vector;
