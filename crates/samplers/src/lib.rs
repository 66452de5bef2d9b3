//! Markov chain Monte Carlo samplers that use gradients and curvature, and nothing about audio.
//!
//! A posterior is a [`Target`]: its shape, its gradient on a minibatch of data, its potential. A [`Sampler`]
//! moves a state of `dimension x blocks` numbers; blocks are independent and keep their own memory and random
//! stream. [`Chain`] checks that the two fit and runs the loop; [`SamplerKind`] builds a sampler by name.
//!
//! ```
//! use alphamf_samplers::random::SeedTree;
//! use alphamf_samplers::{Chain, Hmc, HmcSettings, targets::Gaussian};
//! # fn main() -> Result<(), alphamf_samplers::SamplerError> {
//! let target = Gaussian::equicorrelated(10, 4.0, 1.0);
//! let sampler = Hmc::new(10, 1, HmcSettings::default(), SeedTree::new(1))?;
//! let mut chain = Chain::new(target, sampler, vec![0.0; 10])?;
//! chain.burn_in(500);
//! chain.run(2000, |draw| assert!(draw.theta.iter().all(|x: &f64| x.is_finite())));
//! assert!(chain.statistics().acceptance() > 0.5);
//! # Ok(())
//! # }
//! ```
//!
//! A posterior of your own need not be a type: [`from_fn`] makes a target of a closure. [`sample`] runs several chains
//! of a target at once, and returns their draws with R-hat and effective sizes.
//!
//! # Which sampler
//!
//! Positive unknowns, thousands of data terms, a gradient and nothing else: [`Hamcmc`]. A few hundred unknowns whose
//! potential is known: [`HmcBfgs`], or [`Hmc`] to check others by. Second derivatives at little cost: [`Newtonian`].
//! *Exact* is the stationary distribution: "yes" is the target at any step size; "as the step falls" means that the
//! bias goes to zero with the step ([`StepSize`]) and that minibatches are allowed, for a target with a smooth gradient
//! (see [`Mirrored`] for what is not). The page of each sampler says more.
//!
//! | sampler | name | needs | exact | use it when |
//! |---|---|---|---|---|
//! | [`Sgld`] | `sgld` | gradient | as the step falls | scales are alike; the baseline |
//! | [`Psgld`] | `psgld` | gradient | no, nor with its correction | scales differ, correlations do not matter, speed does |
//! | [`Sgrld`] | `sgrld` | [`Metric`] | as the step falls | the Fisher information is known and small or diagonal |
//! | [`Hamcmc`] | `hamcmc` | gradient | as the step falls, with [`Pairs::States`]; as published on Gaussians and in one dimension only | correlated or badly scaled, minibatches |
//! | [`Sghmc`] | `sghmc` | gradient | as the step falls | long valleys, large data |
//! | [`Sgnht`] | `sgnht` | gradient | as the step falls | the same, with gradient noise of unknown strength |
//! | [`Sgrhmc`] | `sgrhmc` | [`Metric`] | as the step falls | the local scale varies and a metric follows it |
//! | [`Hmc`] | `hmc` | potential | yes | the reference |
//! | [`MhBfgs`] | `mh-bfgs` | potential | yes | a comparator in few dimensions |
//! | [`HmcBfgs`] | `hmc-bfgs` | potential | yes | strong correlations |
//! | [`Qnhmc`] | `qnhmc` | potential | yes, once it has learnt; never with `adapt_after_burn_in` | wide directions must be explored fast |
//! | [`Nuts`] | | potential | yes | a good trajectory length is not known |
//! | [`Rmhmc`] | | potential, [`Metric`] | yes | a comparator in few dimensions |
//! | [`Sgfs`] | | gradient of each data term | as the step falls; at long steps the posterior's Gaussian limit | many data, few unknowns |
//! | [`Newtonian`] | `nmc` | [`Sites`] | yes | second derivatives are cheap; nothing to tune |
//!
//! The three without a name are comparators: [`SamplerKind`] does not build them.
//! Every one but [`Newtonian`], which works by [`Sites`], needs the gradient; "potential" means besides. A target says what
//! it offers by [`Target::metric`], [`Target::curvature`] and [`Target::sites`], and [`Chain::new`] refuses one that lacks
//! what its sampler needs.
//!
//! # Sources
//!
//! By the short names used in the documentation: `hamcmc-2016` is Simsekli and others, "Stochastic
//! quasi-Newton Langevin Monte Carlo"; `complete-recipe` Ma, Chen and Fox, "A complete recipe for stochastic
//! gradient MCMC" (2015); `quasi-newton-mcmc` Zhang and Sutton, "Quasi-Newton methods for Markov chain Monte
//! Carlo" (2011); `quasi-newton-hmc` Fu, Luo and Zhang, "Quasi-Newton Hamiltonian Monte Carlo" (2016);
//! `newtonian` Arora and others, "Newtonian Monte Carlo" (2019).
//!
//! # Positive unknowns
//!
//! [`Mirrored`] and [`LogMapped`] turn a target on the positive orthant into one on the whole space, for any sampler;
//! [`Scaled`] brings unknowns of unlike size to one. All three offer what the inner target does. Gradient samplers can
//! also fold each draw themselves ([`GradientSettings::mirror`]), which is exact for diagonal dynamics only;
//! [`Newtonian`] needs neither, and moves bounded and discrete unknowns too.
//!
//! # Features
//!
//! `rayon`, on by default: many blocks, and the chains of [`sample`], on several threads, with the same draws bit for bit.
//! `serde`: [`SamplerKind`] in files of settings.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

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
pub use sampler::{Chain, ChainStatistics, Draw, Sampler, SamplerError, Step};
pub use sgfs::Sgfs;
pub use sghmc::{Sghmc, SghmcSettings};
pub use sgld::Sgld;
pub use sgnht::{Sgnht, SgnhtSettings};
pub use sgrhmc::Sgrhmc;
pub use sgrld::Sgrld;
pub use step_size::{DualAveraging, StepSize};
pub use target::{Curvature, Metric, Minibatch, Real, Site, Sites, Support, Target};
pub use trajectory::HmcSettings;
pub use warm_up::{MetricShape, Preconditioned, StepRule, WarmUpSettings};

use sampler::{check_target, need, offered};
