//! Markov chain Monte Carlo samplers that use gradients and curvature, and nothing about audio.
//!
//! A posterior is a [`Target`]: its shape, its gradient on a minibatch of data, its potential. A [`Sampler`]
//! moves a state of `dimension x blocks` numbers; blocks are independent and keep their own memory and random
//! stream. [`Chain`] checks that the two fit and runs the loop; [`SamplerKind`] builds a sampler by name.

mod dense;
mod ensemble;
mod gradient;
mod kind;
mod metric;
mod positivity;
mod sampler;
mod step_size;
mod target;
mod trajectory;
mod vector;

pub mod diagnostics;
pub mod hamcmc;
pub mod hmc;
pub mod hmc_bfgs;
pub mod lbfgs;
pub mod mh_bfgs;
pub mod newtonian;
pub mod psgld;
pub mod qnhmc;
pub mod recipe;
pub mod sghmc;
pub mod sgld;
pub mod sgnht;
pub mod sgrhmc;
pub mod sgrld;
pub mod targets;

pub use gradient::GradientSettings;
pub use hamcmc::{Hamcmc, HamcmcSettings};
pub use hmc::Hmc;
pub use hmc_bfgs::{HmcBfgs, HmcBfgsSettings};
pub use kind::{Options, SamplerKind};
pub use lbfgs::InitialScale;
pub use mh_bfgs::{MhBfgs, MhBfgsSettings};
pub use newtonian::Newtonian;
pub use positivity::{LogMapped, Mirrored};
pub use psgld::{Psgld, PsgldSettings};
pub use qnhmc::{Qnhmc, QnhmcSettings};
pub use sampler::{Chain, Draw, Sampler, SamplerError, Statistics, Step};
pub use sghmc::{Sghmc, SghmcSettings};
pub use sgld::Sgld;
pub use sgnht::{Sgnht, SgnhtSettings};
pub use sgrhmc::Sgrhmc;
pub use sgrld::Sgrld;
pub use step_size::{DualAveraging, StepSize};
pub use target::{Curvature, Metric, Minibatch, Real, Site, Sites, Support, Target};
pub use trajectory::HmcSettings;

use sampler::{check_target, need};
