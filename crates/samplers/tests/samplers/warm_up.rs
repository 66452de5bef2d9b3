//! The warm-up: default settings on targets of any scale.

use alphamf_samplers::diagnostics::Warning;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::LinearGaussian;
use alphamf_samplers::*;

/// A Gaussian of unlike deviations, coordinates in pairs of correlation 0.8.
fn scaled(scales: &'static [f64]) -> FromFn<f64, impl FnMut(&[f64], &mut [f64]) -> f64 + Clone> {
    from_fn(scales.len(), move |theta: &[f64], gradient: &mut [f64]| {
        const RHO: f64 = 0.8;
        let mut potential = 0.0;
        for (k, scales) in scales.chunks_exact(2).enumerate() {
            let x = [theta[2 * k] / scales[0] - 1.0, theta[2 * k + 1] / scales[1] - 2.0];
            let weight = 1.0 / (1.0 - RHO * RHO);
            potential += 0.5 * weight * (x[0] * x[0] + x[1] * x[1] - 2.0 * RHO * x[0] * x[1]);
            gradient[2 * k] = weight * (x[0] - RHO * x[1]) / scales[0];
            gradient[2 * k + 1] = weight * (x[1] - RHO * x[0]) / scales[1];
        }
        potential
    })
}

const SCALES: [f64; 6] = [1e-4, 1e4, 1.0, 300.0, 0.02, 5.0];

#[test]
fn default_settings_fit_targets_of_any_scale() {
    let target = scaled(&SCALES);
    let starts: Vec<Vec<f64>> = [-1.0, -0.3, 0.4, 1.0]
        .map(|x| SCALES.iter().enumerate().map(|(k, s)| s * (1.0 + (k % 2) as f64 + x)).collect())
        .to_vec();
    for kind in SamplerKind::ALL {
        if matches!(kind, SamplerKind::Sgrld | SamplerKind::Sgrhmc | SamplerKind::Newtonian) {
            continue;
        }
        let options = SamplerOptions::default();
        // Samplers without a test take short steps.
        let draws = match kind {
            SamplerKind::Sgld | SamplerKind::Psgld | SamplerKind::Sghmc | SamplerKind::Sgnht => 10_000,
            SamplerKind::Hamcmc => 10_000,
            _ => 2000,
        };
        let result =
            sample(&target, &starts, Schedule { burn_in: 1500, draws }, SeedTree::new(3), |streams| {
                kind.build::<f64>(6, 1, &options, streams)
            })
            .unwrap();
        let tested = result.runs().all(|run| run.steps().iter().all(|step| step.potential.is_some()));
        // Steps that are not tested bias deviations by some percent, and those of PSGLD by more.
        let (bound, least) = match kind {
            SamplerKind::Psgld => (0.5, 10.0),
            _ if tested => (0.08, 300.0),
            _ => (0.2, 30.0),
        };
        for (k, parameter) in result.parameters.iter().enumerate() {
            let mean = SCALES[k] * if k % 2 == 0 { 1.0 } else { 2.0 };
            let error = (parameter.mean - mean) / parameter.standard_error;
            assert!(error.abs() < 5.0, "{kind}: mean {k} is off by {error} standard errors");
            let ratio = parameter.deviation / SCALES[k];
            assert!((ratio - 1.0).abs() < bound, "{kind}: deviation {k} is {ratio} of its own");
        }
        assert!(result.min_effective_size() > least, "{kind}: {:?}", result.parameters);
        let serious =
            |warning: &Warning| matches!(warning, Warning::Divergences { .. } | Warning::Bias { .. });
        assert!(
            kind == SamplerKind::Psgld || !result.warnings().iter().any(serious),
            "{kind}: {:?}",
            result.warnings()
        );
        if tested {
            assert!(result.max_r_hat() < 1.02, "{kind}: {}", result.max_r_hat());
        }
    }
}

/// Adaptation ends with the last step of the warm-up, whether `burn_in` or `run` takes the steps.
#[test]
fn a_warm_up_ends_by_itself() {
    use SamplerKind::*;
    for kind in [Nuts, Qnhmc, MhBfgs, Sgld, Sghmc, Hamcmc] {
        let build = || kind.build::<f64>(6, 1, &SamplerOptions::default(), SeedTree::new(3)).unwrap();
        let chain = || Chain::new(scaled(&SCALES), build(), SCALES.to_vec()).unwrap();
        let (mut burnt_in, mut warmed_up) = (chain(), chain());
        burnt_in.burn_in(100);
        let mut steps = Vec::new();
        warmed_up.warm_up(100);
        warmed_up.run(100, |draw| steps.push(draw.step.step_size));
        assert!(steps.iter().any(|step| *step != steps[0]), "{kind}: {steps:?}");
        let mut draws = [Vec::new(), Vec::new()];
        for (chain, draws) in [&mut burnt_in, &mut warmed_up].into_iter().zip(&mut draws) {
            chain.run(50, |draw| draws.push((draw.theta.to_vec(), draw.step)));
        }
        assert_eq!(draws[0], draws[1], "{kind}");
    }
    // A step of NUTS has no jitter.
    let nuts = alphamf_samplers::Nuts::new(6, 1, NutsSettings::default(), SeedTree::new(1)).unwrap();
    let mut chain = Chain::new(scaled(&SCALES), nuts, SCALES.to_vec()).unwrap();
    let mut steps = Vec::new();
    chain.warm_up(20);
    chain.run(40, |draw| steps.push(draw.step.step_size));
    assert!(steps[20..].iter().all(|step| *step == steps[20]) && steps[19] != steps[20], "{steps:?}");
    chain.warm_up(20);
    chain.adapt(false);
    chain.run(20, |draw| assert_eq!(draw.step.step_size, steps[20]));
}

