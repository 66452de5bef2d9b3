//! The bias of samplers without an acceptance test falls with the step as theory has it.

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;

/// Independent blocks of two coordinates with `U = x^2 / 2 + 2 log cosh x` each, whose curvature, the metric, is 1 to 3.
struct Anharmonic {
    blocks: usize,
}

impl Target<f64> for Anharmonic {
    fn dimension(&self) -> usize {
        2
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.iter_mut().zip(theta).for_each(|(g, x)| *g = x + 2.0 * x.tanh());
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        for (potential, theta) in potential.iter_mut().zip(theta.chunks_exact(2)) {
            *potential = theta.iter().map(|&x| potential_at(x)).sum();
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        Some(self)
    }
}

impl Metric<f64> for Anharmonic {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        metric.iter_mut().zip(theta).for_each(|(g, x)| *g = 3.0 - 2.0 * x.tanh().powi(2));
    }
}

fn potential_at(x: f64) -> f64 {
    0.5 * x * x + 2.0 * x.cosh().ln()
}

const BLOCKS: usize = 600;

/// `E x^2` by the trapezoidal rule.
fn truth() -> f64 {
    let moment = |power: i32| -> f64 {
        let points = (-6000..=6000).map(|k| f64::from(k) * 1e-3);
        points.map(|x| x.powi(power) * (-potential_at(x)).exp()).sum()
    };
    moment(2) / moment(0)
}

/// The bias of `E x^2` and its standard error, from the spread over blocks.
fn bias(mut sampler: Box<dyn Sampler<f64>>, steps: usize) -> (f64, f64) {
    let mut target = Anharmonic { blocks: BLOCKS };
    let mut theta = vec![0.5; 2 * BLOCKS];
    let mut sums = vec![0.0; BLOCKS];
    let burn_in = steps / 5;
    for step in 0..burn_in + steps {
        sampler.step(&mut target, &mut theta);
        if step >= burn_in {
            for (sum, theta) in sums.iter_mut().zip(theta.chunks_exact(2)) {
                *sum += 0.5 * (theta[0] * theta[0] + theta[1] * theta[1]) / steps as f64;
            }
        }
    }
    let (mean, variance) = diagnostics::mean_and_variance(&sums);
    (mean - truth(), (variance / BLOCKS as f64).sqrt())
}

fn settings(step: f64) -> GradientSettings {
    GradientSettings { step_size: StepSize::Constant(step), ..GradientSettings::default() }
}

/// A sampler of some step.
type Build = fn(f64) -> Result<Box<dyn Sampler<f64>>, SamplerError>;

const SEEDS: u64 = 9;

fn hamcmc(step: f64, pairs: Pairs) -> Result<Hamcmc<f64>, SamplerError> {
    let settings = HamcmcSettings { gradient: settings(step), memory: 4, ..HamcmcSettings::default() };
    Hamcmc::new(2, BLOCKS, HamcmcSettings { trust_region: 1.0, ..settings }, SeedTree::new(SEEDS))?
        .with_pairs(pairs)
}

#[rustfmt::skip]
const SAMPLERS: [(&str, f64, f64, Build); 5] = [
    ("SGLD", 1.0, 0.3, |step| Ok(Box::new(Sgld::new(2, BLOCKS, settings(step), SeedTree::new(SEEDS))?))),
    ("SGRLD", 1.0, 0.4, |step| Ok(Box::new(Sgrld::new(2, BLOCKS, settings(step), SeedTree::new(SEEDS))?))),
    ("HAMCMC", 1.0, 0.3, |step| Ok(Box::new(hamcmc(step, Pairs::States)?))),
    ("SGHMC", 2.0, 0.8, |step| {
        let settings = SghmcSettings { gradient: settings(step), ..SghmcSettings::default() };
        Ok(Box::new(Sghmc::new(2, BLOCKS, settings, SeedTree::new(SEEDS))?))
    }),
    ("SGNHT", 2.0, 0.4, |step| {
        let settings = SgnhtSettings { gradient: settings(step), ..SgnhtSettings::default() };
        Ok(Box::new(Sgnht::new(2, BLOCKS, settings, SeedTree::new(SEEDS))?))
    }),
    // Not SGRHMC: at its stable steps its bias is within some standard errors of zero, which tells no order.
];

