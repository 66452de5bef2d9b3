//! Leapfrog trajectories with an acceptance test per block, shared by the Hamiltonian samplers.
//!
//! With a fixed matrix `A` per block, `theta' = A p`, `p' = -A' grad U` and `p ~ N(0, I)` preserve
//! `exp(-U(theta) - p'p / 2)`. `A = I` is HMC, `A = C` the inverse Hessian is QNHMC, and its root `A = S` is HMC with
//! mass matrix `H^-1` in whitened momenta, which is HMC-BFGS. A user-supplied mass matrix `M` multiplies the first two
//! from the right by `M^-1/2`: these momenta are whitened too, `p = M^1/2 r`.

use rand::RngExt;

use super::checks::{check, check_acceptance, check_positive, check_shape};
use super::gradient::is_divergence;
use super::lbfgs::InverseHessian;
use super::matrix::{Matrix, Spectrum};
use super::vector::{add_scaled, dot, for_blocks, is_sound_for_test};
use super::{Minibatch, Real, SamplerError, Step, Target, TestedStep};
use crate::random::{SeedTree, SeededRng};

/// Settings of all Hamiltonian samplers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HmcSettings {
    /// The leapfrog step, above 0; adaptation starts from it. Default 0.1.
    pub step_size: f64,
    /// Leapfrog steps per proposal, at least 1. After a [warm-up](super::Preconditioned) has chosen the step, this is a
    /// maximum: each proposal draws a number of steps, common to all blocks. Default 10.
    pub leaps: usize,
    /// Each proposal's step is uniform between `1 - jitter` and 1 times the step size; in [0, 1). Default 0.1.
    pub jitter: f64,
    /// The mean acceptance probability that adaptation aims for, in (0, 1). Default 0.8.
    pub target_acceptance: f64,
}

impl Default for HmcSettings {
    fn default() -> Self {
        Self { step_size: 0.1, leaps: 10, jitter: 0.1, target_acceptance: 0.8 }
    }
}

impl HmcSettings {
    pub(super) fn check(&self) -> Result<(), SamplerError> {
        let Self { step_size, leaps, jitter, target_acceptance } = *self;
        check_positive("step size", step_size)?;
        check("leapfrog steps", leaps as f64, "at least 1", leaps > 0)?;
        check("jitter", jitter, "in [0, 1)", (0.0..1.0).contains(&jitter))?;
        check_acceptance("target acceptance", target_acceptance)
    }
}

/// The matrix `A` that maps momenta to moves of the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Map {
    Identity,
    Full,
    Root,
}

/// The matrix `A`, and `M^-1/2` unless the mass is 1.
type Maps<'a, T> = (Map, Option<&'a Spectrum<T>>);

/// State of one block.
#[derive(Debug, Clone)]
pub(super) struct Leaper<T> {
    pub stream: SeededRng,
    pub inverse: InverseHessian<T>,
    pub accepted: bool,
    /// The step size before jitter.
    pub step: TestedStep,
    step_size: f64,
    momentum: Vec<T>,
    scratch: Vec<T>,
    kinetic: f64,
    probability: f64,
    /// The Hamiltonian of the draw.
    hamiltonian: f64,
    diverged: bool,
    spare: Vec<T>,
}

/// One trajectory for every block at once.
#[derive(Debug, Clone)]
pub(super) struct Trajectory<T> {
    pub settings: HmcSettings,
    pub dimension: usize,
    pub blocks: Vec<Leaper<T>>,
    /// Gradient and potential at the start and at the end of the last trajectory.
    pub start_gradient: Vec<T>,
    pub gradient: Vec<T>,
    pub start_potential: Vec<f64>,
    pub potential: Vec<f64>,
    pub start: Vec<T>,
    map: Map,
    /// `M^-1/2`, or `None` for unit mass.
    mass: Option<Spectrum<T>>,
    adapting: bool,
    /// Whether each proposal draws its number of leapfrog steps, from 1 to the setting. A fixed trajectory length may
    /// resonate with a target of equal scale in all directions.
    varies: bool,
}

