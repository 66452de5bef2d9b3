//! Newtonian Monte Carlo on bounded and discrete sites, in every order, against exact enumeration.

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;

/// A label `k` of three, a share `x` between -1 and 2, and a positive number: together of no known law,
/// `U = a_k + s_k x + 3/2 x^2 + (1 + k/2 + 0.3 x^2) y - 3/2 log y`.
#[derive(Clone)]
struct Mixed {
    blocks: usize,
}

const LOW: f64 = -1.0;
const HIGH: f64 = 2.0;
const HEIGHTS: [f64; 3] = [0.0, 0.7, -0.4];
const SLOPES: [f64; 3] = [-2.0, 0.5, 3.0];

impl Mixed {
    /// Potential, and its first two derivatives in `x` and in `y`.
    fn value(theta: &[f64]) -> (f64, [f64; 2], [f64; 2]) {
        let [k, x, y] = [theta[0], theta[1], theta[2]];
        let k = k as usize;
        let rate = 1.0 + 0.5 * k as f64 + 0.3 * x * x;
        let u = HEIGHTS[k] + SLOPES[k] * x + 1.5 * x * x + rate * y - 1.5 * y.ln();
        let slopes = [SLOPES[k] + 3.0 * x + 0.6 * x * y, rate - 1.5 / y];
        (u, slopes, [3.0 + 0.6 * y, 1.5 / (y * y)])
    }

    /// The probability of each label, and the means of `x`, `x^2` and `y`, with their deviations.
    fn truth() -> Vec<(f64, f64)> {
        const CELLS: usize = 400;
        let (mut norm, mut sums) = (0.0, [[0.0; 2]; 6]);
        for k in 0..3 {
            for i in 0..CELLS {
                for j in 0..CELLS {
                    let x = LOW + (HIGH - LOW) * (i as f64 + 0.5) / CELLS as f64;
                    let y = 16.0 * (j as f64 + 0.5) / CELLS as f64;
                    let theta = [k as f64, x, y];
                    let weight = (-Self::value(&theta).0).exp();
                    norm += weight;
                    for (sum, value) in sums.iter_mut().zip(Self::values(&theta)) {
                        sum[0] += weight * value;
                        sum[1] += weight * value * value;
                    }
                }
            }
        }
        let moment = |[sum, square]: &[f64; 2]| (sum / norm, (square / norm - (sum / norm).powi(2)).sqrt());
        sums.iter().map(moment).collect()
    }

    fn values(theta: &[f64]) -> [f64; 6] {
        let is = |k: f64| f64::from(theta[0] == k);
        [is(0.0), is(1.0), is(2.0), theta[1], theta[1] * theta[1], theta[2]]
    }
}

