//! Newtonian Monte Carlo: single-site proposals that match the gradient and curvature of the target.
//!
//! Each step visits every [site](super::Sites) in turn. From the potential's gradient `g` and Hessian `K` at the
//! site's value `x` it fits a two-parameter law and proposes from it, with the Metropolis-Hastings test:
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
//! **Source.** `newtonian` section 3, after Minka (2000). Its Cauchy log-density, `-log(1 + q)`, cannot be
//! normalised in two dimensions or more; here the exponent is that of the multivariate Cauchy law, which agrees
//! for one. Where a fit does not exist the proposal is a Normal around `x` with the Hessian's eigenvalues made
//! positive, or a Gamma or Dirichlet law of mean `x`; any function of the state is a valid choice. The paper's remedy
//! for an indefinite Hessian, negative eigenvalues of the covariance made a very small positive number around the
//! Newton mean, is [`Indefinite::SmallVariance`]: as the way back would have to end within that small number of the
//! start, such proposals are hardly ever accepted. The law of intervals is matched like the others.
//! **Local proposals.** Where the curvature passes through zero the fitted law is far too wide, and the published
//! chain may stay there for thousands of steps. One proposal in eight, chosen regardless of the state, is therefore
//! local: a Normal around `x` of precision `|K| + g g'`, or a Gamma or Dirichlet law of mean `x`, as narrow as the
//! gradient and the curvature demand.
//! **Burn-in.** From a far start a Newton step is almost always right and almost always rejected: the way back is
//! too improbable. While it adapts, the sampler therefore takes every proposal that lowers the potential by more than 10 nats.
//! **Parameters.** None: proposals take their scale from the Hessian, so a warm-up has no metric or step to adapt. **Cost.** Two expansions per site and step, `d^3 / 3` for a site of `d` rows; one expansion for
//! each value of a discrete site. Nothing else depends on the size of the state.
//! **Bias.** None.
//! **Use where** second derivatives are cheap, scales differ over the state (funnels), or conditionals are near conjugate.
//! **Do not use where** a site has many dimensions and the posterior is far from Gaussian (proposals are rejected), or sites are
//! strongly correlated (each moves within its conditional).

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Gamma};

use super::dense::{cholesky, eigen, log_determinant, solve, solve_lower_transposed};
use super::gradient::{check, check_shape};
use super::vector::dot;
use super::{Real, Sampler, SamplerError, Site, Sites, Step, Support, Target};
use crate::random::{SeedTree, SeededRng};

/// A fall of the potential, in nats, that only a chain far from its target can make.
const FAR: f64 = 10.0;

/// Often enough that a chain is not held for long, seldom enough that a perfect fit loses little.
const LOCAL_SHARE: f64 = 0.125;

/// What proposes on the real line where the Hessian is not positive definite.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Indefinite {
    /// A Cauchy law where one fits, else a Normal around the state. The default.
    #[default]
    Cauchy,
    /// A Normal around the Newton step, in whose covariance this variance, above 0, stands for what is negative: as
    /// printed in `newtonian` section 3.1.
    SmallVariance(f64),
}

/// In which order a step visits the sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scan {
    /// As the target numbers them. The default.
    #[default]
    InOrder,
    /// Each once, in a new random order at every step.
    Shuffled,
    /// As many as there are, each drawn at random: this alone makes a chain that is reversible.
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
    local_share: f64,
    scan: Scan,
    order: Vec<usize>,
    order_stream: SeededRng,
    /// The potentials of every value of a discrete site, block after block.
    values: Vec<f64>,
    /// Whether the present proposal of each block is local.
    local: Vec<bool>,
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

#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Family {
    /// Nothing could be fitted: the derivatives are not finite.
    #[default]
    None,
    Normal,
    Cauchy,
    Gamma,
    Dirichlet,
    /// Its parameters are followed by the lower end and the width of the interval.
    Beta,
}

/// A fitted proposal.
#[derive(Debug, Clone, Default)]
struct Law {
    family: Family,
    /// Mean or location; Gamma shape and rate; Dirichlet concentrations.
    parameters: Vec<f64>,
    /// Cholesky factor of the precision.
    factor: Vec<f64>,
    scratch: Vec<f64>,
    indefinite: Indefinite,
}

