//! The [`Target`] trait: shape, gradient, potential and optional capabilities of a posterior.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::Range;

use num_traits::{Float, NumAssign};
use rand_distr::{Distribution, StandardNormal};

use crate::random::SeededRng;

/// The floating-point types that a state can have.
pub trait Real: Float + NumAssign + Sum + Default + Debug + Send + Sync + 'static {
    /// The nearest representable value.
    fn narrow(value: f64) -> Self;
    /// The same value in double precision.
    fn widen(self) -> f64;
    /// A draw from the standard normal distribution.
    fn normal(stream: &mut SeededRng) -> Self;
}

impl Real for f32 {
    fn narrow(value: f64) -> Self {
        value as f32
    }
    fn widen(self) -> f64 {
        f64::from(self)
    }
    fn normal(stream: &mut SeededRng) -> Self {
        StandardNormal.sample(stream)
    }
}

impl Real for f64 {
    fn narrow(value: f64) -> Self {
        value
    }
    fn widen(self) -> f64 {
        self
    }
    fn normal(stream: &mut SeededRng) -> Self {
        StandardNormal.sample(stream)
    }
}

/// Data terms of a stochastic gradient: all of them, or a subsample drawn with replacement.
#[derive(Debug, Clone, Copy)]
pub struct Minibatch<'a> {
    indices: Option<&'a [usize]>,
    terms: usize,
}

impl<'a> Minibatch<'a> {
    /// Creates a minibatch of all `terms` data terms.
    #[must_use]
    pub fn full(terms: usize) -> Self {
        Self { indices: None, terms }
    }

    /// Creates a minibatch of the terms `indices` (at least one, each below `terms`, repeats allowed) out of `terms`.
    ///
    /// # Panics
    /// If there are no indices.
    #[must_use]
    pub fn subsample(indices: &'a [usize], terms: usize) -> Self {
        assert!(!indices.is_empty(), "a subsample of no terms");
        Self { indices: Some(indices), terms }
    }

    /// The chosen terms, or `None` for all of them.
    #[must_use]
    pub fn indices(&self) -> Option<&'a [usize]> {
        self.indices
    }

    /// The factor `N / N_Omega` that makes a sum over the chosen terms an unbiased estimate of the whole sum.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.indices.map_or(1.0, |indices| self.terms as f64 / indices.len() as f64)
    }

    /// The chosen terms one by one.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<'a> {
        let all = if self.indices.is_none() { 0..self.terms } else { 0..0 };
        all.chain(self.indices.unwrap_or_default().iter().copied())
    }
}

/// A posterior density proportional to `exp(-U(theta))`.
///
/// The state `theta` is `dimension x blocks`, column-major. Blocks are independent given the rest of the target: `U` is a sum
/// of one potential per block. A target may change between two steps of a sampler (a Gibbs sweep redraws auxiliary
/// variables), but not within one.
pub trait Target<T: Real> {
    /// Number of unknowns in each block.
    fn dimension(&self) -> usize;

    /// Number of independent blocks.
    fn blocks(&self) -> usize {
        1
    }

    /// Number of data terms that a minibatch chooses from (the same choice serves every block).
    fn terms(&self) -> usize {
        1
    }

    /// Whether the density is folded, as by [`Mirrored`](crate::Mirrored). Its slope reverses at the fold, where the
    /// energy error of a step is unbounded and does not indicate divergence.
    fn is_folded(&self) -> bool {
        false
    }

    /// Writes the gradient of `U`, estimated on `batch`, into `gradient` (`dimension x blocks`).
    fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]);

    /// Writes `U` of every block, up to a constant, into `potential`. Infinite outside the support.
    fn potential(&mut self, theta: &[T], potential: &mut [f64]);

    /// Writes potential and gradient on all data terms; override if computing both together is cheaper.
    fn evaluate(&mut self, theta: &[T], potential: &mut [f64], gradient: &mut [T]) {
        let terms = self.terms();
        self.potential(theta, potential);
        self.gradient(theta, Minibatch::full(terms), gradient);
    }

    /// Whether the target stays the same between steps, so that a sampler may keep a gradient from one step to the next.
    /// False unless overridden.
    fn is_fixed(&self) -> bool {
        false
    }

    /// The metric of Riemannian samplers, where the target has one.
    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        None
    }

    /// The second derivatives along each coordinate, where the target has them.
    fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
        None
    }

    /// The single-site view of the target, where it has one.
    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        None
    }
}