impl Target<f64> for Mixed {
    fn dimension(&self) -> usize {
        3
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        for (theta, gradient) in theta.chunks_exact(3).zip(gradient.chunks_exact_mut(3)) {
            let [x, y] = Self::value(theta).1;
            gradient.copy_from_slice(&[0.0, x, y]);
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        for (theta, potential) in theta.chunks_exact(3).zip(potential) {
            *potential = Self::value(theta).0;
        }
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Mixed {
    fn count(&self) -> usize {
        3
    }

    fn site(&self, index: usize) -> Site {
        let support = match index {
            0 => Support::Discrete(3),
            1 => Support::Interval { low: LOW, high: HIGH },
            _ => Support::HalfLine,
        };
        Site { rows: index..index + 1, support }
    }

    fn expand(&mut self, theta: &[f64], index: usize, u: &mut [f64], g: &mut [f64], h: &mut [f64]) {
        for (block, theta) in theta.chunks_exact(3).enumerate() {
            let (potential, slopes, bends) = Self::value(theta);
            u[block] = potential;
            if index > 0 {
                (g[block], h[block]) = (slopes[index - 1], bends[index - 1]);
            }
        }
    }
}

/// Means of the values over all draws of blocks that run side by side, and their standard errors.
fn estimate(sampler: Newtonian<f64>, blocks: usize, draws: usize) -> Vec<(f64, f64)> {
    let start = [1.0, 0.5, 1.0].repeat(blocks);
    let mut chain = Chain::new(Mixed { blocks }, sampler, start).unwrap();
    chain.burn_in(100);
    let mut sums = vec![[0.0; 6]; blocks];
    chain.run(draws, |draw| {
        for (sums, theta) in sums.iter_mut().zip(draw.theta.chunks_exact(3)) {
            for (sum, value) in sums.iter_mut().zip(Mixed::values(theta)) {
                *sum += value / draws as f64;
            }
        }
    });
    assert_eq!(chain.statistics().divergences, 0);
    let summary = |k: usize| {
        let means: Vec<f64> = sums.iter().map(|sums| sums[k]).collect();
        let (mean, variance) = diagnostics::mean_and_variance(&means);
        (mean, (variance / blocks as f64).sqrt())
    };
    (0..6).map(summary).collect()
}

#[test]
fn bounded_and_discrete_sites_are_exact_in_every_order() {
    let truth = Mixed::truth();
    let blocks = 100;
    let orders = [(Scan::InOrder, 0.0), (Scan::InOrder, 1.0), (Scan::Shuffled, 0.125), (Scan::Random, 0.125)];
    for (scan, share) in orders {
        let sampler = Newtonian::new(3, blocks, SeedTree::new(5)).unwrap().with_scan(scan);
        let found = estimate(sampler.with_local_fraction(share).unwrap(), blocks, 1_200);
        println!("{scan:?}, {share} local: {found:.4?} of {truth:.4?}");
        for (&(mean, error), &(expected, deviation)) in found.iter().zip(&truth) {
            assert!((mean - expected).abs() < 4.5 * error, "{scan:?} {share}: {found:?} of {truth:?}");
            assert!(error < 0.02 * deviation, "{scan:?} {share}: {found:?} of {truth:?}");
        }
    }
}

/// Counts how often a site is expanded.
#[derive(Clone)]
struct Counting {
    sites: usize,
    touched: usize,
}

impl Target<f64> for Counting {
    fn dimension(&self) -> usize {
        self.sites
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.copy_from_slice(theta);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = theta.iter().map(|x| 0.5 * x * x).sum();
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Counting {
    fn count(&self) -> usize {
        self.sites
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::Real }
    }

    fn expand(&mut self, theta: &[f64], index: usize, u: &mut [f64], g: &mut [f64], h: &mut [f64]) {
        self.touched += 1;
        (u[0], g[0], h[0]) = (0.5 * theta[index] * theta[index], theta[index], 1.0);
    }
}

#[test]
fn a_site_costs_what_it_touches_and_every_order_visits_them() {
    for (scan, all) in [(Scan::InOrder, true), (Scan::Shuffled, true), (Scan::Random, false)] {
        let target = Counting { sites: 50, touched: 0 };
        let sampler = Newtonian::new(50, 1, SeedTree::new(6)).unwrap().with_scan(scan);
        let mut chain = Chain::new(target, sampler.with_local_fraction(0.0).unwrap(), vec![7.0; 50]).unwrap();
        chain.run(1, |_| ());
        assert_eq!(chain.target().touched, 100);
        // Every proposal from a Gaussian's own curvature is accepted.
        assert_eq!(chain.state().iter().all(|x| *x != 7.0), all, "{scan:?}");
        assert!(chain.statistics().acceptance() > 1.0 - 1e-9);
    }
}

/// `U = x^4 - 2 x^2`, concave about zero.
#[test]
fn the_printed_remedy_for_indefinite_curvature_is_exact_and_slow() {
    let law = targets::Quartic::new(1.0, -2.0);
    let truth = law.expectation(|x| x * x);
    for (indefinite, local) in [(Indefinite::SmallVariance(0.01), 0.5), (Indefinite::Cauchy, 0.5)] {
        let blocks = 50;
        let sampler =
            Newtonian::new(1, blocks, SeedTree::new(7)).unwrap().with_indefinite(indefinite).unwrap();
        let sampler = sampler.with_local_fraction(local).unwrap();
        let mut chain = Chain::new(law.clone().with_blocks(blocks), sampler, vec![1.0; blocks]).unwrap();
        chain.burn_in(200);
        let mut sums = vec![0.0; blocks];
        chain.run(4_000, |draw| sums.iter_mut().zip(draw.theta).for_each(|(sum, x)| *sum += x * x / 4e3));
        let (mean, variance) = diagnostics::mean_and_variance(&sums);
        let error = (variance / blocks as f64).sqrt();
        println!("{indefinite:?}: {mean:.4} +- {error:.4} of {truth:.4}");
        assert!((mean - truth).abs() < 4.5 * error && error < 0.01);
    }
    // From states of negative curvature, the printed remedy makes the reverse move improbable: almost nothing is
    // accepted.
    let accepted = |indefinite| {
        let mut target = law.clone().with_blocks(2_000);
        let sampler =
            Newtonian::new(1, 2_000, SeedTree::new(8)).unwrap().with_indefinite(indefinite).unwrap();
        let mut sampler = sampler.with_local_fraction(0.0).unwrap();
        sampler.step(&mut target, &mut vec![0.3; 2_000]).acceptance
    };
    let (printed, cauchy) = (accepted(Indefinite::SmallVariance(1e-4)), accepted(Indefinite::Cauchy));
    println!("accepted: {printed:.4} as printed, {cauchy:.4} by the Cauchy law");
    assert!(printed < 0.1 * cauchy);
    let zero = Newtonian::<f64>::new(1, 1, SeedTree::new(1))
        .unwrap()
        .with_indefinite(Indefinite::SmallVariance(0.0));
    assert!(matches!(zero, Err(SamplerError::Setting { .. })));
}
