//! The same posterior for the crate `nuts-rs`.

use crate::targets::Counted;
use nuts_rs::{Chain, CpuLogpFunc, CpuMath, CpuMathError, DiagNutsSettings, LogpError, Settings};
use nuts_storable::HasDims;
use rand::SeedableRng;
use std::collections::HashMap;

struct Peer(Counted);

#[derive(Debug, thiserror::Error)]
#[error("the density is not finite")]
struct NotFinite;

impl LogpError for NotFinite {
    fn is_recoverable(&self) -> bool {
        true
    }
}

impl HasDims for Peer {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([("unconstrained_parameter".to_owned(), self.dim() as u64)])
    }
}

impl CpuLogpFunc for Peer {
    type LogpError = NotFinite;
    type ExpandedVector = Vec<f64>;
    type FlowParameters = ();

    fn dim(&self) -> usize {
        alphamf_samplers::Target::dimension(&self.0)
    }

    fn logp(&mut self, phi: &[f64], gradient: &mut [f64]) -> Result<f64, NotFinite> {
        let value = self.0.log_density(phi, gradient);
        if value.is_finite() && gradient.iter().all(|g| g.is_finite()) { Ok(value) } else { Err(NotFinite) }
    }

    fn expand_vector<R: rand::Rng + ?Sized>(
        &mut self,
        _: &mut R,
        phi: &[f64],
    ) -> Result<Vec<f64>, CpuMathError> {
        Ok(phi.to_vec())
    }
}

/// A run of one chain: its draws, and the gradients after the warm-up and in all.
pub fn run(
    target: &Counted,
    start: &[f64],
    (warm_up, draws): (usize, usize),
    chain: u64,
) -> (Vec<f64>, [u64; 2]) {
    let settings = DiagNutsSettings { num_tune: warm_up as u64, ..DiagNutsSettings::default() };
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(chain + 1);
    let mut sampler =
        settings.new_chain(chain, CpuMath::new(Peer(target.clone())), &mut rng).expect("default settings");
    sampler.set_position(start).expect("a start of finite density");
    target.take();
    let mut all = Vec::new();
    let mut before = 0;
    for draw in 0..warm_up + draws {
        if draw == warm_up {
            before = target.take();
        }
        let (state, _) = sampler.draw().expect("a draw");
        if draw >= warm_up {
            all.extend_from_slice(&state);
        }
    }
    let after = target.take();
    (all, [after, before + after])
}
