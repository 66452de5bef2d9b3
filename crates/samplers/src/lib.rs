//! Gradient and curvature samplers for any posterior.
//!
//! A posterior is a [`Target`]: its shape, its gradient on a minibatch of data, its potential. A [`Sampler`] moves a
//! state of `dimension x blocks` numbers; blocks are independent, with their own memory and seeds. [`Chain`] checks
//! that sampler and target match, and runs the loop. [`SamplerKind`] builds a sampler by name, with a
//! [warm-up](Preconditioned) that suits targets of any scale. [`sample`] runs several chains and
//! [warns](SampleResult::warnings) of unreliable draws.
//!
//! ```
//! use alphamf_samplers::random::SeedTree;
//! use alphamf_samplers::{SamplerKind, SamplerOptions, Schedule, from_fn, sample};
//! # fn main() -> Result<(), alphamf_samplers::SamplerError> {
//! let target = from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
//!     gradient.copy_from_slice(&[theta[0], 1e6 * theta[1]]);
//!     0.5 * theta[0].powi(2) + 0.5e6 * theta[1].powi(2)
//! });
//! let starts = [vec![-2.0, 1.0], vec![2.0, 1.0], vec![-2.0, -1.0], vec![2.0, -1.0]];
//! let result = sample(&target, &starts, Schedule::default(), SeedTree::new(7), |streams| {
//!     SamplerKind::Nuts.build::<f64>(2, 1, &SamplerOptions::default(), streams)
//! })?;
//! assert!(result.warnings().is_empty());
//! assert!((result.parameters[1].deviation / 1e-3 - 1.0).abs() < 0.1);
//! # Ok(())
//! # }
//! ```
//!
//! # Which sampler
//!
//! In doubt, use [`Nuts`]. If only minibatch gradients are affordable, use [`Hamcmc`], [`Sghmc`] or [`Sgld`]; if second
//! derivatives are cheap, [`Newtonian`]. The column *exact* describes the stationary distribution. "Yes" means the
//! target at any step size. "As the step falls" means that the bias goes to zero with the step ([`StepSize`]) and that
//! minibatches are allowed. This requires a target with a smooth gradient of bounded slope; for other targets, see
//! [`Mirrored`]. The page of each sampler gives its source, cost and bias, and where not to use it.
//!
//! | sampler | name | needs | exact | use it where |
//! |---|---|---|---|---|
//! | [`Nuts`] | `nuts` | potential | yes | in doubt |
//! | [`Hmc`] | `hmc` | potential | yes | the trajectory length is known |
//! | [`HmcBfgs`] | `hmc-bfgs` | potential | yes | correlations are strong |
//! | [`MhBfgs`] | `mh-bfgs` | potential | yes | dimensions are few |
//! | [`Qnhmc`] | `qnhmc` | potential | yes, after burn-in; never with `adapt_after_burn_in` | wide directions must mix fast |
//! | [`Newtonian`] | `nmc` | [`Sites`] | yes | second derivatives are cheap |
//! | [`Rmhmc`] | | potential, [`Metric`] | yes | a comparator in few dimensions |
//! | [`Hamcmc`] | `hamcmc` | gradient | as the step falls; yes [with a test](Hamcmc::with_metropolis); as published ([`Pairs::Moves`]) on Gaussians and in one dimension only | minibatches, badly scaled targets |
//! | [`Sgld`] | `sgld` | gradient | as the step falls | the baseline |
//! | [`Sghmc`] | `sghmc` | gradient | as the step falls | long valleys, large data |
//! | [`Sgnht`] | `sgnht` | gradient | as the step falls | gradient noise of unknown strength |
//! | [`Sgrld`] | `sgrld` | [`Metric`] | as the step falls | the Fisher information is known |
//! | [`Sgrhmc`] | `sgrhmc` | [`Metric`] | as the step falls | a metric follows the local scale |
//! | [`Sgfs`] | | gradient of each data term | as the step falls; at long steps the posterior's Gaussian limit | many data terms, few parameters |
//! | [`Psgld`] | `psgld` | gradient | no, nor with its correction | speed matters more than exactness |
//!
//! For any sampler, the [warm-up](Preconditioned) needs the potential to find a step, unless a [step is
//! given](SamplerOptions::step_size).
//!
//! The two samplers without a name are comparators: [`SamplerKind`] does not build them. Every sampler needs the
//! gradient, except [`Newtonian`], which uses [`Sites`]; "potential" is needed in addition. A target offers further
//! capabilities by [`Target::metric`], [`Target::curvature`] and [`Target::sites`]. [`Chain::new`] returns an error if
//! the target lacks one that the sampler needs.
//!
//! # Sources
//!
//! Short names used in the documentation: `hamcmc-2016` is Simsekli and others, "Stochastic quasi-Newton Langevin Monte
//! Carlo"; `complete-recipe` Ma, Chen and Fox, "A complete recipe for stochastic gradient MCMC" (2015);
//! `quasi-newton-mcmc` Zhang and Sutton, "Quasi-Newton methods for Markov chain Monte Carlo" (2011); `quasi-newton-hmc`
//! Fu, Luo and Zhang, "Quasi-Newton Hamiltonian Monte Carlo" (2016); `newtonian` Arora and others, "Newtonian Monte
//! Carlo" (2019).
//!
//! # Positive parameters
//!
//! [`Mirrored`] and [`LogMapped`] turn a target on the positive orthant into one on the whole space, for any sampler;
//! [`Scaled`] divides parameters by units. All three offer the capabilities of the inner target. Gradient samplers can
//! also fold each draw ([`GradientSettings::mirror`]), which is exact for diagonal dynamics only and excludes a warm-up
//! metric. [`Newtonian`] needs neither a map nor folding, and also moves bounded and discrete parameters.
//!
//! # Features
//!
//! `rayon`, on by default, runs many blocks, and the chains of [`sample`], on several threads; draws are bit-identical
//! without it. `serde` implements its traits for [`SamplerKind`].
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod checks;
mod closure;
mod dense;
mod ensemble;
mod gradient;
mod identity;
mod kind;
mod matrix;
mod metric;
mod momentum;
mod positivity;
mod runner;
mod sampler;
mod step_size;
mod target;
mod trajectory;
mod vector;
mod warm_up;

