//! The no-U-turn sampler: Hamiltonian trajectories of adaptive length.
//!
//! From a momentum `p ~ N(0, M)` the trajectory doubles, forwards or backwards in time at random, until it or one of
//! its subtrees turns back. A tree turns back when the sum of its momenta no longer points along the momenta at both
//! ends. The check covers the tree, and each half with the adjacent leaf of the other. The draw is a state of the
//! trajectory, with a weight of `exp(-H)` within each subtree; a new subtree is favoured over the tree before it.
//!
//! **Source.** Hoffman and Gelman (2014) with multinomial weights and the generalised criterion of Betancourt (2017,
//! "A conceptual introduction to Hamiltonian Monte Carlo", appendix A), and the checks across halves that Stan has had
//! since version 2.21; NUTS of the tables in `newtonian`. Step size: dual averaging during burn-in on the mean acceptance
//! probability over the trajectory.
//! **Cost.** A potential and a gradient for each leapfrog step, up to `2^depth - 1` of them. Each block has its own
//! tree; the trees grow together, so a step takes as long as the largest. A [fixed](super::Target::is_fixed) target is
//! not evaluated again at the last draw.
//! **Bias.** None.
//! **Use where** in doubt.
//! **Do not use where** full gradients are not affordable, or scales vary so much that steps diverge (funnels): reparametrise,
//! or use [`Newtonian`](super::Newtonian).

use rand::RngExt;

use super::checks::{check, check_acceptance, check_positive, check_shape};
use super::gradient::is_divergence;
use super::matrix::Spectrum;
use super::vector::{add_scaled, dot, is_sound_for_test};
use super::{Matrix, Real, Sampler, SamplerError, Start, Step, Target, TestedStep};
use crate::random::{SeedTree, SeededRng};

/// Settings of [`Nuts`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NutsSettings {
    /// The leapfrog step, above 0; adaptation starts from it. Default 0.1.
    pub step_size: f64,
    /// Doublings of a trajectory, 1 to 20: at most `2^depth - 1` leapfrog steps. Default 10.
    pub depth: u32,
    /// The mean acceptance probability that adaptation aims for, in (0, 1). Default 0.8.
    pub target_acceptance: f64,
}

impl Default for NutsSettings {
    fn default() -> Self {
        Self { step_size: 0.1, depth: 10, target_acceptance: 0.8 }
    }
}

/// The no-U-turn sampler; see the [module](self).
#[derive(Debug, Clone)]
pub struct Nuts<T> {
    dimension: usize,
    settings: NutsSettings,
    blocks: Vec<Tree<T>>,
    /// `M^-1/2`, or `None` for unit mass.
    mass: Option<Spectrum<T>>,
    gradient: Vec<T>,
    potential: Vec<f64>,
    /// The last draw; its stored gradient and potential serve a fixed target.
    last: Vec<T>,
    last_gradient: Vec<T>,
    last_potential: Vec<f64>,
    start_gradient: Vec<T>,
    adapting: bool,
}

/// A point on a trajectory; momenta are whitened, `p = M^1/2 r`.
#[derive(Debug, Clone)]
struct Place<T> {
    theta: Vec<T>,
    momentum: Vec<T>,
    /// `M^-1/2 grad U`.
    slope: Vec<T>,
}

impl<T: Real> Place<T> {
    fn new(dimension: usize) -> Self {
        let zeros = vec![T::zero(); dimension];
        Self { theta: zeros.clone(), momentum: zeros.clone(), slope: zeros }
    }

    fn copy_from(&mut self, other: &Self) {
        self.theta.copy_from_slice(&other.theta);
        self.momentum.copy_from_slice(&other.momentum);
        self.slope.copy_from_slice(&other.slope);
    }
}

/// Summary of a tree or subtree.
#[derive(Debug, Clone)]
struct Sum<T> {
    draw: Vec<T>,
    /// The gradient at the draw, not multiplied by the mass.
    gradient: Vec<T>,
    potential: f64,
    /// Potential and kinetic energy at the draw.
    hamiltonian: f64,
    momentum: Vec<T>,
    log_weight: f64,
}

impl<T: Real> Sum<T> {
    fn new(dimension: usize) -> Self {
        let zeros = vec![T::zero(); dimension];
        Self {
            draw: zeros.clone(),
            gradient: zeros.clone(),
            potential: 0.0,
            hamiltonian: 0.0,
            momentum: zeros,
            log_weight: f64::NEG_INFINITY,
        }
    }
}