impl Law {
    /// The proposal from `x`: fitted, or `local`.
    fn fit(&mut self, local: bool, support: Support, x: &[f64], gradient: &[f64], hessian: &[f64]) {
        if local {
            self.fit_locally(support, x, gradient, hessian);
        } else {
            self.fit_newtonian(support, x, gradient, hessian);
        }
    }

    fn fit_newtonian(&mut self, support: Support, x: &[f64], gradient: &[f64], hessian: &[f64]) {
        self.family = Family::None;
        self.parameters.clear();
        if !gradient.iter().chain(hessian).all(|value| value.is_finite()) {
            return;
        }
        match support {
            Support::Real => self.fit_real(x, gradient, hessian),
            Support::HalfLine => {
                let (x, g, h) = (x[0], gradient[0], hessian[0]);
                let (shape, rate) = (1.0 + x * x * h, x * h + g);
                let valid = shape > 0.0 && rate > 0.0 && shape.is_finite() && rate.is_finite();
                let fallback = [2.0, 2.0 / x];
                self.parameters.extend(if valid { [shape, rate] } else { fallback });
                self.family = Family::Gamma;
            }
            Support::Simplex => {
                let n = x.len();
                for i in 0..n {
                    let others = (0..n).filter(|&j| j != i).map(|j| hessian[j * n + i]);
                    let concentration =
                        1.0 + x[i] * x[i] * (hessian[i * n + i] - others.fold(f64::INFINITY, f64::min));
                    let valid = concentration > 0.0 && concentration.is_finite();
                    self.parameters.push(if valid { concentration } else { n as f64 * x[i] });
                }
                self.family = Family::Dirichlet;
            }
            Support::Interval { low, high } => {
                let width = high - low;
                let (u, g, h) = ((x[0] - low) / width, width * gradient[0], width * width * hessian[0]);
                let v = 1.0 - u;
                let fitted = [1.0 + u * u * (v * h - g), 1.0 + v * v * (u * h + g)];
                // A law that is next to all at an end is drawn there by rounding.
                let valid = fitted.iter().all(|p| *p >= 0.5 && p.is_finite());
                self.parameters.extend(if valid { fitted } else { [1.0 + 2.0 * u, 1.0 + 2.0 * v] });
                self.parameters.extend([low, width]);
                self.family = Family::Beta;
            }
            Support::Discrete(_) => (),
        }
    }

    /// A law around `x` that reaches no further than the gradient and the curvature along every direction say that
    /// the density stays alike: for the real line a Normal of precision `|K| + g g'`, elsewhere a law of mean `x`.
    fn fit_locally(&mut self, support: Support, x: &[f64], gradient: &[f64], hessian: &[f64]) {
        self.family = Family::None;
        self.parameters.clear();
        if !gradient.iter().chain(hessian).all(|value| value.is_finite()) {
            return;
        }
        match support {
            Support::Real => {
                self.parameters.extend_from_slice(x);
                if self.factor_absolute(gradient, hessian, 1.0) {
                    self.family = Family::Normal;
                }
            }
            Support::HalfLine => {
                let (g, h) = (x[0] * gradient[0], x[0] * x[0] * hessian[0]);
                let shape = 2.0 + h.abs() + g * g;
                self.parameters.extend([shape, shape / x[0]]);
                self.family = Family::Gamma;
            }
            Support::Simplex => {
                let n = x.len();
                // Only differences between the slopes matter where the sum is fixed.
                let mean: f64 = dot(x, gradient);
                let steepest = (0..n).map(|i| x[i] * (gradient[i] - mean).powi(2)).sum::<f64>();
                let most = (0..n).map(|i| x[i] * hessian[i * n + i].abs()).fold(0.0, f64::max);
                let total = n as f64 + steepest + most;
                self.parameters.extend(x.iter().map(|x| total * x));
                self.family = Family::Dirichlet;
            }
            Support::Interval { low, high } => {
                let width = high - low;
                let (u, g, h) = ((x[0] - low) / width, width * gradient[0], width * width * hessian[0]);
                let v = 1.0 - u;
                let total = 2.0 + u * v * (h.abs() + g * g);
                self.parameters.extend([1.0 + total * u, 1.0 + total * v, low, width]);
                self.family = Family::Beta;
            }
            Support::Discrete(_) => (),
        }
    }

