//! Tests of summaries and warnings.

use super::*;

/// Each of the interleaved chains has an energy of its own that moves slowly; between them it jumps.
#[test]
fn slow_energies_of_interleaved_chains_are_warned_of() {
    let run = |chains: usize, coefficient: f64| {
        let mut rng = SeedTree::new(5).rng(0);
        let mut energies = vec![0.0; chains];
        let mut run = RunRecord::new(1, 5000, chains);
        for n in 0..5000 {
            let energy = &mut energies[n % chains];
            *energy = coefficient * *energy + f64::normal(&mut rng);
            let step = Step { energy: Some(*energy), tested: true, ..Step::default() };
            run.add(&[f64::normal(&mut rng)], &step, None);
        }
        SampleResult::new(vec![run], 1)
    };
    for chains in [1, 5] {
        let (slow, fast) = (run(chains, 0.95), run(chains, 0.5));
        let fraction = slow.energy_fractions()[0];
        assert!(slow.energy_fractions().len() == 1 && (0.03..0.17).contains(&fraction), "{fraction}");
        let warns = |result: &SampleResult<f64>| {
            result.warnings().iter().any(|warning| matches!(warning, Warning::Energy { .. }))
        };
        assert!(warns(&slow) && !warns(&fast), "{chains}");
    }
}

/// Draws of `N(0, T)` follow `exp(-U / T)` with `U = x^2 / 2`; a second coordinate may have no gradient.
#[test]
fn draws_are_judged_at_their_temperature_and_by_coordinates_with_gradients() {
    let is_biased = |variance: f64, temperature: f64, has_other: bool| {
        let mut rng = SeedTree::new(8).rng(0);
        let mut run = RunRecord::new(2, 20_000, 1);
        for _ in 0..20_000 {
            let x = variance.sqrt() * f64::normal(&mut rng);
            let y = temperature.sqrt() * f64::normal(&mut rng);
            let step = Step { temperature, ..Step::default() };
            run.add(&[x, y], &step, Some((&[x, y], &[x, if has_other { y } else { f64::NAN }])));
        }
        let warnings = SampleResult::new(vec![run], 1).warnings();
        warnings.iter().any(|warning| matches!(warning, Warning::Bias { parameter: 0, .. }))
    };
    for temperature in [0.25, 1.0, 4.0] {
        assert!(!is_biased(temperature, temperature, true), "{temperature}");
        assert!(is_biased(1.2 * temperature, temperature, true), "{temperature}");
        assert!(is_biased(1.2 * temperature, temperature, false), "{temperature}");
    }
    assert!(!is_biased(1.0, 0.0, true));
}

/// Steps and divergences both count every block.
#[test]
fn divergences_are_counted_among_the_steps_of_all_blocks() {
    let mut run = RunRecord::new(6, 10, 1);
    for n in 0..10 {
        let step = Step { divergences: 3, tested: true, step_size: 0.1, ..Step::default() };
        run.add(&[f64::from(n); 6], &step, None);
    }
    let expected = Warning::Divergences { count: 30, steps: 30, tested: true, has_step: true };
    assert_eq!(SampleResult::new(vec![run], 3).warnings().first(), Some(&expected));
}

/// A gradient that is always NaN is not a problem of the step.
#[test]
fn divergences_of_all_steps_point_to_the_gradient() {
    let target = crate::from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        gradient[0] = f64::NAN;
        0.5 * theta[0] * theta[0]
    });
    for kind in [crate::SamplerKind::Nuts, crate::SamplerKind::Sgld] {
        let schedule = Schedule { burn_in: 100, draws: 100 };
        let sampled = sample(&target, &[vec![1.0]], schedule, SeedTree::new(1), |streams| {
            kind.build::<f64>(1, 1, &crate::SamplerOptions::default(), streams)
        });
        let first = sampled.unwrap().warnings()[0].to_string();
        assert!(first.starts_with("all 100 steps diverged: the potential, its gradient"), "{first}");
    }
}

/// Two blocks on which every move overshoots further.
#[derive(Clone)]
struct Steep;

impl Target<f64> for Steep {
    fn dimension(&self) -> usize {
        1
    }

    fn blocks(&self) -> usize {
        2
    }

    fn gradient(&mut self, theta: &[f64], _: crate::Minibatch<'_>, gradient: &mut [f64]) {
        gradient.iter_mut().zip(theta).for_each(|(gradient, theta)| *gradient = 1e4 * theta);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential.iter_mut().zip(theta).for_each(|(potential, theta)| *potential = 5e3 * theta * theta);
    }
}

/// Divergences are at most the steps of both blocks, and no warning advises longer chains.
#[test]
fn steps_of_sampled_blocks_are_counted_and_longer_chains_not_advised_beside_divergences() {
    let schedule = Schedule { burn_in: 0, draws: 100 };
    let gradient = crate::GradientSettings::default();
    let sampled = sample(&Steep, &[vec![1.0; 2]], schedule, SeedTree::new(1), |streams| {
        crate::Sgld::new(1, 2, gradient, streams)
    });
    let warnings = sampled.unwrap().warnings();
    let counted = matches!(warnings[0], Warning::Divergences { count: 101..=200, steps: 200, .. });
    assert!(counted && warnings.len() > 1, "{warnings:?}");
    assert!(!warnings.iter().any(|warning| warning.to_string().contains("longer chains")), "{warnings:?}");
}

#[test]
#[should_panic(expected = "0 blocks of a state of 2 numbers")]
fn a_state_has_blocks() {
    let _ = SampleResult::new(vec![RunRecord::<f64>::new(2, 10, 1)], 0);
}

#[test]
fn a_constant_parameter_gives_warnings() {
    let run = |shift: f64| {
        let mut run = RunRecord::new(2, 1000, 1);
        for n in 0..1000 {
            let step = Step { acceptance: 1.0, potential: Some(0.0), ..Step::default() };
            run.add(&[f64::from(n * 7919 % 1000) + shift, 3.0], &step, None);
        }
        run
    };
    let result = SampleResult::new(vec![run(0.0), run(0.25)], 1);
    assert!(result.parameters[1].r_hat.is_nan() && result.parameters[0].r_hat < 1.01);
    let warnings = result.warnings();
    let of_second = |warning: &Warning| {
        matches!(warning, Warning::RHat { parameter: 1, .. } | Warning::EffectiveSize { parameter: 1, .. })
    };
    assert_eq!(warnings.iter().filter(|warning| of_second(warning)).count(), 2, "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.to_string().ends_with("run longer chains")));
    assert!(result.min_effective_size().is_nan() && result.max_r_hat().is_nan());
}

#[test]
fn a_result_prints_as_a_table_with_four_digits() {
    let run = |shift: f64| {
        let mut run = RunRecord::new(2, 1000, 1);
        for n in 0..1000 {
            let x = f64::from(n * 7919 % 1000);
            run.add(&[x + shift, 1e-6 * x], &Step::default(), None);
        }
        run
    };
    let table = SampleResult::new(vec![run(0.0), run(0.25)], 1).to_string();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        (rows.len(), rows[0][0], &rows[1][..3]),
        (3, "parameter", &["0", "499.6", "288.7"][..]),
        "{table}"
    );
    assert_eq!(rows[2][..3], ["1", "4.995e-4", "2.887e-4"], "{table}");
    let widths: Vec<usize> = table.lines().map(str::len).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
}
