//! Newtonian Monte Carlo: coordinates, burn-in and the edge of the support.

use crate::proof::targets::logistic;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::*;
use alphamf_samplers::*;

/// The single-site view of logarithms, of mirrored unknowns and of other units.
#[test]
fn newtonian_steps_see_through_other_coordinates() {
    let gammas = Gammas::new(vec![3.0, 6.0], vec![2.0, 1.0]).unwrap();
    let (mean, _) = gammas.moments()[1];
    let units = [2.0, 0.5];
    let starts = [vec![0.5, 0.5], vec![1.5, 1.5]];
    fn draws<G: Target<f64> + Clone + Send + Sync>(target: &G, starts: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let newtonian = |streams| Newtonian::new(2, 1, streams);
        let schedule = Schedule { burn_in: 100, draws: 3000 };
        sample(target, starts, schedule, SeedTree::new(8), newtonian).unwrap().traces(1)
    }
    for (name, traces, unmap) in [
        ("units", draws(&Scaled::new(gammas.clone(), &units), &starts), (|x| 0.5 * x) as fn(f64) -> f64),
        ("mirrored", draws(&Mirrored::new(gammas.clone()), &starts), f64::abs),
        ("logarithms", draws(&LogMapped::new(gammas), &starts), f64::exp),
    ] {
        let theta: Vec<Vec<f64>> =
            traces.iter().map(|trace| trace.iter().map(|&x| unmap(x)).collect()).collect();
        let (found, error) =
            (diagnostics::mean_and_variance(&theta.concat()).0, diagnostics::standard_error(&theta));
        assert!(
            (found - mean).abs() < 4.0 * error && error < 0.2,
            "{name}: {found} +- {error} against {mean}"
        );
    }
}

/// Far from the mode on a growing slope, Newton steps are good but rejected, as the reverse move is improbable; burn-in
/// accepts them.
#[test]
fn newtonian_burn_in_takes_great_falls_unasked() {
    let end = |adapts: bool| {
        let mut sampler = Newtonian::new(1, 1, SeedTree::new(4)).unwrap();
        Sampler::<f64>::adapt(&mut sampler, adapts);
        let mut chain = Chain::new(Quartic::new(1.0, 0.0), sampler, vec![100.0]).unwrap();
        chain.run(20, |_| ());
        chain.state()[0]
    };
    assert!(end(true) < 10.0 && end(false) > 50.0, "{} {}", end(true), end(false));
}

/// A potential of `0.1 x^2` below one and NaN above; optionally with a label that has no possible value.
#[derive(Clone)]
struct Edge {
    labels: usize,
}

impl Edge {
    fn height(x: f64) -> f64 {
        if x < 1.0 { 0.1 * x * x } else { f64::NAN }
    }
}

impl Target<f64> for Edge {
    fn dimension(&self) -> usize {
        2
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.copy_from_slice(&[0.2 * theta[0], 0.0]);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = Self::height(theta[0]);
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Edge {
    fn count(&self) -> usize {
        1 + self.labels
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: [Support::Real, Support::Discrete(2)][index] }
    }

    fn expand(&mut self, theta: &[f64], index: usize, u: &mut [f64], g: &mut [f64], h: &mut [f64]) {
        if index == 0 {
            (u[0], g[0], h[0]) = (Self::height(theta[0]), 0.2 * theta[0], 0.2);
        } else {
            u[0] = f64::INFINITY;
        }
    }
}

#[test]
fn newtonian_counts_what_is_no_number_and_never_goes_there() {
    let count = |labels| {
        let sampler = Newtonian::new(2, 1, SeedTree::new(4)).unwrap();
        let mut chain = Chain::new(Edge { labels }, sampler, vec![0.0; 2]).unwrap();
        chain.run(100, |draw| {
            assert!(draw.theta[0] < 1.0 && draw.theta[1] == 0.0);
            assert!(draw.step.acceptance <= 1.0 && draw.step.divergences <= 1);
        });
        chain.statistics().divergences
    };
    // Some proposals are beyond the edge. The label fails at every step, and a step counts once, whatever else fails.
    assert!((5..95).contains(&count(0)), "{}", count(0));
    assert_eq!(count(1), 100);
    let edge = Edge { labels: 0 };
    let schedule = Schedule { burn_in: 0, draws: 100 };
    let result =
        sample(&edge, &[vec![0.0; 2]], schedule, SeedTree::new(4), |streams| Newtonian::new(2, 1, streams));
    let warning = result.unwrap().warnings()[0].to_string();
    assert!(warning.contains("steps met a potential or derivatives that are not numbers"), "{warning}");
}

/// Burn-in accepts without a test only decreases of the potential that a converged chain does not meet.
#[test]
fn newtonian_burn_in_leaves_a_settled_chain_alone() {
    let run = |adapts: bool| {
        let mut sampler = Newtonian::new(3, 1, SeedTree::new(4)).unwrap();
        Sampler::<f64>::adapt(&mut sampler, adapts);
        let mut chain = Chain::new(logistic(), sampler, vec![0.0, 1.0, -1.0]).unwrap();
        chain.run(300, |_| ());
        (chain.state().to_vec(), chain.statistics().acceptance())
    };
    assert_eq!(run(true), run(false));
    assert!(run(true).1 < 0.97, "{}", run(true).1);
}

/// A few numbers with one site, which may have no values, no order or a row too many.
struct Wrong {
    site: Site,
    dimension: usize,
}

impl Target<f64> for Wrong {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn gradient(&mut self, _: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.fill(0.0);
    }