    /// Factors the Hessian with the absolute values of its eigenvalues, plus `weight g g'`.
    fn factor_absolute(&mut self, gradient: &[f64], hessian: &[f64], weight: f64) -> bool {
        let n = gradient.len();
        let Self { factor, scratch, .. } = self;
        factor.clear();
        factor.extend_from_slice(hessian);
        eigen(factor, n, scratch);
        let largest = scratch[n * n..].iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let floor = if largest > 0.0 { 1e-3 * largest } else { 1.0 };
        factor.clear();
        factor.extend((0..n * n).map(|k| weight * gradient[k % n] * gradient[k / n]));
        let (vectors, values) = scratch.split_at(n * n);
        for (vector, value) in vectors.chunks_exact(n).zip(values) {
            let value = value.abs().max(floor);
            for j in 0..n {
                for i in 0..n {
                    factor[j * n + i] += value * vector[i] * vector[j];
                }
            }
        }
        cholesky(factor, n)
    }

    fn fit_real(&mut self, x: &[f64], gradient: &[f64], hessian: &[f64]) {
        let n = x.len();
        let Self { family, parameters, factor, scratch, .. } = self;
        let newton_step = |factor: &[f64], parameters: &mut Vec<f64>, scratch: &mut Vec<f64>| {
            scratch.clear();
            scratch.extend_from_slice(gradient);
            solve(factor, scratch);
            parameters.extend(x.iter().zip(scratch.iter()).map(|(x, step)| x - step));
        };
        factor.clear();
        factor.extend_from_slice(hessian);
        if cholesky(factor, n) {
            newton_step(factor, parameters, scratch);
            *family = Family::Normal;
            return;
        }
        if let Indefinite::SmallVariance(small) = self.indefinite {
            self.fit_printed(x, gradient, hessian, small);
            return;
        }
        let exponent = 0.5 * (1 + n) as f64;
        factor.clear();
        factor.extend((0..n * n).map(|k| hessian[k] + gradient[k % n] * gradient[k / n] / exponent));
        if cholesky(factor, n) {
            newton_step(factor, parameters, scratch);
            let share = dot(gradient, scratch) / (2.0 * exponent);
            if share < 1.0 {
                let scale = (1.0 / (1.0 - share) / (2.0 * exponent)).sqrt();
                factor.iter_mut().for_each(|value| *value *= scale);
                *family = Family::Cauchy;
                return;
            }
            parameters.clear();
        }
        self.parameters.extend_from_slice(x);
        if self.factor_absolute(gradient, hessian, 0.0) {
            self.family = Family::Normal;
        }
    }

    /// The Newton step from `x`, and the inverse Hessian with `small` for its negative eigenvalues.
    fn fit_printed(&mut self, x: &[f64], gradient: &[f64], hessian: &[f64], small: f64) {
        let n = x.len();
        let Self { family, parameters, factor, scratch, .. } = self;
        factor.clear();
        factor.extend_from_slice(hessian);
        eigen(factor, n, scratch);
        let (vectors, values) = scratch.split_at(n * n);
        parameters.extend_from_slice(x);
        factor.fill(0.0);
        for (vector, &value) in vectors.chunks_exact(n).zip(values) {
            let share = dot(vector, gradient) / value;
            parameters.iter_mut().zip(vector).for_each(|(mean, v)| *mean -= share * v);
            let precision = if value > 0.0 { value } else { 1.0 / small };
            for j in 0..n {
                for i in 0..n {
                    factor[j * n + i] += precision * vector[i] * vector[j];
                }
            }
        }
        if parameters.iter().all(|mean| mean.is_finite()) && cholesky(factor, n) {
            *family = Family::Normal;
        }
    }

