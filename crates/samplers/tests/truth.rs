//! What the samplers promise, on targets that the proofs of `moments.rs` do not use.

use alphamf_samplers::random::Streams;
use alphamf_samplers::targets::*;
use alphamf_samplers::*;

fn constant(step: f64) -> GradientSettings {
    GradientSettings { step_size: StepSize::Constant(step), ..GradientSettings::default() }
}

/// Two logarithms of Gamma(5, 1) variables, `u` and `v`, seen as `(u, 2 u + v)`: correlated, with a Hessian that varies.
struct Sheared {
    blocks: usize,
}

const SHEAR: f64 = 2.0;
/// The mean and the variance of the logarithm of a Gamma(5, 1) variable.
const LOG_GAMMA: (f64, f64) = (1.506_117_668_431_8, 0.221_322_955_737_115);

impl Target<f64> for Sheared {
    fn dimension(&self) -> usize {
        2
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        for (theta, gradient) in theta.chunks_exact(2).zip(gradient.chunks_exact_mut(2)) {
            let slope = |x: f64| x.exp() - 5.0;
            let (u, v) = (slope(theta[0]), slope(theta[1] - SHEAR * theta[0]));
            gradient.copy_from_slice(&[u - SHEAR * v, v]);
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        for (theta, potential) in theta.chunks_exact(2).zip(potential) {
            let value = |x: f64| x.exp() - 5.0 * x;
            *potential = value(theta[0]) + value(theta[1] - SHEAR * theta[0]);
        }
    }
}

/// How far the means of `u` and `v` are from the truth, in standard deviations, and the standard error of the worse.
fn sheared_bias(pairs: Pairs, memory: usize, step: f64) -> ([f64; 2], f64) {
    let blocks = 100;
    let settings = HamcmcSettings {
        gradient: constant(step),
        memory,
        initial_scale: InitialScale::Fixed(0.1),
        ..HamcmcSettings::default()
    };
    let sampler = Hamcmc::new(2, blocks, settings, Streams::new(1)).unwrap().with_pairs(pairs).unwrap();
    let start = [LOG_GAMMA.0, (1.0 + SHEAR) * LOG_GAMMA.0].repeat(blocks);
    let mut chain = Chain::new(Sheared { blocks }, sampler, start).unwrap();
    let steps = (400.0 / step) as usize * memory;
    chain.burn_in(steps / 10);
    let mut sums = vec![[0.0; 2]; blocks];
    chain.run(steps, |draw| {
        for (sums, theta) in sums.iter_mut().zip(draw.theta.chunks_exact(2)) {
            sums[0] += theta[0];
            sums[1] += theta[1] - SHEAR * theta[0];
        }
    });
    assert_eq!(chain.statistics().divergences, 0);
    let (mut bias, mut error) = ([0.0; 2], 0.0_f64);
    for (k, bias) in bias.iter_mut().enumerate() {
        let means: Vec<f64> = sums.iter().map(|sums| sums[k] / steps as f64).collect();
        let (mean, variance) = diagnostics::mean_and_variance(&means);
        *bias = (mean - LOG_GAMMA.0) / LOG_GAMMA.1.sqrt();
        error = error.max((variance / blocks as f64 / LOG_GAMMA.1).sqrt());
    }
    (bias, error)
}

/// The pairs of the other chains' moves keep a bias; those of their states do not.
#[test]
fn hamcmc_is_exact_as_its_step_falls_with_pairs_of_states_only() {
    for (pairs, memory, step) in [(Pairs::Moves, 2, 0.04), (Pairs::Moves, 3, 0.04), (Pairs::States, 3, 0.03)]
    {
        let (bias, error) = sheared_bias(pairs, memory, step);
        println!("{pairs:?}, M = {memory}, step {step}: {bias:.4?} +- {error:.4}");
        assert!(error < 0.007, "{error}");
        match pairs {
            Pairs::Moves => assert!(bias[1] < -0.022, "{bias:?}"),
            Pairs::States => assert!(bias[0].abs() < 0.03 && bias[1].abs() < 0.018, "{bias:?}"),
        }
    }
    let two = HamcmcSettings { memory: 2, ..HamcmcSettings::default() };
    let two = Hamcmc::<f64>::new(2, 1, two, Streams::new(1)).unwrap();
    assert!(matches!(two.with_pairs(Pairs::States), Err(SamplerError::Setting { .. })));
}

/// Variances 1 and 1/1000 along axes turned by half a right angle.
fn narrow() -> Gaussian {
    Gaussian::new(vec![0.0; 2], vec![500.5, -499.5, -499.5, 500.5]).unwrap()
}

/// A step that suits the narrow direction of a Gaussian is far too short for the wide one, unless `H` knows it.
#[test]
fn pairs_help_hamcmc() {
    let (memory, step, gamma) = (3, 0.1, 1e-3);
    let run = |mut sampler: Box<dyn Sampler<f64>>| {
        let mut chain = Chain::new(narrow(), &mut *sampler, vec![0.1, 0.1]).unwrap();
        chain.burn_in(2_000);
        let mut traces = vec![Vec::new(); memory];
        chain.run(60_000, |draw| {
            traces[draw.index % memory].push((draw.theta[0] + draw.theta[1]) / 2.0_f64.sqrt())
        });
        let variance = diagnostics::mean_and_variance(&traces.concat()).1;
        let size = diagnostics::effective_size_mean(&traces);
        (size, variance)
    };
    let plain = run(Box::new(Sgld::new(2, 1, constant(step * gamma), Streams::new(1)).unwrap()));
    let initial_scale = InitialScale::Fixed(gamma);
    let settings =
        HamcmcSettings { gradient: constant(step), memory, initial_scale, ..HamcmcSettings::default() };
    for pairs in [Pairs::Moves, Pairs::States] {
        let sampler = Hamcmc::new(2, 1, settings, Streams::new(1)).unwrap().with_pairs(pairs).unwrap();
        let (size, variance) = run(Box::new(sampler));
        println!("{pairs:?}: {size:.0} ({variance:.3}); SGLD: {:.0}", plain.0);
        assert!(size > 20.0 * plain.0, "{pairs:?}: {size} against {}", plain.0);
        assert!((variance - 1.0).abs() < 0.2, "{pairs:?}: {variance}");
    }
}

/// The step of iteration `t`, counted from one, at every step of every sampler without a test.
#[test]
fn step_schedules_begin_at_one() {
    let schedule = StepSize::Decreasing { scale: 0.01, power: 0.51 };
    let options = Options { step_size: Some(schedule), ..Options::default() };
    use SamplerKind::*;
    for kind in [Sgld, Psgld, Sgrld, Hamcmc, Sghmc, Sgnht, Sgrhmc] {
        let sampler = kind.build::<f64>(2, 1, &options, Streams::new(1)).unwrap();
        let mut chain = Chain::new(narrow(), sampler, vec![0.0; 2]).unwrap();
        let mut steps = Vec::new();
        chain.run(3, |draw| steps.push(draw.step.step_size));
        let expected = [0.01_f64, 0.005, 0.01 / 3.0].map(|share| share.powf(0.51));
        for (found, expected) in steps.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{kind}: {steps:?}");
        }
    }
}
