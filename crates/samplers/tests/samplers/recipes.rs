//! Drifts and noise follow the recipe, and wrong variants are caught.

use crate::proof::targets::{Flat, assert_close, gradient_at, targets};
use crate::proof::{self, constant, summarise, worst};
use alphamf_samplers::lbfgs::InverseHessian;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::recipe::{self, Recipe};
use alphamf_samplers::targets::*;
use alphamf_samplers::*;

/// The mean move at temperature 1 of one step of 1e-6 from `z`, divided by the step. `end` returns the end of the step
/// for fixed random numbers. The end is affine in the temperature, except for the noise, which is proportional to its
/// root.
fn measured_drift(z: &[f64], mut end: impl FnMut(GradientSettings) -> Vec<f64>) -> Vec<f64> {
    let ends = [0.0, 1.0, 4.0].map(|temperature| end(GradientSettings { temperature, ..constant(1e-6) }));
    let [cold, warm, hot] = ends;
    assert_eq!(cold.len(), z.len());
    let without_noise = |i: usize| 1.5 * cold[i] - warm[i] + 0.5 * hot[i];
    (0..z.len()).map(|i| (without_noise(i) - z[i]) / 1e-6).collect()
}

#[test]
fn drifts_follow_the_recipe() {
    let streams = SeedTree::new(1);
    for (name, mut target, theta) in targets() {
        let n = theta.len();
        let target = &mut *target;
        let gradient = gradient_at(target, &theta);
        let r: Vec<f64> = (0..n).map(|i| 0.8 - 0.5 * i as f64).collect();
        let check = |sampler: &str, measured: &[f64], expected: &[f64]| {
            assert_close(&format!("{sampler} on {name}"), measured, expected, 1e-3);
        };
        let expected = |recipe: &mut dyn Recipe, target: &mut dyn Target<f64>, auxiliary: &[f64]| {
            let z = [&theta, auxiliary].concat();
            let mut drift = vec![0.0; z.len()];
            recipe::drift(recipe, target, &z, &gradient, &mut drift);
            drift
        };
        // The state after one step from `theta`.
        let moved = |sampler: &mut dyn Sampler<f64>, target: &mut dyn Target<f64>| {
            let mut state = theta.clone();
            sampler.step(target, &mut state);
            state
        };
        let with_momentum = [&theta[..], &r].concat();

        let measured =
            measured_drift(&theta, |set| moved(&mut Sgld::new(n, 1, set, streams).unwrap(), target));
        check("SGLD", &measured, &expected(&mut recipe::Langevin, target, &[]));

        let diffusion: Vec<f64> = (0..n).map(|i| 0.5 + i as f64).collect();
        let matrix = Matrix::Diagonal(diffusion.clone());
        let measured = measured_drift(&theta, |set| {
            moved(&mut Sgld::new(n, 1, set, streams).unwrap().with_diffusion(&matrix).unwrap(), target)
        });
        let by_hand: Vec<f64> = diffusion.iter().zip(&gradient).map(|(d, g)| -d * g).collect();
        check("SGLD with D", &measured, &by_hand);

        let measured = measured_drift(&with_momentum, |gradient| {
            let settings = SghmcSettings { gradient, friction: 1.7 };
            let mut sampler = Sghmc::new(n, 1, settings, streams).unwrap();
            sampler.set_momentum(0, &r);
            [&moved(&mut sampler, target), sampler.momentum(0)].concat()
        });
        check("SGHMC", &measured, &expected(&mut recipe::Friction(1.7), target, &r));

        let auxiliary = [&r[..], &[0.9]].concat();
        let measured = measured_drift(&[&theta[..], &auxiliary].concat(), |gradient| {
            let settings = SgnhtSettings { gradient, diffusion: 1.3 };
            let mut sampler = Sgnht::new(n, 1, settings, streams).unwrap();
            sampler.set_auxiliary(0, &r, 0.9);
            let state = moved(&mut sampler, target);
            let (r, thermostat) = sampler.auxiliary(0);
            [&state, r, &[thermostat]].concat()
        });
        check("SGNHT", &measured, &expected(&mut recipe::Thermostat(1.3), target, &auxiliary));

        if target.metric().is_some() {
            let measured =
                measured_drift(&theta, |set| moved(&mut Sgrld::new(n, 1, set, streams).unwrap(), target));
            check("SGRLD", &measured, &expected(&mut recipe::RiemannianLangevin, target, &[]));

            let measured = measured_drift(&with_momentum, |settings| {
                let mut sampler = Sgrhmc::new(n, 1, settings, streams).unwrap();
                sampler.set_momentum(0, &r);
                [&moved(&mut sampler, target), sampler.momentum(0)].concat()
            });
            check("SGRHMC", &measured, &expected(&mut recipe::RiemannianFriction, target, &r));
        }
        if target.curvature().is_some() {
            let measured = measured_drift(&theta, |gradient| {
                let settings =
                    PsgldSettings { gradient, forgetting: 0.6, regularisation: 0.3, correction: true };
                let mut sampler = Psgld::new(n, 1, settings, streams).unwrap();
                moved(&mut sampler, target);
                moved(&mut sampler, target)
            });
            let terms = target.terms() as f64;
            let past = gradient.iter().map(|g| (g / terms).powi(2)).collect();
            let mut recipe = recipe::RootMeanSquare { past, forgetting: 0.6, regularisation: 0.3 };
            check("PSGLD", &measured, &expected(&mut recipe, target, &[]));
        }
    }
}