    fn draw(&mut self, stream: &mut SeededRng, out: &mut [f64]) {
        let Self { family, parameters, factor, .. } = self;
        match family {
            Family::None => out.fill(f64::NAN),
            Family::Normal | Family::Cauchy => {
                out.iter_mut().for_each(|z| *z = f64::normal(stream));
                let heavy = if *family == Family::Cauchy { f64::normal(stream).abs() } else { 1.0 };
                solve_lower_transposed(factor, out);
                out.iter_mut().zip(parameters).for_each(|(z, mean)| *z = *mean + *z / heavy);
            }
            Family::Gamma => {
                out[0] =
                    Gamma::new(parameters[0], 1.0 / parameters[1]).map_or(f64::NAN, |law| law.sample(stream));
            }
            Family::Dirichlet => {
                for (x, &concentration) in out.iter_mut().zip(parameters.iter()) {
                    *x = Gamma::new(concentration, 1.0).map_or(f64::NAN, |law| law.sample(stream));
                }
                let sum: f64 = out.iter().sum();
                out.iter_mut().for_each(|x| *x /= sum);
            }
            Family::Beta => {
                let mut part =
                    |shape: f64| Gamma::new(shape, 1.0).map_or(f64::NAN, |law| law.sample(&mut *stream));
                let (a, b) = (part(parameters[0]), part(parameters[1]));
                out[0] = parameters[2] + parameters[3] * a / (a + b);
            }
        }
    }

    fn log_density(&self, x: &[f64]) -> f64 {
        let n = x.len();
        let p = &self.parameters;
        // The squared distance in the metric of the precision L L'.
        let distance = || -> f64 {
            (0..n)
                .map(|j| {
                    let column = &self.factor[j * n..][..n];
                    (j..n).map(|i| column[i] * (x[i] - p[i])).sum::<f64>().powi(2)
                })
                .sum()
        };
        let half = 0.5 * n as f64;
        match self.family {
            Family::None => f64::NAN,
            Family::Normal => {
                0.5 * log_determinant(&self.factor, n)
                    - half * libm::log(2.0 * std::f64::consts::PI)
                    - 0.5 * distance()
            }
            Family::Cauchy => {
                let exponent = half + 0.5;
                libm::lgamma(exponent) - libm::lgamma(0.5) - half * libm::log(std::f64::consts::PI)
                    + 0.5 * log_determinant(&self.factor, n)
                    - exponent * libm::log1p(distance())
            }
            Family::Gamma => {
                p[0] * libm::log(p[1]) - libm::lgamma(p[0]) + (p[0] - 1.0) * libm::log(x[0]) - p[1] * x[0]
            }
            Family::Dirichlet => {
                let terms = p.iter().zip(x).map(|(p, x)| (p - 1.0) * libm::log(*x) - libm::lgamma(*p));
                libm::lgamma(p.iter().sum()) + terms.sum::<f64>()
            }
            Family::Beta => {
                let u = (x[0] - p[2]) / p[3];
                libm::lgamma(p[0] + p[1]) - libm::lgamma(p[0]) - libm::lgamma(p[1])
                    + (p[0] - 1.0) * libm::log(u)
                    + (p[1] - 1.0) * libm::log1p(-u)
                    - libm::log(p[3])
            }
        }
    }
}

