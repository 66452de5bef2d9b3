#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod double;

use double::Double;
use realfft::RealFftPlanner;
pub use realfft::{ComplexToReal, FftError, RealToComplex};
use rustfft::FftDirection;
use std::sync::Arc;

/// A type of samples: `f32` or `f64`.
pub trait Sample: realfft::FftNum {
    /// See [`forward`].
    fn plan_forward(length: usize) -> Arc<dyn RealToComplex<Self>>;
    /// See [`inverse`].
    fn plan_inverse(length: usize) -> Arc<dyn ComplexToReal<Self>>;
}

impl Sample for f32 {
    #[inline(never)]
    fn plan_forward(length: usize) -> Arc<dyn RealToComplex<Self>> {
        RealFftPlanner::new().plan_fft_forward(length)
    }

    #[inline(never)]
    fn plan_inverse(length: usize) -> Arc<dyn ComplexToReal<Self>> {
        RealFftPlanner::new().plan_fft_inverse(length)
    }
}

// Metrics and diagnostics alone need it, and nobody waits for them: the kernels for each processor would take half a
// megabyte of every program.
impl Sample for f64 {
    #[inline(never)]
    fn plan_forward(length: usize) -> Arc<dyn RealToComplex<Self>> {
        Arc::new(Double::new(length, FftDirection::Forward))
    }

    #[inline(never)]
    fn plan_inverse(length: usize) -> Arc<dyn ComplexToReal<Self>> {
        Arc::new(Double::new(length, FftDirection::Inverse))
    }
}

/// The transform of `length` samples (at least one) to `length / 2 + 1` bins, not scaled.
#[must_use]
pub fn forward<T: Sample>(length: usize) -> Arc<dyn RealToComplex<T>> {
    T::plan_forward(length)
}

/// The transform of `length / 2 + 1` bins to `length` samples (at least one), not scaled: `length` times the inverse of
/// [`forward`].
///
/// The imaginary parts of the first bin and, of an even length, of the last have no effect. With `f32`, one that is not zero is
/// reported after the transform, as [`FftError::InputValues`]; with `f64` it is not.
#[must_use]
pub fn inverse<T: Sample>(length: usize) -> Arc<dyn ComplexToReal<T>> {
    T::plan_inverse(length)
}