/// The order of the bias over three steps, each half of the last.
#[test]
fn bias_falls_with_the_step_as_theory_has_it() {
    for (name, order, largest, build) in SAMPLERS {
        let found = [1.0, 0.5, 0.25].map(|share| bias(build(share * largest).unwrap(), 2000));
        println!("{name}: {found:.5?}");
        let [(first, _), (second, second_error), (last, last_error)] = found;
        assert!(second.abs() > 5.0 * second_error, "{name}: {found:?}");
        // The next term of the series raises the order at long steps, by one at most.
        let slope = (first / second).abs().log2();
        assert!(slope > order - 0.2 && slope < order + 1.0, "{name}: order {slope}, {found:?}");
        let expected = second.abs() * (0.2 - order).exp2();
        assert!(last.abs() < expected + 3.0 * last_error, "{name}: {found:?}");
    }
}

/// With a Metropolis test there is none.
#[test]
fn tested_hamcmc_has_no_bias_at_any_step() {
    for step in [0.6, 0.15] {
        let sampler = hamcmc(step, Pairs::States).unwrap().with_metropolis().unwrap();
        let (bias, error) = bias(Box::new(sampler), 2000);
        println!("{step}: {bias:.5} +- {error:.5}");
        assert!(bias.abs() < 4.0 * error, "{step}: {bias} +- {error}");
    }
    let mirrored = GradientSettings { mirror: true, ..settings(0.1) };
    let settings = HamcmcSettings { gradient: mirrored, memory: 3, ..HamcmcSettings::default() };
    let sampler =
        Hamcmc::<f64>::new(2, 1, settings, SeedTree::new(1)).unwrap().with_pairs(Pairs::States).unwrap();
    let with = "the Metropolis test of HAMCMC";
    let refused = SamplerError::Incompatible { setting: "mirror", with };
    assert_eq!(sampler.clone().with_metropolis().unwrap_err(), refused);
    let with = "step adaptation of HAMCMC";
    let refused = SamplerError::Incompatible { setting: "mirror", with };
    assert_eq!(sampler.with_step_adaptation(0.9).unwrap_err(), refused);
    let cold =
        HamcmcSettings { gradient: GradientSettings { temperature: 0.0, ..self::settings(0.1) }, ..settings };
    let cold =
        || Hamcmc::<f64>::new(2, 1, cold, SeedTree::new(1)).unwrap().with_pairs(Pairs::States).unwrap();
    assert!(cold().with_metropolis().is_err() && cold().with_step_adaptation(0.9).is_err());
    assert!(hamcmc(0.1, Pairs::Moves).unwrap().with_metropolis().is_err());
    // Nor in the other order.
    let tested = || hamcmc(0.1, Pairs::States).unwrap().with_metropolis().unwrap();
    assert!(tested().with_pairs(Pairs::Moves).is_err() && tested().with_pairs(Pairs::States).is_ok());
}

/// Blocks of `U = e^x - x / 2`: the logarithm of a Gamma(1/2) variable, whose curvature varies without bound.
struct LogGamma {
    blocks: usize,
}

impl Target<f64> for LogGamma {
    fn dimension(&self) -> usize {
        1
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.iter_mut().zip(theta).for_each(|(g, x)| *g = x.exp() - 0.5);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential.iter_mut().zip(theta).for_each(|(u, x)| *u = x.exp() - 0.5 * x);
    }
}

/// A tested chain's pair is that of its present state, however seldom it is asked to refresh it.
#[test]
fn tested_hamcmc_refreshes_at_every_step() {
    for refresh_interval in [1, 8] {
        let settings = HamcmcSettings {
            gradient: settings(0.5),
            memory: 3,
            initial_scale: InitialScale::Fixed(0.5),
            refresh_interval,
            ..HamcmcSettings::default()
        };
        let sampler = Hamcmc::new(1, 200, settings, SeedTree::new(SEEDS)).unwrap();
        let sampler = sampler.with_pairs(Pairs::States).unwrap().with_metropolis().unwrap();
        let mut chain = Chain::new(LogGamma { blocks: 200 }, sampler, vec![-2.0; 200]).unwrap();
        chain.burn_in(600);
        let mut means = vec![0.0; 200];
        chain.run(6000, |draw| means.iter_mut().zip(draw.theta).for_each(|(mean, x)| *mean += x / 6000.0));
        let (mean, variance) = diagnostics::mean_and_variance(&means);
        let error = (variance / 200.0).sqrt();
        println!("interval {refresh_interval}: {mean:.4} +- {error:.4}");
        assert!((mean + 1.963_510).abs() < 4.0 * error && error < 0.05, "{mean} +- {error}");
    }
}
