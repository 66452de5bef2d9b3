//! Newtonian Monte Carlo: single-site proposals that match the gradient and curvature of the target.
//!
//! Each step visits every [site](super::Sites) in turn. From the potential's gradient `g` and Hessian `K` at the site's
//! value `x` it fits a two-parameter probability distribution, the law, and proposes from it, with the
//! Metropolis-Hastings test:
//!
//! | support | law | parameters |
//! |---|---|---|
//! | real, `K` positive definite | Normal | mean `x - K^-1 g`, precision `K` |
//! | real, otherwise | Cauchy | `P = K + g g' / m`, `m = (1 + d) / 2`; location `x - P^-1 g`, scale `A = P c / 2m`, `c = 1 / (1 - g' P^-1 g / 2m)` |
//! | half line | Gamma | shape `1 + x^2 K`, rate `x K + g` |
//! | simplex | Dirichlet | `1 + x_i^2 (K_ii - min_j K_ij)` |
//! | interval, as (0, 1) | Beta | `1 + x^2 ((1 - x) K - g)`, `1 + (1 - x)^2 (x K + g)` |
//! | discrete | its own law | none: the potential at every value |
//!
//! **Source.** `newtonian` section 3, after Minka (2000). Its Cauchy log-density, `-log(1 + q)`, cannot be normalised
//! in two dimensions or more; here the exponent is that of the multivariate Cauchy law, which agrees for one. Where a
//! fit does not exist the proposal is a Normal around `x` with the Hessian's eigenvalues made positive, or a Gamma or
//! Dirichlet law of mean `x`; any choice that is a function of the state is valid. For an indefinite Hessian, the paper
//! replaces negative eigenvalues of the covariance by a very small positive number, around the Newton mean:
//! [`Indefinite::SmallVariance`]. These proposals are hardly ever accepted, as the reverse move would have to end
//! within this small distance of the start. The law of intervals is matched like the others.
//! **Local proposals.** Where the curvature passes through zero the fitted law is far too wide, and the published chain
//! may stay there for thousands of steps. One proposal in eight, chosen independently of the state, is therefore local:
//! a Normal around `x` of precision `|K| + g g'`, or a Gamma or Dirichlet law of mean `x`, with a width set by gradient
//! and curvature.
//! **Burn-in.** From a distant start, a Newton step is almost always good and almost always rejected: the reverse move
//! is too improbable. During adaptation, the sampler therefore accepts every proposal that lowers the potential by more
//! than 10 nats. The new potential must be finite, and the new state must permit a fitted law.
//! **Parameters.** None: proposals take their scale from the Hessian, so a warm-up has no metric or step to adapt.
//! **Cost.** Two expansions per site and step, `d^3 / 3` for a site of `d` rows; one expansion for each value of a discrete
//! site. Nothing else depends on the size of the state.
//! **Bias.** None.
//! **Use where** second derivatives are cheap, scales differ over the state (funnels), or conditionals are near conjugate.
//! **Do not use where** a site has many dimensions and the posterior is far from Gaussian (proposals are rejected), or sites are
//! strongly correlated (each moves within its conditional).

mod law;
#[cfg(test)]
mod tests;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::checks::{check, check_positive, check_shape};
use super::{Real, Sampler, SamplerError, Site, Sites, Step, Support, Target};
use crate::random::{SeedTree, SeededRng};
use law::{Family, Law};

/// Decrease of the potential, in nats, that only a chain far from the bulk of its target can make.
const FAR: f64 = 10.0;

/// Fraction of local proposals: high enough that a chain is not stuck for long, low enough to cost little where the fit
/// is perfect.
const LOCAL_FRACTION: f64 = 0.125;

/// The proposal on the real line where the Hessian is not positive definite.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Indefinite {
    /// A Cauchy law where one fits, else a Normal around the state. The default.
    #[default]
    Cauchy,
    /// A Normal around the Newton step, whose covariance has this variance, above 0, in place of negative eigenvalues:
    /// as printed in `newtonian` section 3.1.
    SmallVariance(f64),
}

/// The order in which a step visits the sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scan {
    /// In the order of the target's indices. The default.
    #[default]
    InOrder,
    /// Each once, in a random order that is redrawn at every step.
    Shuffled,
    /// As many visits as sites, each to a random site: the only reversible choice.
    Random,
}

/// Newtonian Monte Carlo; see the [module](self).
#[derive(Debug, Clone)]
pub struct Newtonian<T> {
    dimension: usize,
    streams: Vec<SeededRng>,
    laws: Vec<Law>,
    reverse: Law,
    before: Expansion,
    after: Expansion,
    proposed: Vec<T>,
    old: Vec<f64>,
    new: Vec<f64>,
    local_fraction: f64,
    scan: Scan,
    order: Vec<usize>,
    order_stream: SeededRng,
    /// The potentials of every value of a discrete site, block after block.
    values: Vec<f64>,
    /// Whether the current proposal of each block is local.
    local: Vec<bool>,
    /// Whether the current step of each block met NaN.
    diverged: Vec<bool>,
    adapting: bool,
}