/// Samplers return an error for every setting that they lack, and accept all others.
#[test]
fn settings_without_effect_are_refused() {
    use SamplerKind::*;
    let none = SamplerOptions::default();
    let step_size = Some(StepSize::Constant(0.01));
    let adapted = [Sgld, Psgld, Hamcmc, Sghmc, Sgnht, Hmc, MhBfgs, HmcBfgs, Qnhmc, Nuts];
    let tested = [Hmc, MhBfgs, HmcBfgs, Qnhmc, Nuts];
    let folding = [Sgld, Psgld, Sgrld, Hamcmc, Sghmc, Sgnht];
    // Without a metric, others find no step that fits.
    let folding_adapted = [Sgld, Psgld, Sgrld];
    let cases: [(&str, SamplerOptions, &[SamplerKind]); 12] = [
        ("nothing", none, &SamplerKind::ALL),
        ("step", SamplerOptions { step_size, ..none }, &SamplerKind::ALL),
        ("minibatch", SamplerOptions { minibatch: Some(2), ..none }, &SamplerKind::ALL),
        ("limit", SamplerOptions { drift_limit: Some(1.0), ..none }, &SamplerKind::ALL),
        ("metric", SamplerOptions { metric: Some(MetricShape::Dense), ..none }, &adapted),
        ("no metric", SamplerOptions { metric: Some(MetricShape::None), ..none }, &SamplerKind::ALL),
        ("mirror", SamplerOptions { mirror: true, ..none }, &folding_adapted),
        ("mirror, step", SamplerOptions { mirror: true, step_size, ..none }, &folding),
        (
            "mirror, metric",
            SamplerOptions { mirror: true, metric: Some(MetricShape::Diagonal), step_size, ..none },
            &[],
        ),
        ("pairs", SamplerOptions { pairs: Some(Pairs::Moves), ..none }, &[Hamcmc]),
        ("metropolis", SamplerOptions { metropolis: true, ..none }, &[Hamcmc]),
        ("acceptance", SamplerOptions { target_acceptance: Some(0.7), ..none }, &tested),
    ];
    for (name, options, allowed) in cases {
        for kind in SamplerKind::ALL {
            let built = kind.build::<f64>(2, 1, &options, SeedTree::new(1));
            assert_eq!(built.is_ok(), allowed.contains(&kind), "{name}: {kind}");
            assert!(
                built.is_ok() || matches!(built, Err(SamplerError::Incompatible { .. })),
                "{name}: {kind}"
            );
        }
    }
    let tested = SamplerOptions { metropolis: true, target_acceptance: Some(0.7), ..none };
    assert!(Hamcmc.build::<f64>(2, 1, &tested, SeedTree::new(1)).is_ok());
    let fixed = SamplerOptions { step_size, ..tested };
    let moves = SamplerOptions { pairs: Some(Pairs::Moves), ..tested };
    let acceptance = SamplerOptions { target_acceptance: Some(0.7), ..none };
    for (kind, options, expected) in [
        (Sgld, acceptance, "target_acceptance cannot be combined with sgld"),
        (Hamcmc, acceptance, "target_acceptance cannot be combined with hamcmc without metropolis"),
        (Hamcmc, fixed, "target_acceptance cannot be combined with a given step_size of hamcmc"),
        (Hamcmc, moves, "pairs of moves cannot be combined with the Metropolis test of HAMCMC"),
        (Nuts, SamplerOptions { mirror: true, ..none }, "mirror cannot be combined with nuts"),
        (
            Sghmc,
            SamplerOptions { mirror: true, ..none },
            "mirror without step_size cannot be combined with sghmc",
        ),
    ] {
        let error = kind.build::<f64>(2, 1, &options, SeedTree::new(1)).map(drop).unwrap_err().to_string();
        assert_eq!(error, format!("sampler setting {expected}"));
    }
    // Samplers built by their types, not by name, return the same errors.
    let mirror = GradientSettings { mirror: true, ..GradientSettings::default() };
    let sgld = || alphamf_samplers::Sgld::<f64>::new(2, 1, mirror, SeedTree::new(1)).unwrap();
    assert!(Preconditioned::new(sgld(), WarmUpSettings::default(), SeedTree::new(1)).is_err());
    let plain = WarmUpSettings { metric: MetricShape::None, ..WarmUpSettings::default() };
    assert!(Preconditioned::new(sgld(), plain, SeedTree::new(1)).is_ok());
    assert!(alphamf_samplers::Sgrhmc::<f64>::new(2, 1, mirror, SeedTree::new(1)).is_err());
    assert!(recipe::RecipeSampler::new(2, recipe::Langevin, mirror, SeedTree::new(1)).is_err());
}

