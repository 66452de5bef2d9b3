#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![forbid(unsafe_code)]

use std::sync::Arc;

#[cfg(not(target_family = "wasm"))]
use realfft::RealFftPlanner;
pub use realfft::{ComplexToReal, FftError, RealToComplex};

#[cfg(any(target_family = "wasm", test))]
mod small;

/// A kind of sample: `f32` or `f64`.
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
                #[cfg(not(target_family = "wasm"))]
                return RealFftPlanner::new().plan_fft_forward(length);
                #[cfg(target_family = "wasm")]
                return Arc::new(small::Real::new(length));
            }
            #[inline(never)]
            fn plan_inverse(length: usize) -> Arc<dyn ComplexToReal<Self>> {
                #[cfg(not(target_family = "wasm"))]
                return RealFftPlanner::new().plan_fft_inverse(length);
                #[cfg(target_family = "wasm")]
                return Arc::new(small::Real::new(length));
            }
        }
    };
}

sample!(f32);
sample!(f64);

/// The transform of `length` samples (at least one) into `length / 2 + 1` bins, not scaled.
#[must_use]
pub fn forward<T: Sample>(length: usize) -> Arc<dyn RealToComplex<T>> {
    T::plan_forward(length)
}

/// The transform of `length / 2 + 1` bins into `length` samples (at least one), not scaled: `length` times the
/// inverse of [`forward`].
#[must_use]
pub fn inverse<T: Sample>(length: usize) -> Arc<dyn ComplexToReal<T>> {
    T::plan_inverse(length)
}
