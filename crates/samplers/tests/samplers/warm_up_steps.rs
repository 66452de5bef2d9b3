//! The warm-up: given steps, folded draws, and a second one after the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;

/// 1,000 observations of a normal law, with a count of passes over all of them.
struct Counted(Arc<AtomicUsize>);

impl Target<f64> for Counted {
    fn dimension(&self) -> usize {
        1
    }

    fn terms(&self) -> usize {
        1000
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        self.0.fetch_add(usize::from(batch.indices().is_none()), Relaxed);
        let term = |i: usize| theta[0] - i as f64 / 500.0;
        gradient[0] = batch.scale() * batch.iter().map(term).sum::<f64>();
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        self.0.fetch_add(1, Relaxed);
        potential[0] = 500.0 * (theta[0] - 0.999).powi(2);
    }
}

/// The one pass is the check of the start.
#[test]
fn given_steps_cost_no_pass_over_all_data() {
    use SamplerKind::*;
    for kind in [Sgld, Psgld, Sghmc, Sgnht, Hamcmc] {
        for (step_size, mirror) in [(Some(1e-4), false), (Some(1e-4), true), (None, false)] {
            let step_size = step_size.map(StepSize::Constant);
            let options =
                SamplerOptions { minibatch: Some(10), step_size, mirror, ..SamplerOptions::default() };
            let passes = Arc::new(AtomicUsize::new(0));
            let sampler = kind.build::<f64>(1, 1, &options, SeedTree::new(1)).unwrap();
            let mut chain = Chain::new(Counted(Arc::clone(&passes)), sampler, vec![1.0]).unwrap();
            chain.burn_in(200);
            chain.run(10, |_| ());
            let passes = passes.load(Relaxed);
            assert_eq!(passes == 1, step_size.is_some(), "{kind}, {step_size:?}, {mirror}: {passes} passes");
        }
    }
}

const DEVIATIONS: [f64; 2] = [1e-4, 1e4];

fn wide() -> impl Target<f64> {
    from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
        let x = [theta[0] / DEVIATIONS[0], theta[1] / DEVIATIONS[1]];
        (0..2).for_each(|k| gradient[k] = x[k] / DEVIATIONS[k]);
        0.5 * (x[0] * x[0] + x[1] * x[1])
    })
}

/// A second warm-up that is too short for a window keeps the metric of the first, and the sampler moves on.
#[test]
fn a_short_second_warm_up_keeps_the_metric() {
    type Inner = Box<dyn Sampler<f64>>;
    let nuts = Nuts::new(2, 1, NutsSettings::default(), SeedTree::new(1)).unwrap();
    let hamcmc =
        Hamcmc::new(2, 1, HamcmcSettings { memory: 4, ..HamcmcSettings::default() }, SeedTree::new(1));
    let hamcmc = hamcmc.unwrap().with_pairs(Pairs::States).unwrap();
    let samplers: [&dyn Fn() -> Inner; 3] = [
        &|| Box::new(nuts.clone()),
        &|| Box::new(hamcmc.clone().with_step_adaptation(0.98).unwrap()),
        &|| Box::new(hamcmc.clone().with_metropolis().unwrap().with_step_adaptation(0.574).unwrap()),
    ];
    for (k, steps) in (0..12).map(|k| (k / 4, [0, 1, 5, 12][k % 4])) {
        let sampler =
            Preconditioned::new(samplers[k](), WarmUpSettings::default(), SeedTree::new(2)).unwrap();
        let mut chain = Chain::new(wide(), sampler, DEVIATIONS.to_vec()).unwrap();
        let scales = |chain: &Chain<f64, _, Preconditioned<f64, Inner>>| chain.sampler().scales().collect();
        chain.burn_in(500);
        let learned: Vec<f64> = scales(&chain);
        assert!((0..2).all(|k| (0.5..2.0).contains(&(learned[k] / DEVIATIONS[k]))), "{learned:?}");
        chain.burn_in(steps);
        let kept: Vec<f64> = scales(&chain);
        assert_eq!(kept, learned, "{steps}");
        chain.run(300, |_| ());
        let statistics = chain.statistics();
        assert!(statistics.acceptance() > 0.1 && statistics.divergences == 0, "{k}, {steps}: {statistics:?}");
    }
}