/// Implements [`Target`] for a pointer to a target.
macro_rules! pointer_to_target {
    ($pointer:ty) => {
        impl<T: Real, G: Target<T> + ?Sized> Target<T> for $pointer {
            fn dimension(&self) -> usize {
                (**self).dimension()
            }
            fn blocks(&self) -> usize {
                (**self).blocks()
            }
            fn terms(&self) -> usize {
                (**self).terms()
            }
            fn is_folded(&self) -> bool {
                (**self).is_folded()
            }
            fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
                (**self).gradient(theta, batch, gradient);
            }
            fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
                (**self).potential(theta, potential);
            }
            fn evaluate(&mut self, theta: &[T], potential: &mut [f64], gradient: &mut [T]) {
                (**self).evaluate(theta, potential, gradient);
            }
            fn is_fixed(&self) -> bool {
                (**self).is_fixed()
            }
            fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
                (**self).metric()
            }
            fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
                (**self).curvature()
            }
            fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
                (**self).sites()
            }
        }
    };
}

pointer_to_target!(&mut G);
pointer_to_target!(Box<G>);

/// Positive definite metric `G(theta)`: the expected Fisher information plus the negative Hessian of the log prior, or any
/// other.
pub trait Metric<T: Real> {
    /// Whether `G` is diagonal; then only its diagonal is exchanged.
    fn is_diagonal(&self) -> bool;

    /// Writes `G(theta)` of every block: `dimension x blocks` if diagonal, else `dimension^2 x blocks`.
    fn metric(&mut self, theta: &[T], metric: &mut [T]);

    /// Whether `G` is the same everywhere, so that its divergence vanishes.
    fn is_constant(&self) -> bool {
        false
    }

    /// Writes `Gamma_i = sum_j d/dtheta_j D_ij` of every block (`dimension x blocks`) and returns true, or
    /// returns false if it cannot; samplers then take differences of the metric. `D` is `G^-1` if `inverse`,
    /// else `R'` with `R R' = G^-1`: `G^-1/2` for a diagonal metric, `L^-1` of the Cholesky factor of a dense one.
    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        let _ = (theta, inverse, divergence);
        false
    }
}

/// The diagonal of the Hessian of `U`.
pub trait Curvature<T: Real> {
    /// Writes the second derivative of `U` along every coordinate, estimated on `batch` (`dimension x blocks`).
    fn hessian_diagonal(&mut self, theta: &[T], batch: Minibatch<'_>, diagonal: &mut [T]);
}

/// Set of values of a site.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Support {
    /// Any real vector.
    Real,
    /// One positive number.
    HalfLine,
    /// Positive numbers that add up to one.
    Simplex,
    /// One number in an open interval.
    Interval {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// One of the integers from 0 to below this count, at least 1.
    Discrete(usize),
}

impl Support {
    /// Whether a number of a site may have the value `x`.
    pub(super) fn holds(self, x: f64) -> bool {
        match self {
            Self::Real => x.is_finite(),
            Self::HalfLine | Self::Simplex => x.is_finite() && x > 0.0,
            Self::Interval { low, high } => low < x && x < high,
            Self::Discrete(count) => x >= 0.0 && x < count as f64 && x == libm::trunc(x),
        }
    }
}

/// Group of coordinates that a single-site sampler moves together.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// The coordinates, as rows of the state.
    pub rows: Range<usize>,
    /// Their set of values.
    pub support: Support,
}

/// The single-site view of a target: its potential and first two derivatives with respect to one site.
pub trait Sites<T: Real> {
    /// Number of sites. Together they cover every coordinate.
    fn count(&self) -> usize;

    /// Site number `index`. A half-line, interval or discrete site has one row.
    fn site(&self, index: usize) -> Site;

    /// Writes, for every block, the potential, its gradient and its Hessian with respect to the rows of site `index`
    /// (`rows x blocks` and `rows^2 x blocks`), holding all else fixed. The potential may omit terms that do not depend
    /// on the site. For a discrete site only the potential is used, at each value in turn.
    fn expand(
        &mut self,
        theta: &[T],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    );
}