/// Potential, gradient and Hessian with respect to one site, in every block.
#[derive(Debug, Clone, Default)]
struct Expansion {
    potential: Vec<f64>,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
}

impl Expansion {
    fn resize(&mut self, rows: usize, blocks: usize) {
        self.potential.resize(blocks, 0.0);
        self.gradient.resize(rows * blocks, 0.0);
        self.hessian.resize(rows * rows * blocks, 0.0);
    }

    fn of(&self, rows: usize, block: usize) -> (&[f64], &[f64]) {
        (&self.gradient[block * rows..][..rows], &self.hessian[block * rows * rows..][..rows * rows])
    }
}

impl<T: Real> Newtonian<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If `dimension` or `blocks` is 0.
    pub fn new(dimension: usize, blocks: usize, streams: SeedTree) -> Result<Self, SamplerError> {
        check_shape(dimension, blocks)?;
        let noise = streams.child(0);
        Ok(Self {
            dimension,
            streams: (0..blocks as u64).map(|block| noise.rng(block)).collect(),
            laws: vec![Law::default(); blocks],
            reverse: Law::default(),
            before: Expansion::default(),
            after: Expansion::default(),
            proposed: vec![T::zero(); dimension * blocks],
            old: Vec::new(),
            new: Vec::new(),
            local_fraction: LOCAL_FRACTION,
            scan: Scan::InOrder,
            order: Vec::new(),
            order_stream: streams.child(1).rng(0),
            values: Vec::new(),
            local: vec![false; blocks],
            diverged: vec![false; blocks],
            adapting: false,
        })
    }

    /// Makes this fraction of the proposals local; 0 is the published sampler. Default 1/8.
    ///
    /// # Errors
    /// If the fraction is not in [0, 1].
    pub fn with_local_fraction(mut self, fraction: f64) -> Result<Self, SamplerError> {
        check("Newtonian local fraction", fraction, "in [0, 1]", (0.0..=1.0).contains(&fraction))?;
        self.local_fraction = fraction;
        Ok(self)
    }

    /// Chooses the proposal where the Hessian is not positive definite.
    ///
    /// # Errors
    /// If a variance is not a finite number above 0.
    pub fn with_indefinite(mut self, indefinite: Indefinite) -> Result<Self, SamplerError> {
        if let Indefinite::SmallVariance(small) = indefinite {
            check_positive("Newtonian small variance", small)?;
        }
        self.laws.iter_mut().for_each(|law| law.indefinite = indefinite);
        self.reverse.indefinite = indefinite;
        Ok(self)
    }

    /// Chooses the order in which sites are visited.
    #[must_use]
    pub fn with_scan(mut self, scan: Scan) -> Self {
        self.scan = scan;
        self
    }

    /// Sets the order of the sites in this step.
    fn arrange(&mut self, sites: usize) {
        let Self { scan, order, order_stream, .. } = self;
        if order.len() != sites {
            order.clear();
            order.extend(0..sites);
        }
        match scan {
            Scan::InOrder => (),
            Scan::Shuffled => order.shuffle(order_stream),
            Scan::Random => order.iter_mut().for_each(|site| *site = order_stream.random_range(0..sites)),
        }
    }

    /// Draws one discrete site of every block from its conditional distribution.
    fn draw_discrete(
        &mut self,
        sites: &mut dyn Sites<T>,
        index: usize,
        (row, count): (usize, usize),
        theta: &mut [T],
    ) {
        let (n, blocks) = (self.dimension, self.streams.len());
        self.before.resize(1, blocks);
        self.values.resize(blocks * count, 0.0);
        let Expansion { potential, gradient, hessian } = &mut self.before;
        for value in 0..count {
            self.proposed.iter_mut().skip(row).step_by(n).for_each(|x| *x = T::narrow(value as f64));
            sites.expand(&self.proposed, index, potential, gradient, hessian);
            for (block, &potential) in potential.iter().enumerate() {
                // A value with NaN for its potential has probability zero.
                let potential = if potential.is_nan() { f64::INFINITY } else { potential };
                self.values[block * count + value] = potential;
            }
        }
        for (block, potentials) in self.values.chunks_exact(count).enumerate() {
            let place = block * n + row;
            let least = potentials.iter().fold(f64::INFINITY, |a: f64, &b| a.min(b));
            if least.is_finite() {
                let weight = |potential: &f64| libm::exp(least - potential);
                let mut left =
                    self.streams[block].random::<f64>() * potentials.iter().map(weight).sum::<f64>();
                let drawn = potentials.iter().position(|potential| {
                    left -= weight(potential);
                    left < 0.0
                });
                // Rounding may leave a remainder: the draw is then the last value of finite potential.
                let last = || potentials.iter().rposition(|potential| potential.is_finite());
                let drawn = drawn.or_else(last).unwrap_or_default();
                theta[place] = T::narrow(drawn as f64);
            } else {
                self.diverged[block] = true;
            }
            self.proposed[place] = theta[place];
        }
    }

    fn load(from: &[T], dimension: usize, block: usize, site: &Site, into: &mut Vec<f64>) {
        into.clear();
        into.extend(from[block * dimension..][site.rows.clone()].iter().map(|x| x.widen()));
    }
}