    fn potential(&mut self, _: &[f64], potential: &mut [f64]) {
        potential.fill(0.0);
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Wrong {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        self.site.clone()
    }

    fn expand(&mut self, _: &[f64], _: usize, u: &mut [f64], g: &mut [f64], h: &mut [f64]) {
        [u, g, h].into_iter().for_each(|values| values.fill(0.0));
    }
}

#[test]
fn sites_that_cannot_be_drawn_are_refused() {
    let refusal = |rows, support| {
        let sampler = Newtonian::<f64>::new(1, 1, SeedTree::new(1)).unwrap();
        Chain::new(Wrong { site: Site { rows, support }, dimension: 1 }, sampler, vec![0.0]).err()
    };
    assert!(matches!(refusal(0..1, Support::Discrete(0)), Some(SamplerError::Setting { .. })));
    assert!(matches!(refusal(0..2, Support::Real), Some(SamplerError::Shape { found: 2, expected: 1, .. })));
    assert!(refusal(0..1, Support::Discrete(1)).is_none());
    for support in [Support::HalfLine, Support::Interval { low: -1.0, high: 1.0 }, Support::Discrete(2)] {
        let sampler = Newtonian::<f64>::new(2, 1, SeedTree::new(1)).unwrap();
        let target = Wrong { site: Site { rows: 0..2, support }, dimension: 2 };
        let error = Chain::new(target, sampler, vec![0.5; 2]).err();
        assert!(matches!(error, Some(SamplerError::Shape { found: 2, expected: 1, .. })), "{support:?}");
    }
    assert!(matches!(refusal(0..0, Support::Real), Some(SamplerError::Shape { found: 0, .. })));
    for (low, high) in [(1.0, -1.0), (0.0, 0.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
        let error = refusal(0..1, Support::Interval { low, high });
        assert!(matches!(error, Some(SamplerError::Setting { .. })), "{low} {high}");
    }
}

/// A start must lie in the support of every site.
#[test]
fn starts_outside_of_their_support_are_refused() {
    let refuses = |support, start| {
        let sampler = Newtonian::<f64>::new(1, 1, SeedTree::new(1)).unwrap();
        match Chain::new(Wrong { site: Site { rows: 0..1, support }, dimension: 1 }, sampler, vec![start]) {
            Ok(_) => false,
            Err(SamplerError::Start { index: 0, value }) => value == start,
            Err(error) => panic!("{error}"),
        }
    };
    for start in [7.0, 3.0, -1.0, 0.5] {
        assert!(refuses(Support::Discrete(3), start), "{start}");
    }
    let interval = Support::Interval { low: -1.0, high: 2.0 };
    assert!(refuses(interval, 2.0) && refuses(interval, -1.5) && refuses(Support::HalfLine, 0.0));
    assert!(!refuses(Support::Discrete(3), 2.0) && !refuses(interval, 1.9) && !refuses(Support::Real, -1.0));
}

/// Numbers on a simplex sum to one, but for rounding.
#[test]
fn starts_on_a_simplex_sum_to_one() {
    let target = || Dirichlet::new(vec![2.0, 3.0, 4.0]);
    fn refusal<T: Real>(target: impl Target<T>, start: [f64; 3]) -> Option<SamplerError> {
        let sampler = Newtonian::<T>::new(3, 1, SeedTree::new(1)).unwrap();
        Chain::new(target, sampler, start.map(T::narrow).to_vec()).err()
    }
    let third = 1.0 / 3.0;
    for start in [[third; 3], [0.1, 0.2, 0.7]] {
        assert!(refusal::<f32>(target(), start).is_none() && refusal::<f64>(target(), start).is_none());
    }
    for start in [[0.3; 3], [0.5, 0.5, 1e-4]] {
        let error = refusal::<f64>(target(), start);
        assert!(matches!(error, Some(SamplerError::StartSum { index: 0, .. })), "{error:?}");
    }
}

/// Burn-in accepts no state from which nothing can be proposed: every block still moves after it.
#[test]
fn newtonian_burn_in_ends_where_it_can_move_on() {
    const BLOCKS: usize = 200;
    let target = Gammas::new(vec![0.05], vec![1.0]).unwrap().with_blocks(BLOCKS);
    let sampler = Newtonian::<f32>::new(1, BLOCKS, SeedTree::new(6)).unwrap();
    let mut chain = Chain::new(target, sampler, vec![1.0_f32; BLOCKS]).unwrap();
    chain.burn_in(500);
    let start = chain.state().to_vec();
    let mut moved = [false; BLOCKS];
    chain.run(100, |draw| {
        moved.iter_mut().zip(draw.theta).zip(&start).for_each(|((moved, now), start)| *moved |= now != start);
    });
    let still: Vec<f32> = start.iter().zip(moved).filter(|(_, moved)| !moved).map(|(x, _)| *x).collect();
    assert!(still.is_empty(), "{} blocks stay where they are: {still:?}", still.len());
}
