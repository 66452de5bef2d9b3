#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![forbid(unsafe_code)]

use realfft::RealFftPlanner;
pub use realfft::{ComplexToReal, FftError, RealToComplex};
use std::sync::Arc;

/// A type of samples: `f32` or `f64`.
pub trait Sample: realfft::FftNum {
    /// See [`forward`].
    fn plan_forward(length: usize) -> Arc<dyn RealToComplex<Self>>;
    /// See [`inverse`].
    fn plan_inverse(length: usize) -> Arc<dyn ComplexToReal<Self>>;
}

macro_rules! sample {
    ($kind:ty) => {
        impl Sample for $kind {
            #[inline(never)]
            fn plan_forward(length: usize) -> Arc<dyn RealToComplex<Self>> {
                RealFftPlanner::new().plan_fft_forward(length)
            }
            #[inline(never)]
            fn plan_inverse(length: usize) -> Arc<dyn ComplexToReal<Self>> {
                RealFftPlanner::new().plan_fft_inverse(length)
            }
        }
    };
}

sample!(f32);
sample!(f64);

/// The transform of `length` samples (at least one) to `length / 2 + 1` bins, not scaled.
#[must_use]
pub fn forward<T: Sample>(length: usize) -> Arc<dyn RealToComplex<T>> {
    T::plan_forward(length)
}

/// The transform of `length / 2 + 1` bins to `length` samples (at least one), not scaled: `length` times the inverse of
/// [`forward`].
#[must_use]
pub fn inverse<T: Sample>(length: usize) -> Arc<dyn ComplexToReal<T>> {
    T::plan_inverse(length)
}