/// The trajectory of one block.
#[derive(Debug, Clone)]
struct Tree<T> {
    stream: SeededRng,
    step: TestedStep,
    step_size: f64,
    /// The backward and the forward end, and the point where the tree grows.
    ends: [Place<T>; 2],
    here: Place<T>,
    whole: Sum<T>,
    part: Sum<T>,
    /// For each unfinished subtree that contains the current leaf: the momentum at its first leaf, the sum of momenta
    /// up to that leaf, and the momentum at the leaf before.
    first: Vec<[Vec<T>; 3]>,
    previous: Vec<T>,
    scratch: [Vec<T>; 2],
    energy: f64,
    depth: u32,
    /// Whether the forward end grows, and the number of leaves in the new subtree.
    forward: bool,
    leaves: u64,
    growing: bool,
    acceptance: f64,
    steps: f64,
    diverged: bool,
}

fn log_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + libm::log1p(libm::exp(low - high)) }
}

/// Whether a trajectory turns back, given the momenta at its `ends` and the `sum` of its momenta.
fn turns<T: Real>(ends: [&[T]; 2], sum: &[T]) -> bool {
    ends.iter().any(|end| dot(end, sum) <= T::zero())
}

impl<T: Real> Tree<T> {
    /// Begins a trajectory at `theta`.
    fn begin(
        &mut self,
        theta: &[T],
        (potential, slope): (f64, &[T]),
        mass: Option<&Spectrum<T>>,
        adapting: bool,
    ) {
        self.step_size = self.step.next(adapting);
        let Self { here, ends, whole, stream, scratch, .. } = self;
        here.theta.copy_from_slice(theta);
        here.slope.copy_from_slice(slope);
        if let Some(mass) = mass {
            mass.apply(&mut here.slope, &mut scratch[0]);
        }
        here.momentum.iter_mut().for_each(|r| *r = T::normal(stream));
        ends.iter_mut().for_each(|end| end.copy_from(here));
        self.energy = potential + 0.5 * dot(&here.momentum, &here.momentum).widen();
        whole.draw.copy_from_slice(theta);
        whole.gradient.copy_from_slice(slope);
        whole.potential = potential;
        whole.hamiltonian = self.energy;
        whole.momentum.copy_from_slice(&here.momentum);
        whole.log_weight = 0.0;
        (self.depth, self.acceptance, self.steps) = (0, 0.0, 0.0);
        self.growing = self.energy.is_finite();
        self.diverged = !self.growing;
        self.sprout();
    }

    /// Begins the next subtree.
    fn sprout(&mut self) {
        self.forward = self.stream.random();
        self.here.copy_from(&self.ends[usize::from(self.forward)]);
        self.leaves = 0;
        self.part.log_weight = f64::NEG_INFINITY;
        self.part.momentum.fill(T::zero());
    }

    fn signed_step(&self) -> T {
        T::narrow(if self.forward { self.step_size } else { -self.step_size })
    }

    /// Applies half a kick and a move; writes the position to `theta`.
    fn advance(&mut self, theta: &mut [T], mass: Option<&Spectrum<T>>) {
        let step = self.signed_step();
        let Place { theta: here, momentum, slope } = &mut self.here;
        add_scaled(momentum, -T::narrow(0.5) * step, slope);
        let [velocity, scratch] = &mut self.scratch;
        velocity.copy_from_slice(momentum);
        if let Some(mass) = mass {
            mass.apply(velocity, scratch);
        }
        theta.copy_from_slice(here);
        add_scaled(theta, step, velocity);
        if is_sound_for_test(theta) {
            here.copy_from_slice(theta);
        } else {
            self.diverged = true;
            self.growing = false;
            theta.copy_from_slice(here);
        }
    }