/// At a fold the mean gradient is the density there, not zero; correct draws must give no warning.
#[test]
fn correct_draws_at_a_fold_are_not_called_biased() {
    let exponential = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        gradient[0] = 1.0;
        if theta[0] < 0.0 { f64::INFINITY } else { theta[0] }
    });
    let starts = [0.2, 0.6, 1.4, 2.5].map(|x| vec![x]);
    let options =
        SamplerOptions { mirror: true, step_size: Some(StepSize::Constant(0.02)), ..Default::default() };
    for kind in [SamplerKind::Sgld, SamplerKind::Sghmc, SamplerKind::Hamcmc] {
        let result = sample(
            &exponential,
            &starts,
            Schedule { burn_in: 1000, draws: 20_000 },
            SeedTree::new(3),
            |streams| kind.build::<f64>(1, 1, &options, streams),
        )
        .unwrap();
        let parameter = result.parameters[0];
        let error = (parameter.mean - 1.0) / parameter.standard_error;
        assert!(error.abs() < 5.0 && parameter.standard_error < 0.1, "{kind}: {parameter:?}");
        let biased = |warning: &Warning| matches!(warning, Warning::Bias { .. });
        assert!(!result.warnings().iter().any(biased), "{kind}: {:?}", result.warnings());
    }
}

/// A step of 0.8 makes the variance of a Langevin chain 1.67 times too large, which the identities of the target
/// detect; 0.05 does not.
#[test]
fn wide_steps_of_samplers_by_type_are_warned_of() {
    use alphamf_samplers::{Hamcmc, Sgfs, Sgld};
    let normal = from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
        gradient.copy_from_slice(theta);
        0.5 * theta.iter().map(|x| x * x).sum::<f64>()
    });
    type Build = fn(GradientSettings, SeedTree) -> Result<Box<dyn Sampler<f64>>, SamplerError>;
    let samplers: [(&str, f64, Build); 4] = [
        ("SGLD", 1.0, |gradient, streams| Ok(Box::new(Sgld::new(2, 1, gradient, streams)?))),
        ("HAMCMC", 1.0, |gradient, streams| {
            let settings = HamcmcSettings { gradient, ..HamcmcSettings::default() };
            Ok(Box::new(Hamcmc::new(2, 1, settings, streams)?))
        }),
        // Identical terms have no scatter: the step is half that of SGLD.
        ("SGFS", 2.0, |gradient, streams| {
            let gradient = GradientSettings { minibatch: Some(2), ..gradient };
            Ok(Box::new(Sgfs::new(2, 1, gradient, streams)?))
        }),
        ("recipe", 1.0, |gradient, streams| {
            Ok(Box::new(recipe::RecipeSampler::new(2, recipe::Langevin, gradient, streams)?))
        }),
    ];
    for (name, unit, build) in samplers {
        for (step, is_wide) in [(0.05, false), (0.8, true)] {
            let gradient = GradientSettings {
                step_size: StepSize::Constant(unit * step),
                ..GradientSettings::default()
            };
            let starts = [vec![-1.0, 1.0], vec![1.0, -1.0]];
            let result = sample(
                &normal,
                &starts,
                Schedule { burn_in: 200, draws: 5000 },
                SeedTree::new(5),
                |streams| build(gradient, streams),
            )
            .unwrap();
            let biased = result.warnings().iter().any(|warning| matches!(warning, Warning::Bias { .. }));
            assert_eq!(biased, is_wide, "{name}: {:?}", result.warnings());
        }
    }
}

/// A warm-up by name finds a step short enough for the noise of the minibatches, a hundred times the curvature.
#[test]
fn steps_by_name_fit_the_noise_of_minibatches() {
    let target = LinearGaussian::synthetic(2, 10_000, 4.0, 0.5, SeedTree::new(8));
    let (mean, covariance) = (target.posterior().mean(), target.posterior().covariance());
    let deviations = [covariance[0].sqrt(), covariance[3].sqrt()];
    let starts: Vec<Vec<f64>> = (0..8)
        .map(|k| (0..2).map(|i| mean[i] + (f64::from(k) - 3.5) * 0.5 * deviations[i]).collect())
        .collect();
    let options = SamplerOptions { minibatch: Some(100), ..SamplerOptions::default() };
    use SamplerKind::*;
    for kind in [Sgld, Psgld, Sghmc, Sgnht, Hamcmc] {
        let schedule = Schedule { burn_in: 3_000, draws: 100_000 };
        let result = sample(&target, &starts, schedule, SeedTree::new(9), |streams| {
            kind.build::<f64>(2, 1, &options, streams)
        })
        .unwrap();
        let ratios: Vec<f64> = (0..2).map(|i| result.parameters[i].deviation / deviations[i]).collect();
        println!("{kind}: {ratios:.3?} deviations, {:.0} effective draws", result.min_effective_size());
        for ratio in ratios {
            assert!((ratio - 1.0).abs() < 0.1, "{kind}: {ratio}");
        }
    }
}