pub mod diagnostics;
pub mod distributed;
pub mod hamcmc;
pub mod hmc;
pub mod hmc_bfgs;
pub mod lbfgs;
pub mod mh_bfgs;
pub mod newtonian;
pub mod nuts;
pub mod psgld;
pub mod qnhmc;
pub mod random;
pub mod recipe;
pub mod rmhmc;
pub mod sgfs;
pub mod sghmc;
pub mod sgld;
pub mod sgnht;
pub mod sgrhmc;
pub mod sgrld;
pub mod targets;

pub use closure::{FromFn, from_fn};
pub use gradient::GradientSettings;
pub use hamcmc::{Hamcmc, HamcmcSettings, Pairs};
pub use hmc::Hmc;
pub use hmc_bfgs::{HmcBfgs, HmcBfgsSettings};
pub use kind::{SamplerKind, SamplerOptions};
pub use lbfgs::InitialScale;
pub use matrix::Matrix;
pub use mh_bfgs::{MhBfgs, MhBfgsSettings};
pub use newtonian::{Indefinite, Newtonian, Scan};
pub use nuts::{Nuts, NutsSettings};
pub use positivity::{LogMapped, Mirrored, Scaled};
pub use psgld::{Psgld, PsgldSettings};
pub use qnhmc::{Qnhmc, QnhmcSettings};
pub use rmhmc::Rmhmc;
pub use runner::{ParameterSummary, RunRecord, SampleResult, Schedule, sample};
pub use sampler::{Chain, ChainStatistics, Draw, Sampler, SamplerError, Start, Step};
pub use sgfs::Sgfs;
pub use sghmc::{Sghmc, SghmcSettings};
pub use sgld::Sgld;
pub use sgnht::{Sgnht, SgnhtSettings};
pub use sgrhmc::Sgrhmc;
pub use sgrld::Sgrld;
pub use step_size::StepSize;
pub use target::{Curvature, Metric, Minibatch, Real, Site, Sites, Support, Target};
pub use trajectory::HmcSettings;
pub use warm_up::{MetricShape, Preconditioned, StepRule, WarmUpSettings};

use sampler::{check_target, need, offered};
use step_size::{DualAveraging, TestedStep};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