impl<T: Real> Newtonian<T> {
    /// For `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If either is zero.
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
            local_share: LOCAL_SHARE,
            scan: Scan::InOrder,
            order: Vec::new(),
            order_stream: streams.child(1).rng(0),
            values: Vec::new(),
            local: vec![false; blocks],
            adapting: false,
        })
    }

    /// Makes this share of the proposals local; 0 is the published sampler. Default 1/8.
    ///
    /// # Errors
    /// If the share is not in [0, 1].
    pub fn with_local_share(mut self, share: f64) -> Result<Self, SamplerError> {
        check("Newtonian share of local proposals", share, "in [0, 1]", (0.0..=1.0).contains(&share))?;
        self.local_share = share;
        Ok(self)
    }

    /// Chooses what proposes where the Hessian is not positive definite.
    ///
    /// # Errors
    /// If a variance is not a finite number above 0.
    pub fn with_indefinite(mut self, indefinite: Indefinite) -> Result<Self, SamplerError> {
        if let Indefinite::SmallVariance(small) = indefinite {
            let holds = small.is_finite() && small > 0.0;
            check("Newtonian small variance", small, "a finite number above 0", holds)?;
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

    /// Sets the order of this step.
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

    /// Draws one discrete site of every block from its own law.
    fn draw_discrete(
        &mut self,
        sites: &mut dyn Sites<T>,
        index: usize,
        (row, count): (usize, usize),
        theta: &mut [T],
    ) -> usize {
        let (n, blocks) = (self.dimension, self.streams.len());
        self.before.resize(1, blocks);
        self.values.resize(blocks * count, 0.0);
        let Expansion { potential, gradient, hessian } = &mut self.before;
        for value in 0..count {
            self.proposed.iter_mut().skip(row).step_by(n).for_each(|x| *x = T::narrow(value as f64));
            sites.expand(&self.proposed, index, potential, gradient, hessian);
            for (block, &potential) in potential.iter().enumerate() {
                // NaN has no place in a law.
                let potential = if potential.is_nan() { f64::INFINITY } else { potential };
                self.values[block * count + value] = potential;
            }
        }
        let mut divergences = 0;
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
                // Rounding may leave a little over: the last value that is possible.
                let last = || potentials.iter().rposition(|potential| potential.is_finite());
                let drawn = drawn.or_else(last).unwrap_or_default();
                theta[place] = T::narrow(drawn as f64);
            } else {
                divergences += 1;
            }
            self.proposed[place] = theta[place];
        }
        divergences
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
        let (mut acceptance, mut divergences) = (0.0, 0);
        let count = sites.count();
        self.arrange(count);
        self.proposed.copy_from_slice(theta);
        for visit in 0..count {
            let index = self.order[visit];
            let site = sites.site(index);
            let rows = site.rows.len();
            if let Support::Discrete(values) = site.support {
                divergences += self.draw_discrete(sites, index, (site.rows.start, values), theta);
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
                // The choice knows nothing of the state, so that each kind keeps the target by itself.
                let local = self.local_share > 0.0 && self.streams[block].random::<f64>() < self.local_share;
                self.local[block] = local;
                law.fit(local, site.support, &self.old, gradient, hessian);
                self.new.resize(rows, 0.0);
                law.draw(&mut self.streams[block], &mut self.new);
                let inside = |x: &f64| match site.support {
                    Support::Real => x.is_finite(),
                    Support::Interval { low, high } => {
                        let rounded = T::narrow(*x).widen();
                        low < rounded && rounded < high
                    }
                    _ => x.is_finite() && *x > 0.0,
                };
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
                divergences += usize::from(log_ratio.is_nan() && !outside);
                let probability =
                    if log_ratio.is_nan() || outside { 0.0 } else { libm::exp(log_ratio.min(0.0)) };
                let fall = self.before.potential[block] - self.after.potential[block];
                let downhill = self.adapting && fall > FAR;
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
        Step { acceptance, divergences, step_size: 1.0, ..Step::default() }
    }

    fn shape(&self) -> (usize, usize) {
        (self.dimension, self.streams.len())
    }

    fn adapt(&mut self, on: bool) {
        self.adapting = on;
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        super::check_target(self.shape(), target)?;
        super::need(target.sites().is_some(), "Newtonian Monte Carlo", "a single-site view")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of `1 / q` times a density over draws from `q` is one, if `q` is the density of its draws.
    fn assert_normalised(law: &mut Law, n: usize, log_density: impl Fn(&[f64]) -> f64) {
        const DRAWS: usize = 100_000;
        let mut stream = SeedTree::new(6).rng(n as u64);
        let (mut x, mut sum, mut squares) = (vec![0.0; n], 0.0, 0.0);
        for _ in 0..DRAWS {
            law.draw(&mut stream, &mut x);
            let ratio = libm::exp(log_density(&x) - law.log_density(&x));
            sum += ratio / DRAWS as f64;
            squares += ratio * ratio / DRAWS as f64;
        }
        let error = ((squares - sum * sum) / DRAWS as f64).sqrt();
        assert!((sum - 1.0).abs() < 4.0 * error && error < 0.02, "{:?}: {sum} +- {error}", law.family);
    }

    fn standard_normal(x: &[f64]) -> f64 {
        -0.5 * dot(x, x) - 0.5 * x.len() as f64 * libm::log(2.0 * std::f64::consts::PI)
    }

    fn assert_parameters(law: &Law, expected: &[f64]) {
        let close = law.parameters.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close && law.parameters.len() == expected.len(), "{law:?}, expected {expected:?}");
    }

    /// Fits `law` to a site at `x` with this gradient and Hessian, and compares its parameters.
    fn asserts_fitted(law: &mut Law) -> impl FnMut(Support, &[f64], &[f64], &[f64], &[f64]) {
        |support, x, gradient, hessian, expected| {
            law.fit(false, support, x, gradient, hessian);
            assert_parameters(law, expected);
        }
    }

    /// Where the target is of the family that proposes, the proposal is the target, from anywhere.
    #[test]
    fn laws_of_the_family_are_fitted_as_they_are() {
        let mut law = Law::default();
        let mut assert_fitted = asserts_fitted(&mut law);
        for x in [0.2, 0.7] {
            // Gamma(3, 2).
            assert_fitted(Support::HalfLine, &[x], &[2.0 - 2.0 / x], &[2.0 / (x * x)], &[3.0, 2.0]);
            // Beta(3, 4.5) on (-1, 2): slopes are by the variable itself.
            let (u, v): (f64, f64) = ((x + 1.0) / 3.0, (2.0 - x) / 3.0);
            let slope = (3.5 / v - 2.0 / u) / 3.0;
            let curvature = (3.5 / (v * v) + 2.0 / (u * u)) / 9.0;
            let interval = Support::Interval { low: -1.0, high: 2.0 };
            assert_fitted(interval, &[x], &[slope], &[curvature], &[3.0, 4.5, -1.0, 3.0]);
            // Dirichlet(2, 5).
            let hessian = [1.0 / (x * x), 0.0, 0.0, 4.0 / (1.0 - x).powi(2)];
            let slopes = [-1.0 / x, -4.0 / (1.0 - x)];
            assert_fitted(Support::Simplex, &[x, 1.0 - x], &slopes, &hessian, &[2.0, 5.0]);
            // N(0.5, 1/4).
            assert_fitted(Support::Real, &[x], &[4.0 * (x - 0.5)], &[4.0], &[0.5]);
        }
    }

    /// Where no law of the family has such derivatives there is another, on both sides of every bound.
    #[test]
    fn what_is_not_of_the_family_gets_a_law_about_the_state() {
        let mut law = Law::default();
        let mut assert_fitted = asserts_fitted(&mut law);
        // A shape of -1 and of 0, a rate of -2.5 and of 0, both infinite, the rate alone.
        for (x, g, h) in [
            (0.5, 10.0, -8.0),
            (0.5, 10.0, -4.0),
            (0.5, -3.0, 1.0),
            (0.5, -1.0, 2.0),
            (1e10, 0.0, 1e300),
            (1.0, 1.7e308, 1e308),
        ] {
            assert_fitted(Support::HalfLine, &[x], &[g], &[h], &[2.0, 2.0 / x]);
        }
        // A concentration of -1.5, of 0, and an infinite one; the other is 2.
        for (own, other, expected) in [
            (-10.0, 0.0, [1.0, 2.0]),
            (-4.0, 0.0, [1.0, 2.0]),
            (1.7e308, -1.7e308, [1.0, 1.0 + 0.25 * (4.0 + 1.7e308)]),
        ] {
            let hessian = [own, other, other, 4.0];
            assert_fitted(Support::Simplex, &[0.5; 2], &[0.0; 2], &hessian, &expected);
        }
        // From 0.6 of the way: concentrations of -2.6 and of -0.6.
        let interval = Support::Interval { low: -1.0, high: 2.0 };
        for (g, h) in [(10.0 / 3.0, 0.0), (-10.0 / 3.0, 0.0)] {
            assert_fitted(interval, &[0.8], &[g], &[h], &[2.2, 1.8, -1.0, 3.0]);
        }
    }

    /// What is fitted has the derivatives that it was fitted to; what is added to all of a simplex' Hessian says nothing.
    #[test]
    fn laws_have_the_derivatives_that_they_are_fitted_to() {
        let mut law = Law::default();
        let falling = [-0.2, 0.1, 0.0, 0.1, 0.6, -0.1, 0.0, -0.1, 0.7];
        let rising = [0.5, 0.1, 0.0, 0.1, 0.6, -0.1, 0.0, -0.1, 0.7];
        for (family, hessian) in [(Family::Cauchy, falling), (Family::Normal, rising)] {
            let (x, gradient) = ([0.5, 0.0, 0.1], [1.0, 0.1, 0.0]);
            law.fit(false, Support::Real, &x, &gradient, &hessian);
            assert_eq!(law.family, family);
            let at = |i: usize, a: f64, j: usize, b: f64| {
                let mut x = x;
                x[i] += a;
                x[j] += b;
                -law.log_density(&x)
            };
            let e = 1e-4;
            for i in 0..3 {
                let slope = (at(i, e, i, 0.0) - at(i, -e, i, 0.0)) / (2.0 * e);
                assert!((slope - gradient[i]).abs() < 1e-6, "{family:?} {i}: {slope}");
                for j in 0..3 {
                    let second = at(i, e, j, e) - at(i, e, j, -e) - at(i, -e, j, e) + at(i, -e, j, -e);
                    let curvature = second / (4.0 * e * e);
                    assert!((curvature - hessian[3 * i + j]).abs() < 1e-5, "{family:?} {i} {j}: {curvature}");
                }
            }
        }
        // Dirichlet(2, 5).
        let x: f64 = 0.3;
        let hessian = [1.0 / (x * x) + 0.7, 0.7, 0.7, 4.0 / (1.0 - x).powi(2) + 0.7];
        law.fit(false, Support::Simplex, &[x, 1.0 - x], &[-1.0 / x, -4.0 / (1.0 - x)], &hessian);
        assert_parameters(&law, &[2.0, 5.0]);
    }

    /// That the factor of `law` is that of `precision`.
    fn assert_precision<const N: usize>(law: &Law, precision: [[f64; N]; N]) {
        for column in 0..N {
            let mut e = precision[column].to_vec();
            solve(&law.factor, &mut e);
            for (row, e) in e.iter().enumerate() {
                assert!((e - f64::from(row == column)).abs() < 1e-9, "{law:?}, expected {precision:?}");
            }
        }
    }

    /// Widths of local proposals, which decide about no law, only about how far a chain moves.
    #[test]
    fn local_laws_reach_as_far_as_the_density_stays_alike() {
        let mut law = Law::default();
        let mut fitted = |support, x: &[f64], gradient: &[f64], hessian: &[f64]| {
            law.fit(true, support, x, gradient, hessian);
            law.clone()
        };
        assert_parameters(&fitted(Support::HalfLine, &[1.5], &[0.4], &[-0.6]), &[3.71, 3.71 / 1.5]);
        let hessian = [2.0, 0.3, 0.1, 0.3, -5.0, 0.2, 0.1, 0.2, 12.0];
        let simplex = fitted(Support::Simplex, &[0.3, 0.4, 0.3], &[1.0, -0.5, 0.2], &hessian);
        // The slopes' mean is 0.16, their spread 0.3864, the greatest share of a curvature 3.6.
        assert_parameters(&simplex, &[0.3, 0.4, 0.3].map(|x| x * (3.0 + 0.3864 + 3.6)));
        let interval = fitted(Support::Interval { low: -1.0, high: 2.0 }, &[0.8], &[0.1], &[-1.5]);
        let total = 2.0 + 0.24 * (13.5 + 0.09);
        assert_parameters(&interval, &[1.0 + 0.6 * total, 1.0 + 0.4 * total, -1.0, 3.0]);
        // Eigenvalues 3 and -1: the absolute value of the matrix is 2 on its diagonal and 1 beside it.
        let real = fitted(Support::Real, &[0.3, 0.4], &[0.5, -0.25], &[1.0, 2.0, 2.0, 1.0]);
        assert_parameters(&real, &[0.3, 0.4]);
        assert_precision(&real, [[2.25, 0.875], [0.875, 2.0625]]);
        // None is taken for less than a thousandth of the largest, and for one where there is none.
        assert_precision(
            &fitted(Support::Real, &[0.0; 2], &[0.0; 2], &[1000.0, 0.0, 0.0, 0.01]),
            [[1000.0, 0.0], [0.0, 1.0]],
        );
        let hessian = [0.1, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1e-6];
        let real = fitted(Support::Real, &[0.0; 3], &[0.0; 3], &hessian);
        assert_precision(&real, [[0.1, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 2e-4]]);
        assert_precision(&fitted(Support::Real, &[0.0; 2], &[0.0; 2], &[0.0; 4]), [[1.0, 0.0], [0.0, 1.0]]);
    }

    /// The Newton step stays, and the direction that falls gets the variance that is asked for.
    #[test]
    fn the_printed_remedy_is_that_of_the_paper() {
        let mut law = Law { indefinite: Indefinite::SmallVariance(0.1), ..Law::default() };
        let hessian = [1.0, 2.0, 2.0, 1.0];
        // The inverse of the Hessian is [-1, 2; 2, -1] / 3.
        law.fit(false, Support::Real, &[0.3, 0.4], &[0.6, -0.3], &hessian);
        assert_eq!(law.family, Family::Normal);
        assert_parameters(&law, &[0.3 + 0.4, 0.4 - 0.5]);
        assert_precision(&law, [[6.5, -3.5], [-3.5, 6.5]]);
        law.fit(false, Support::Real, &[0.0; 3], &[0.0; 3], &[1.0, 0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 4.0]);
        assert_precision(&law, [[1.0, 0.0, 0.0], [0.0, 10.0, 0.0], [0.0, 0.0, 4.0]]);
        // Without a curvature there is no Newton step.
        law.fit(false, Support::Real, &[0.3, 0.4], &[0.6, -0.3], &[1.0, 0.0, 0.0, 0.0]);
        assert_eq!(law.family, Family::None);
    }

    #[test]
    fn densities_are_those_of_the_draws() {
        let mut law = Law::default();
        let precision = [0.5, 0.1, 0.0, 0.1, 0.6, -0.1, 0.0, -0.1, 0.7];
        law.fit(false, Support::Real, &[0.1, 0.2, -0.1], &[0.1, 0.1, 0.0], &precision);
        assert_eq!(law.family, Family::Normal);
        assert_normalised(&mut law, 3, standard_normal);
        // One falling direction along the gradient: a Cauchy law in one and in three dimensions.
        law.fit(false, Support::Real, &[0.5], &[1.0], &[-0.2]);
        assert_eq!(law.family, Family::Cauchy);
        assert_normalised(&mut law, 1, standard_normal);
        let falling = [-0.2, 0.1, 0.0, 0.1, 0.6, -0.1, 0.0, -0.1, 0.7];
        law.fit(false, Support::Real, &[0.5, 0.0, 0.1], &[1.0, 0.1, 0.0], &falling);
        assert_eq!(law.family, Family::Cauchy);
        assert_normalised(&mut law, 3, standard_normal);
        for local in [false, true] {
            law.fit(local, Support::HalfLine, &[1.5], &[0.4], &[0.6]);
            assert_eq!(law.family, Family::Gamma);
            // 3^3 / 2 x^2 exp(-3 x).
            assert_normalised(&mut law, 1, |x| libm::log(13.5 * x[0] * x[0]) - 3.0 * x[0]);
            let hessian = [12.0, 0.0, 0.0, 0.0, 5.0, 1.0, 0.0, 1.0, 6.0];
            law.fit(local, Support::Interval { low: -1.0, high: 2.0 }, &[0.8], &[0.1], &[1.5]);
            assert_eq!(law.family, Family::Beta);
            // Beta(3, 3) has the normaliser 30.
            let share = |x: &[f64]| (x[0] + 1.0) * (2.0 - x[0]) / 9.0;
            assert_normalised(&mut law, 1, |x| libm::log(10.0) + 2.0 * libm::log(share(x)));
            law.fit(local, Support::Simplex, &[0.3, 0.4, 0.3], &[1.0, -0.5, 0.0], &hessian);
            assert_eq!(law.family, Family::Dirichlet);
            // Dirichlet(2, 2, 2) has the normaliser 5!.
            assert_normalised(&mut law, 3, |x| libm::log(120.0 * x[0] * x[1] * x[2]));
        }
    }
}