    /// Applies the other half of the kick, and adds the new leaf to the trees.
    fn grow(&mut self, potential: f64, gradient: &[T], mass: Option<&Spectrum<T>>, depth: u32) {
        let step = self.signed_step();
        self.here.slope.copy_from_slice(gradient);
        if let Some(mass) = mass {
            mass.apply(&mut self.here.slope, &mut self.scratch[0]);
        }
        add_scaled(&mut self.here.momentum, -T::narrow(0.5) * step, &self.here.slope);
        let momentum = &self.here.momentum;
        let error = potential + 0.5 * dot(momentum, momentum).widen() - self.energy;
        self.steps += 1.0;
        if is_divergence(error) {
            self.diverged = true;
            self.growing = false;
            return;
        }
        self.acceptance += libm::exp(-error.max(0.0));
        // Within a subtree, each leaf is drawn with probability proportional to its weight.
        self.part.log_weight = log_sum(self.part.log_weight, -error);
        if self.stream.random::<f64>() < libm::exp(-error - self.part.log_weight) {
            self.part.draw.copy_from_slice(&self.here.theta);
            self.part.gradient.copy_from_slice(gradient);
            self.part.potential = potential;
            self.part.hamiltonian = self.energy + error;
        }
        add_scaled(&mut self.part.momentum, T::one(), momentum);
        let leaf = self.leaves;
        self.leaves += 1;
        // An even leaf begins a subtree of every size that divides its index. An odd leaf ends one subtree for each
        // trailing one bit of its index.
        let level = (leaf >> 1).count_ones() as usize;
        if leaf.is_multiple_of(2) {
            self.first[level][0].copy_from_slice(momentum);
            self.first[level][1].copy_from_slice(&self.part.momentum);
            self.first[level][2].copy_from_slice(&self.previous);
        } else {
            let ended = leaf.trailing_ones() as usize;
            let begun = &self.first[level + 1 - ended..=level];
            let sum = &mut self.scratch[0];
            for (k, [start, up_to_start, _]) in begun.iter().enumerate() {
                // The sum over a subtree from its first leaf to this one.
                sum.copy_from_slice(&self.part.momentum);
                add_scaled(sum, -T::one(), up_to_start);
                add_scaled(sum, T::one(), start);
                let mut turned = turns([start, momentum], sum);
                // The next smaller subtree that ends here is the second half of this one. Checks each half with the
                // adjacent leaf of the other, which may turn where the whole does not.
                if let Some([middle, up_to_middle, before_middle]) = begun.get(k + 1) {
                    sum.copy_from_slice(up_to_middle);
                    add_scaled(sum, -T::one(), up_to_start);
                    add_scaled(sum, T::one(), start);
                    turned |= turns([start, middle], sum);
                    sum.copy_from_slice(&self.part.momentum);
                    add_scaled(sum, -T::one(), up_to_middle);
                    add_scaled(sum, T::one(), middle);
                    add_scaled(sum, T::one(), before_middle);
                    turned |= turns([before_middle, momentum], sum);
                }
                if turned {
                    self.growing = false;
                    return;
                }
            }
        }
        self.previous.copy_from_slice(momentum);
        if self.leaves == 1 << self.depth {
            self.merge(depth);
        }
    }

    /// Joins the finished subtree to the tree.
    fn merge(&mut self, depth: u32) {
        let Self { whole, part, .. } = self;
        if self.stream.random::<f64>() < libm::exp(part.log_weight - whole.log_weight) {
            whole.draw.copy_from_slice(&part.draw);
            whole.gradient.copy_from_slice(&part.gradient);
            whole.potential = part.potential;
            whole.hamiltonian = part.hamiltonian;
        }
        whole.log_weight = log_sum(whole.log_weight, part.log_weight);
        let [far, near] = if self.forward { [0, 1] } else { [1, 0] };
        let (first, sum) = (&self.first[0][0], &mut self.scratch[0]);
        sum.copy_from_slice(&whole.momentum);
        add_scaled(sum, T::one(), first);
        let mut turned = turns([&self.ends[far].momentum, first], sum);
        sum.copy_from_slice(&part.momentum);
        add_scaled(sum, T::one(), &self.ends[near].momentum);
        turned |= turns([&self.ends[near].momentum, &self.here.momentum], sum);
        add_scaled(&mut whole.momentum, T::one(), &part.momentum);
        self.ends[near].copy_from(&self.here);
        self.depth += 1;
        let ends = [&self.ends[0].momentum[..], &self.ends[1].momentum[..]];
        self.growing = self.depth < depth && !turned && !turns(ends, &self.whole.momentum);
        if self.growing {
            self.sprout();
        }
    }
}

impl<T: Real> Nuts<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: NutsSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let NutsSettings { step_size, depth, target_acceptance } = settings;
        check_shape(dimension, blocks)?;
        check_positive("step size", step_size)?;
        check("NUTS depth", f64::from(depth), "1 to 20", (1..=20).contains(&depth))?;
        check_acceptance("target acceptance", target_acceptance)?;
        let zeros = vec![T::zero(); dimension];
        let pair = [zeros.clone(), zeros];
        let noise = streams.child(0);
        let tree = |block: usize| Tree {
            stream: noise.rng(block as u64),
            step: TestedStep::new(step_size, target_acceptance),
            step_size,
            ends: [Place::new(dimension), Place::new(dimension)],
            here: Place::new(dimension),
            whole: Sum::new(dimension),
            part: Sum::new(dimension),
            first: vec![[pair[0].clone(), pair[0].clone(), pair[0].clone()]; depth as usize],
            previous: pair[0].clone(),
            scratch: pair.clone(),
            energy: 0.0,
            depth: 0,
            forward: true,
            leaves: 0,
            growing: false,
            acceptance: 0.0,
            steps: 0.0,
            diverged: false,
        };
        Ok(Self {
            dimension,
            settings,
            blocks: (0..blocks).map(tree).collect(),
            mass: None,
            gradient: vec![T::zero(); dimension * blocks],
            potential: vec![0.0; blocks],
            last: Vec::new(),
            last_gradient: vec![T::zero(); dimension * blocks],
            last_potential: vec![0.0; blocks],
            start_gradient: vec![T::zero(); dimension * blocks],
            adapting: false,
        })
    }

    /// Sets the mass matrix `M` of every block, best near the inverse of the posterior covariance.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive definite.
    pub fn with_mass(mut self, mass: &Matrix) -> Result<Self, SamplerError> {
        let root = mass.decompose("the mass matrix", self.dimension, true)?;
        self.mass = Some(root.map(|value| 1.0 / value.sqrt()));
        Ok(self)
    }

    /// Leapfrog steps of the last trajectory of each block.
    pub fn leaps(&self) -> impl ExactSizeIterator<Item = usize> {
        self.blocks.iter().map(|tree| tree.steps as usize)
    }
}