impl<T: Real> Sampler<T> for Newtonian<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let (n, blocks) = (self.dimension, self.streams.len());
        let sites = super::offered(target.sites(), "Newtonian Monte Carlo", "a single-site view");
        let mut acceptance = 0.0;
        self.diverged.fill(false);
        let count = sites.count();
        self.arrange(count);
        self.proposed.copy_from_slice(theta);
        for visit in 0..count {
            let index = self.order[visit];
            let site = sites.site(index);
            let rows = site.rows.len();
            if let Support::Discrete(values) = site.support {
                self.draw_discrete(sites, index, (site.rows.start, values), theta);
                acceptance += 1.0 / count as f64;
                continue;
            }
            self.before.resize(rows, blocks);
            self.after.resize(rows, blocks);
            let Expansion { potential, gradient, hessian } = &mut self.before;
            sites.expand(theta, index, potential, gradient, hessian);
            for (block, law) in self.laws.iter_mut().enumerate() {
                Self::load(theta, n, block, &site, &mut self.old);
                let (gradient, hessian) = self.before.of(rows, block);
                // The choice does not depend on the state, so each kind leaves the target invariant.
                let local =
                    self.local_fraction > 0.0 && self.streams[block].random::<f64>() < self.local_fraction;
                self.local[block] = local;
                law.fit(local, site.support, &self.old, gradient, hessian);
                self.new.resize(rows, 0.0);
                law.draw(&mut self.streams[block], &mut self.new);
                // Checks the rounded value, which the state stores.
                let inside = |x: &f64| site.support.holds(T::narrow(*x).widen());
                if !self.new.iter().all(inside) {
                    law.family = Family::None;
                    continue;
                }
                let column = &mut self.proposed[block * n..][site.rows.clone()];
                column.iter_mut().zip(&self.new).for_each(|(to, &new)| *to = T::narrow(new));
            }
            let Expansion { potential, gradient, hessian } = &mut self.after;
            sites.expand(&self.proposed, index, potential, gradient, hessian);
            for (block, law) in self.laws.iter().enumerate() {
                Self::load(theta, n, block, &site, &mut self.old);
                Self::load(&self.proposed, n, block, &site, &mut self.new);
                let (gradient, hessian) = self.after.of(rows, block);
                self.reverse.fit(self.local[block], site.support, &self.new, gradient, hessian);
                let log_ratio = self.before.potential[block] - self.after.potential[block]
                    + self.reverse.log_density(&self.old)
                    - law.log_density(&self.new);
                // An infinite potential is an ordinary rejection, NaN is not.
                let outside = self.after.potential[block] == f64::INFINITY;
                let probability =
                    if log_ratio.is_nan() || outside { 0.0 } else { libm::exp(log_ratio.min(0.0)) };
                let fall = self.before.potential[block] - self.after.potential[block];
                // Excludes ends without a fitted law, and a potential of minus infinity, which no later move could
                // lower.
                let is_end = self.reverse.family == Family::None || !self.after.potential[block].is_finite();
                let downhill = self.adapting && fall > FAR && !is_end;
                self.diverged[block] |= log_ratio.is_nan() && !outside;
                let probability = if downhill { 1.0 } else { probability };
                acceptance += probability / (blocks * count) as f64;
                let column = block * n + site.rows.start..block * n + site.rows.end;
                if self.streams[block].random::<f64>() < probability {
                    theta[column.clone()].copy_from_slice(&self.proposed[column]);
                } else {
                    self.proposed[column.clone()].copy_from_slice(&theta[column]);
                }
            }
        }
        let divergences = self.diverged.iter().filter(|diverged| **diverged).count();
        Step { acceptance, divergences, tested: true, ..Step::default() }
    }

    fn shape(&self) -> (usize, usize) {
        (self.dimension, self.streams.len())
    }

    fn adapt(&mut self, on: bool) {
        self.adapting = on;
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        super::check_target(self.shape(), target)?;
        let sites = target.sites();
        super::need(sites.is_some(), "Newtonian Monte Carlo", "a single-site view")?;
        let Some(sites) = sites else { return Ok(()) };
        for index in 0..sites.count() {
            let Site { rows, support } = sites.site(index);
            if rows.end > self.dimension {
                let (what, found) = ("the end of a site's rows", rows.end);
                return Err(SamplerError::Shape { what, found, expected: self.dimension });
            }
            let is_single =
                matches!(support, Support::HalfLine | Support::Interval { .. } | Support::Discrete(_));
            if rows.is_empty() || is_single && rows.len() > 1 {
                let what = if is_single { "a site of one number" } else { "a site" };
                return Err(SamplerError::Shape { what, found: rows.len(), expected: 1 });
            }
            match support {
                Support::Discrete(values) => {
                    check("number of values of a discrete site", values as f64, "at least 1", values > 0)?;
                }
                Support::Interval { low, high } => {
                    check_positive("width of an interval", high - low)?;
                }
                _ => (),
            }
        }
        Ok(())
    }
}