const SCALES: [f64; 2] = [1.5, 0.5];

fn flat() -> Flat<2> {
    Flat { blocks: 1, terms: 4, metric: SCALES }
}

/// Without a gradient, a step consists of noise alone, whose variance is known exactly.
#[test]
fn noise_of_a_step_is_that_of_the_recipe() {
    const STEPS: usize = 100_000;
    let (eps, heat) = (0.1, 0.7);
    let settings = GradientSettings { temperature: heat, ..constant(eps) };
    let (known, streams) = (Matrix::Diagonal(vec![3.0, 2.0]), SeedTree::new(5));
    let check = |name: &str, expected: [f64; 2], step: &mut dyn FnMut(&mut [f64]) -> [f64; 2]| {
        let mut variance = [0.0; 2];
        for _ in 0..STEPS {
            let moved = step(&mut [0.0; 2]);
            variance.iter_mut().zip(moved).for_each(|(sum, moved)| *sum += moved * moved / STEPS as f64);
        }
        // The standard error is 0.0045.
        let holds =
            variance.iter().zip(&expected).all(|(found, expected)| (found / expected - 1.0).abs() < 0.02);
        assert!(holds, "{name}: {variance:?}, expected {expected:?}");
    };
    let state = |theta: &[f64]| [theta[0], theta[1]];
    let both = [3.0, 2.0];

    for is_known in [false, true] {
        let share = f64::from(is_known);
        let mut sampler = Sgld::new(2, 1, settings, streams).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let variances = both.map(|v| 2.0 * eps * heat - share * eps * eps * v);
        check("SGLD", variances, &mut |theta| {
            sampler.step(&mut flat(), theta);
            state(theta)
        });
        let (diffusion, d) = (Matrix::Diagonal(vec![0.4, 1.6]), [0.4, 1.6]);
        let mut sampler = Sgld::new(2, 1, settings, streams).unwrap().with_diffusion(&diffusion).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let expected = [0, 1].map(|i| 2.0 * eps * heat * d[i] - share * eps * eps * d[i] * both[i] * d[i]);
        check("SGLD with D", expected, &mut |theta| {
            sampler.step(&mut flat(), theta);
            state(theta)
        });

        let mut sampler = Sgrld::new(2, 1, settings, streams).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let expected = [0, 1]
            .map(|i| 2.0 * eps * heat / SCALES[i] - share * eps * eps * both[i] / (SCALES[i] * SCALES[i]));
        check("SGRLD", expected, &mut |theta| {
            sampler.step(&mut flat(), theta);
            state(theta)
        });

        let friction = SghmcSettings { gradient: settings, friction: 2.0 };
        let mut sampler = Sghmc::new(2, 1, friction, streams).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let decay = (-2.0 * eps).exp();
        let expected =
            both.map(|v| (1.0 - decay * decay) * heat - share * (0.5 * eps * (1.0 + decay)).powi(2) * v);
        check("SGHMC", expected, &mut |theta| {
            sampler.set_momentum(0, &[0.0; 2]);
            sampler.step(&mut flat(), theta);
            state(sampler.momentum(0))
        });

        let mut sampler = Sgrhmc::new(2, 1, settings, streams).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let expected = [0, 1].map(|i| (2.0 * eps * heat - share * eps * eps * both[i]) / SCALES[i]);
        check("SGRHMC", expected, &mut |theta| {
            sampler.set_momentum(0, &[0.0; 2]);
            sampler.step(&mut flat(), theta);
            state(sampler.momentum(0))
        });
    }

    let floor = PsgldSettings { gradient: settings, regularisation: 0.5, ..PsgldSettings::default() };
    let mut sampler = Psgld::new(2, 1, floor, streams).unwrap();
    check("PSGLD", [2.0 * eps * heat / 0.5; 2], &mut |theta| {
        sampler.step(&mut flat(), theta);
        state(theta)
    });

    // Without any information the step is that of the conditioner. It has no other temperature than 1.
    let pair = GradientSettings { minibatch: Some(2), ..constant(eps) };
    for conditioner in [[1.0, 1.0], [0.4, 2.5]] {
        let matrix = Matrix::Diagonal(conditioner.to_vec());
        let mut sampler = Sgfs::new(2, 1, pair, streams).unwrap().with_conditioner(&matrix).unwrap();
        check("SGFS", conditioner.map(|b| eps / b), &mut |theta| {
            sampler.step(&mut flat(), theta);
            state(theta)
        });
    }

    // Nor is there a pair for HAMCMC.
    let initial_scale = InitialScale::Fixed(0.4);
    let settings_of_hamcmc =
        HamcmcSettings { gradient: settings, initial_scale, ..HamcmcSettings::default() };
    let mut sampler = Hamcmc::new(2, 1, settings_of_hamcmc, streams).unwrap();
    check("HAMCMC", [2.0 * eps * heat * 0.4; 2], &mut |theta| {
        let start: Vec<f64> = sampler.next_start(theta).to_vec();
        sampler.step(&mut flat(), theta);
        [theta[0] - start[0], theta[1] - start[1]]
    });

    // With a momentum of zero, half a step lowers the thermostat by eps / 2 before the noise is added.
    for (thermostat, share) in [(0.5 * eps, 0.0), (4.0, 0.0), (0.5 * eps, 1.0), (4.0, 1.0)] {
        let diffusion = SgnhtSettings { gradient: settings, diffusion: 1.3 };
        let mut sampler = Sgnht::new(2, 1, diffusion, streams).unwrap();
        if share > 0.0 {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let rate = eps * (thermostat - 0.5 * eps);
        let spread = if rate == 0.0 { 2.0 } else { (1.0 - (-2.0 * rate).exp()) / rate };
        let kick = 0.5 * eps * (1.0 + (-rate).exp());
        check("SGNHT", both.map(|v| 1.3 * heat * eps * spread - share * kick * kick * v), &mut |theta| {
            sampler.set_auxiliary(0, &[0.0; 2], thermostat);
            sampler.step(&mut flat(), theta);
            state(sampler.auxiliary(0).0)
        });
    }
}

/// At a zero gradient, the correction, which divides by its magnitude, must be zero.
#[test]
fn psgld_with_its_correction_rests_at_a_mode() {
    let gradient = GradientSettings { temperature: 0.0, ..constant(0.1) };
    let settings = PsgldSettings { gradient, correction: true, ..PsgldSettings::default() };
    let mode = vec![1.0, -2.0];
    let target = Gaussian::new(mode.clone(), vec![2.0, 0.0, 0.0, 1.0]).unwrap();
    let sampler = Psgld::new(2, 1, settings, SeedTree::new(1)).unwrap();
    let mut chain = Chain::new(target, sampler, mode.clone()).unwrap();
    chain.run(3, |_| ());
    assert_eq!((chain.state(), chain.statistics().divergences), (&mode[..], 0));
}

/// The correction is proportional to the temperature, as the noise is.
#[test]
fn the_correction_of_psgld_is_as_warm_as_its_noise() {
    let end = |temperature, correction| -> f64 {
        let gradient = GradientSettings { temperature, ..constant(0.1) };
        let settings = PsgldSettings { gradient, forgetting: 0.5, regularisation: 0.3, correction };
        let mut target = Gaussian::new(vec![0.0], vec![2.0]).unwrap();
        let mut theta = [1.5];
        Psgld::new(1, 1, settings, SeedTree::new(1)).unwrap().step(&mut target, &mut theta);
        theta[0]
    };
    let [cold, warm, hot] =
        [0.0, 1.0, 4.0].map(|temperature| end(temperature, true) - end(temperature, false));
    assert!(cold == 0.0 && warm.abs() > 1e-3 && (hot - 4.0 * warm).abs() < 1e-12, "{cold} {warm} {hot}");
}

/// Mean and variance of the draws of `step` against the problem's truth.
fn run_by_hand(
    problem: &proof::Problem,
    steps: usize,
    mut make: impl FnMut(u64) -> Box<dyn FnMut(&mut [f64])>,
) -> (f64, f64) {
    let runs: Vec<Vec<f64>> = (0..8)
        .map(|run| {
            let mut step = make(run);
            let mut theta = problem.start.clone();
            let mut sums = vec![0.0; problem.quantities.len()];
            for t in 0..steps + 2000 {
                step(&mut theta);
                if t >= 2000 {
                    for (sum, quantity) in sums.iter_mut().zip(&problem.quantities) {
                        *sum += (quantity.value)(&theta) / steps as f64;
                    }
                }
            }
            sums
        })
        .collect();
    let estimates = summarise(&runs);
    worst(problem, &estimates, 0.05)
}

/// hamcmc section 3.1: with curvature taken from the state that it moves, and no correction, the draws are
/// wrong; HAMCMC on the same target with the same pairs is right (`samplers_proof`, "one peak").
#[test]
fn naive_quasi_newton_langevin_is_caught() {
    let law = Quartic::new(0.25, 0.5);
    let (errors, precision) = run_by_hand(&proof::one_peak(), 60_000, |run| {
        let mut stream = SeedTree::new(run).rng(0);
        let law = law.clone();
        let mut previous: Option<(f64, f64)> = None;
        let mut inverse = InverseHessian::new(1, 1);
        Box::new(move |theta| {
            let gradient = law.slopes(theta[0]).0;
            inverse.reset(0.5);
            if let Some((before, slope)) = previous {
                inverse.push(&[theta[0] - before], &[gradient - slope]);
            }
            previous = Some((theta[0], gradient));
            let (mut drift, mut noise) = ([gradient], [f64::normal(&mut stream)]);
            inverse.multiply(&mut drift);
            inverse.multiply_root(&mut noise);
            theta[0] += 0.1_f64.sqrt() * noise[0] - 0.05 * drift[0];
        })
    });
    assert!(errors > 20.0 && precision < 0.05, "{errors} {precision}");
}

/// complete-recipe eq. 16: without Gamma the metric's dependence on the state biases the draws. The same loop
/// with Gamma is right.
#[test]
fn naive_riemannian_hmc_is_caught() {
    let mut errors = [0.0; 2];
    for (weight, error) in [0.0, 1.0].into_iter().zip(&mut errors) {
        (*error, _) = run_by_hand(&proof::one_peak(), 100_000, |run| {
            let mut stream = SeedTree::new(run).rng(0);
            let mut law = Quartic::new(0.25, 0.5);
            let mut r = 0.0;
            Box::new(move |theta| {
                let (mut metric, mut gamma) = ([0.0], [0.0]);
                Metric::<f64>::metric(&mut law, theta, &mut metric);
                Metric::<f64>::divergence(&mut law, theta, false, &mut gamma);
                let inverse = 1.0 / metric[0];
                let drift = inverse.sqrt() * law.slopes(theta[0]).0 + inverse * r - weight * gamma[0];
                r += (0.06 * inverse).sqrt() * f64::normal(&mut stream) - 0.03 * drift;
                theta[0] += 0.03 * inverse.sqrt() * r;
            })
        });
    }
    assert!(errors[0] > 8.0 && errors[1] < 3.0, "{errors:?}");
}

/// quasi-newton-hmc section 3.1: multiplying only the gradient by B leaves another law invariant than the
/// target; multiplying both equations leaves the target invariant, even without a test at small steps.
#[test]
fn half_preconditioned_hmc_is_caught() {
    let mut errors = [0.0; 2];
    for (both, error) in [false, true].into_iter().zip(&mut errors) {
        (*error, _) = run_by_hand(&proof::gaussian(), 20_000, |run| {
            let mut stream = SeedTree::new(run).rng(0);
            let mut law = Gaussian::new(vec![1.0, -0.5], vec![2.0, 1.2, 1.2, 1.5]).unwrap();
            let b = [1.0, 0.3, 0.3, 0.5];
            let times = move |v: &[f64]| [b[0] * v[0] + b[1] * v[1], b[1] * v[0] + b[3] * v[1]];
            Box::new(move |theta| {
                let mut p = [f64::normal(&mut stream), f64::normal(&mut stream)];
                for _ in 0..8 {
                    let force = times(&gradient_at(&mut law, theta));
                    (0..2).for_each(|i| p[i] -= 0.05 * force[i]);
                    let velocity = if both { times(&p) } else { p };
                    (0..2).for_each(|i| theta[i] += 0.1 * velocity[i]);
                    let force = times(&gradient_at(&mut law, theta));
                    (0..2).for_each(|i| p[i] -= 0.05 * force[i]);
                }
            })
        });
    }
    assert!(errors[0] > 20.0 && errors[1] < 5.0, "{errors:?}");
}

/// A block with a reverted move restarts with a new momentum and the initial thermostat.
#[test]
fn a_move_that_is_taken_back_ends_its_momentum() {
    let still = GradientSettings { temperature: 0.0, ..constant(0.01) };
    let streams = SeedTree::new(1);
    let sghmc = SghmcSettings { gradient: still, friction: 0.1 };
    let (mut sghmc, mut sgrhmc, mut sgnht) = (
        Sghmc::new(2, 1, sghmc, streams).unwrap(),
        Sgrhmc::new(2, 1, still, streams).unwrap(),
        Sgnht::new(2, 1, SgnhtSettings { gradient: still, diffusion: 1.3 }, streams).unwrap(),
    );
    for (far, is_kept) in [(1.0, true), (1e13, false)] {
        sghmc.set_momentum(0, &[9.0, -9.0]);
        sghmc.step(&mut flat(), &mut [far, 0.0]);
        sgrhmc.set_momentum(0, &[9.0, -9.0]);
        sgrhmc.step(&mut flat(), &mut [far, 0.0]);
        sgnht.set_auxiliary(0, &[9.0, -9.0], 2.0);
        sgnht.step(&mut flat(), &mut [far, 0.0]);
        let (momentum, thermostat) = sgnht.auxiliary(0);
        for momentum in [sghmc.momentum(0), sgrhmc.momentum(0), momentum] {
            assert_eq!(momentum[0] > 6.0 && momentum[1] < -6.0, is_kept, "{momentum:?}");
            // At this temperature momenta are drawn as zero.
            assert!(is_kept || momentum == [0.0; 2], "{momentum:?}");
        }
        assert_eq!(thermostat != 1.3, is_kept);
    }
}