impl<T: Real> Sampler<T> for Nuts<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let n = self.dimension;
        let Self { blocks, mass, gradient, potential, adapting, settings, .. } = self;
        let mass = mass.as_ref();
        if target.is_fixed() && self.last == theta {
            gradient.copy_from_slice(&self.last_gradient);
            potential.copy_from_slice(&self.last_potential);
        } else {
            target.evaluate(theta, potential, gradient);
        }
        self.start_gradient.copy_from_slice(gradient);
        let columns = theta.chunks_exact(n).zip(gradient.chunks_exact(n)).zip(potential.iter());
        for (tree, ((theta, gradient), &potential)) in blocks.iter_mut().zip(columns) {
            tree.begin(theta, (potential, gradient), mass, *adapting);
        }
        while blocks.iter().any(|tree| tree.growing) {
            for (tree, theta) in
                blocks.iter_mut().zip(theta.chunks_exact_mut(n)).filter(|(tree, _)| tree.growing)
            {
                tree.advance(theta, mass);
            }
            target.evaluate(theta, potential, gradient);
            let columns = gradient.chunks_exact(n).zip(potential.iter());
            for (tree, (gradient, &potential)) in
                blocks.iter_mut().zip(columns).filter(|(tree, _)| tree.growing)
            {
                tree.grow(potential, gradient, mass, settings.depth);
            }
        }
        let (mut acceptance, mut total, mut energy) = (0.0, 0.0, 0.0);
        let kept = self.last_gradient.chunks_exact_mut(n).zip(&mut self.last_potential);
        for ((tree, theta), (last_gradient, last_potential)) in
            blocks.iter_mut().zip(theta.chunks_exact_mut(n)).zip(kept)
        {
            theta.copy_from_slice(&tree.whole.draw);
            last_gradient.copy_from_slice(&tree.whole.gradient);
            *last_potential = tree.whole.potential;
            energy += tree.whole.hamiltonian;
            let accepted = tree.acceptance / tree.steps.max(1.0);
            if *adapting {
                tree.step.update(accepted);
            }
            acceptance += accepted;
            total += tree.whole.potential;
        }
        self.last.clear();
        self.last.extend_from_slice(theta);
        let count = blocks.len() as f64;
        Step {
            acceptance: acceptance / count,
            potential: Some(total),
            divergences: blocks.iter().filter(|tree| tree.diverged).count(),
            step_size: blocks.iter().map(|tree| tree.step_size).sum::<f64>() / count,
            energy: Some(energy),
            leapfrog_steps: blocks.iter().map(|tree| tree.steps as usize).max().unwrap_or(0),
            depth_limited: blocks.iter().filter(|tree| tree.depth == settings.depth).count(),
            tested: true,
            ..Step::default()
        }
    }

    fn shape(&self) -> (usize, usize) {
        (self.dimension, self.blocks.len())
    }

    fn restart_step(&mut self, block: usize, step: f64) {
        self.blocks[block].step.restart_at(step);
    }

    /// Drops the last draw, which belongs to the previous coordinates.
    fn change_coordinates(&mut self, _: &mut dyn FnMut(usize, &mut [T])) {
        self.last.clear();
    }

    fn forget(&mut self) {
        self.last.clear();
    }

    fn start(&self) -> Option<Start<'_, T>> {
        Some(Start { gradient: &self.start_gradient, state: None })
    }

    fn adapt(&mut self, on: bool) {
        if self.adapting && !on {
            self.blocks.iter_mut().for_each(|tree| tree.step.finish());
        }
        self.adapting = on;
    }
}