impl<T: Real> Trajectory<T> {
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: HmcSettings,
        map: Map,
        memory: usize,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        check_shape(dimension, blocks)?;
        settings.check()?;
        let zeros = vec![T::zero(); dimension];
        let noise = streams.child(0);
        let leaper = |block: usize| Leaper {
            stream: noise.rng(block as u64),
            inverse: InverseHessian::new(dimension, memory),
            accepted: false,
            step: TestedStep::new(settings.step_size, settings.target_acceptance),
            step_size: settings.step_size,
            momentum: zeros.clone(),
            scratch: zeros.clone(),
            kinetic: 0.0,
            probability: 0.0,
            hamiltonian: 0.0,
            diverged: false,
            spare: zeros.clone(),
        };
        let states = vec![T::zero(); dimension * blocks];
        Ok(Self {
            settings,
            dimension,
            blocks: (0..blocks).map(leaper).collect(),
            start_gradient: states.clone(),
            gradient: states.clone(),
            start: states,
            start_potential: vec![0.0; blocks],
            potential: vec![0.0; blocks],
            map,
            mass: None,
            adapting: false,
            varies: false,
        })
    }

    /// Sets the mass matrix of all blocks.
    pub fn set_mass(&mut self, mass: &Matrix) -> Result<(), SamplerError> {
        let root = mass.decompose("the mass matrix", self.dimension, true)?.map(|value| 1.0 / value.sqrt());
        self.mass = Some(root);
        Ok(())
    }

    pub fn adapt(&mut self, on: bool) {
        if self.adapting && !on {
            self.blocks.iter_mut().for_each(|block| block.step.finish());
        }
        self.adapting = on;
    }

    /// Restarts step adaptation of a block from `step`, in coordinates that a warm-up has chosen.
    pub fn restart_step(&mut self, block: usize, step: f64) {
        self.varies = true;
        self.blocks[block].step.restart_at(step);
    }

    pub fn is_adapting(&self) -> bool {
        self.adapting
    }

    /// Replaces `theta` by the end of a trajectory, or leaves it unchanged if this end is rejected.
    pub fn run(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let (n, map, adapting) = (self.dimension, self.map, self.adapting);
        let batch = Minibatch::full(target.terms());
        self.start.copy_from_slice(theta);
        target.evaluate(theta, &mut self.start_potential, &mut self.start_gradient);
        let mass = self.mass.as_ref();
        let (start, gradient, jitter) = (&self.start, &self.start_gradient, self.settings.jitter);
        for_blocks(&mut self.blocks, theta, |index, block, theta| {
            block.step_size = block.step.next(adapting) * (1.0 - jitter * block.stream.random::<f64>());
            block.momentum.iter_mut().for_each(|p| *p = T::normal(&mut block.stream));
            block.kinetic = 0.5 * dot(&block.momentum, &block.momentum).widen();
            block.diverged = false;
            block.kick((map, mass), &gradient[index * n..][..n], 0.5);
            block.advance((map, mass), theta, &start[index * n..][..n]);
        });
        let leaps = match self.varies {
            true => self.blocks[0].stream.random_range(1..=self.settings.leaps),
            false => self.settings.leaps,
        };
        for leap in 1..=leaps {
            let last = leap == leaps;
            if last {
                target.evaluate(theta, &mut self.potential, &mut self.gradient);
            } else {
                target.gradient(theta, batch, &mut self.gradient);
            }
            let gradient = &self.gradient;
            for_blocks(&mut self.blocks, theta, |index, block, theta| {
                block.kick((map, mass), &gradient[index * n..][..n], if last { 0.5 } else { 1.0 });
                if !last {
                    block.advance((map, mass), theta, &start[index * n..][..n]);
                }
            });
        }
        let (before, after) = (&self.start_potential, &self.potential);
        for_blocks(&mut self.blocks, theta, |index, block, theta| {
            let kinetic = 0.5 * dot(&block.momentum, &block.momentum).widen();
            let error = after[index] + kinetic - before[index] - block.kinetic;
            block.diverged |= is_divergence(error);
            block.probability = if block.diverged { 0.0 } else { libm::exp(-error.max(0.0)) };
            block.accepted = block.stream.random::<f64>() < block.probability;
            let (potential, own) = if block.accepted { (after, kinetic) } else { (before, block.kinetic) };
            block.hamiltonian = potential[index] + own;
            if !block.accepted {
                theta.copy_from_slice(&start[index * n..][..n]);
            }
            if adapting {
                block.step.update(block.probability);
            }
        });
        let accepted = self.blocks.iter().map(|block| block.accepted);
        let ends = self.potential.iter().zip(&self.start_potential);
        let potential =
            ends.zip(accepted).map(|((&after, &before), accepted)| if accepted { after } else { before });
        let count = self.blocks.len() as f64;
        Step {
            acceptance: self.blocks.iter().map(|block| block.probability).sum::<f64>() / count,
            potential: Some(potential.sum()),
            divergences: self.blocks.iter().filter(|block| block.diverged).count(),
            step_size: self.blocks.iter().map(|block| block.step_size).sum::<f64>() / count,
            energy: Some(self.blocks.iter().map(|block| block.hamiltonian).sum()),
            leapfrog_steps: leaps,
            tested: true,
            ..Step::default()
        }
    }
}

impl<T: Real> Leaper<T> {
    fn kick(&mut self, (map, mass): Maps<'_, T>, gradient: &[T], share: f64) {
        let step = T::narrow(-share * self.step_size);
        if map == Map::Identity && mass.is_none() {
            add_scaled(&mut self.momentum, step, gradient);
            return;
        }
        self.scratch.copy_from_slice(gradient);
        match map {
            Map::Identity => (),
            Map::Full => self.inverse.multiply(&mut self.scratch),
            Map::Root => self.inverse.multiply_root_transposed(&mut self.scratch),
        }
        if let Some(mass) = mass {
            mass.apply(&mut self.scratch, &mut self.spare);
        }
        add_scaled(&mut self.momentum, step, &self.scratch);
    }

    /// Moves the position; a position out of bounds returns to its start and is rejected.
    fn advance(&mut self, (map, mass): Maps<'_, T>, theta: &mut [T], start: &[T]) {
        let step = T::narrow(self.step_size);
        if map == Map::Identity && mass.is_none() {
            add_scaled(theta, step, &self.momentum);
        } else {
            self.scratch.copy_from_slice(&self.momentum);
            if let Some(mass) = mass {
                mass.apply(&mut self.scratch, &mut self.spare);
            }
            match map {
                Map::Identity => (),
                Map::Full => self.inverse.multiply(&mut self.scratch),
                Map::Root => self.inverse.multiply_root(&mut self.scratch),
            }
            add_scaled(theta, step, &self.scratch);
        }
        if !is_sound_for_test(theta) {
            self.diverged = true;
            theta.copy_from_slice(start);
            self.momentum.fill(T::zero());
        }
    }
}