/// By name, a sampler that folds its draws finds a step for a target of any scale, at a fold, too.
#[test]
fn folded_draws_have_a_step_of_any_scale() {
    for scale in [1e-3, 1e3] {
        // Of exponential and of half-normal law, each of mean `scale`.
        let target = from_fn(2, move |theta: &[f64], gradient: &mut [f64]| {
            let x = [theta[0] / scale, theta[1] / scale];
            gradient[0] = 1.0 / scale;
            gradient[1] = x[1] * std::f64::consts::FRAC_2_PI / scale;
            if x[0] < 0.0 || x[1] < 0.0 {
                gradient.fill(f64::NAN);
                return f64::INFINITY;
            }
            x[0] + x[1].powi(2) / std::f64::consts::PI
        });
        let starts = [[0.2, 2.0], [0.6, 1.4], [1.4, 0.6], [2.5, 0.2]].map(|x| x.map(|x| scale * x).to_vec());
        let options = SamplerOptions { mirror: true, ..SamplerOptions::default() };
        for kind in [SamplerKind::Sgld, SamplerKind::Psgld] {
            let schedule = Schedule { burn_in: 1000, draws: 20_000 };
            let result = sample(&target, &starts, schedule, SeedTree::new(3), |streams| {
                kind.build::<f64>(2, 1, &options, streams)
            })
            .unwrap();
            assert!(result.min_effective_size() > 100.0, "{kind}, {scale}: {:?}", result.parameters);
            for parameter in &result.parameters {
                let ratio = parameter.mean / scale;
                let known = if kind == SamplerKind::Psgld { 0.5 } else { 0.05 };
                let bound = known + 5.0 * parameter.standard_error / scale;
                assert!((ratio - 1.0).abs() < bound, "{kind}, {scale}: {parameter:?}");
            }
        }
    }
}

/// A warm-up that ends with a window keeps a step that fits the noise of the minibatches.
#[test]
fn warm_ups_that_end_with_a_window_keep_a_step_for_the_noise() {
    use SamplerKind::*;
    let target = targets::LinearGaussian::synthetic(2, 10_000, 4.0, 0.5, SeedTree::new(8));
    let start = target.posterior().mean().to_vec();
    let options = SamplerOptions { minibatch: Some(100), ..SamplerOptions::default() };
    for kind in [Sgld, Psgld, Sghmc, Sgnht, Hamcmc] {
        let step_after = |steps: usize| {
            let sampler = kind.build::<f64>(2, 1, &options, SeedTree::new(1)).unwrap();
            let mut chain = Chain::new(target.clone(), sampler, start.clone()).unwrap();
            chain.warm_up(1000);
            chain.run(steps, |_| ());
            chain.adapt(false);
            let mut step_size = 0.0;
            chain.run(1, |draw| step_size = draw.step.step_size);
            step_size
        };
        // HAMCMC moves four chains in turn.
        let end = if kind == Hamcmc { 120 } else { 70 };
        let (before, with) = (step_after(end - 1), step_after(end));
        assert!((0.5..2.0).contains(&(with / before)), "{kind}: {with} after {before}");
    }
}

/// The step of PSGLD is that of the gradients in the coordinates of the warm-up, not in those before.
#[test]
fn psgld_does_not_leap_when_the_coordinates_change() {
    const DEVIATION: f64 = 1e-8;
    let target = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        gradient[0] = theta[0] / DEVIATION / DEVIATION;
        0.5 * (theta[0] / DEVIATION).powi(2)
    });
    let sampler =
        SamplerKind::Psgld.build::<f64>(1, 1, &SamplerOptions::default(), SeedTree::new(1)).unwrap();
    let mut chain = Chain::new(target, sampler, vec![DEVIATION]).unwrap();
    chain.warm_up(1000);
    let mut furthest = 0.0_f64;
    chain.run(1000, |draw| furthest = furthest.max((draw.theta[0] / DEVIATION).abs()));
    assert!(furthest < 10.0, "{furthest} deviations away");
}
