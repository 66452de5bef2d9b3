//! Sample types of the measures.

use std::borrow::Cow;

/// A kind of sample that the measures take: `f32` or `f64`.
pub trait Sample: Copy + sealed::Sealed {
    /// The samples in double precision, borrowed if they are `f64`.
    fn widen(samples: &[Self]) -> Cow<'_, [f64]>;
}

impl Sample for f32 {
    fn widen(samples: &[Self]) -> Cow<'_, [f64]> {
        samples.iter().copied().map(f64::from).collect()
    }
}

impl Sample for f64 {
    fn widen(samples: &[Self]) -> Cow<'_, [f64]> {
        Cow::Borrowed(samples)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}
