//! Diagnostics against values recorded from arviz 0.23.4 on the same draws.

use alphamf_samplers::diagnostics::*;

/// An autoregressive chain of order one driven by sums of four uniform numbers; the recorded values come from
/// the same recursion (a 64-bit linear congruential generator) in Python.
fn chain(seed: u64, coefficient: f64, shift: f64, draws: usize) -> Vec<f64> {
    let (mut state, mut x) = (seed, 0.0);
    (0..draws)
        .map(|_| {
            let mut sum = 0.0;
            for _ in 0..4 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sum += (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
            }
            x = coefficient * x + sum;
            x + shift
        })
        .collect()
}

fn chains(draws: usize, laws: &[(f64, f64)]) -> Vec<Vec<f64>> {
    (11..)
        .step_by(7)
        .zip(laws)
        .map(|(seed, &(coefficient, shift))| chain(seed, coefficient, shift, draws))
        .collect()
}

#[track_caller]
fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-7 * b.abs(), "{a} against {b}");
}

#[test]
fn well_mixed_chains() {
    // An odd number of draws: the middle one drops out of the halves.
    let chains = chains(501, &[(0.7, 0.0); 4]);
    assert_close(effective_size_bulk(&chains), 351.604_813_840);
    assert_close(effective_size_mean(&chains), 352.153_673_602);
    assert_close(split_r_hat(&chains), 1.010_082_184_034);
    assert_close(rank_r_hat(&chains), 1.010_215_619_774);
    assert!((standard_error(&chains) - 0.043_824_05).abs() < 1e-7);
    let correlation = autocorrelation(&chains[0]);
    for (lag, expected) in
        [(1, 0.700_566_119_743_875), (2, 0.464_599_803_029_216), (10, -0.033_436_369_101_72)]
    {
        assert_close(correlation[lag], expected);
    }
}

/// For a parameter with two values both tails are one event, whatever its probability and the labels.
#[test]
fn tails_of_a_discrete_parameter() {
    let chains = chains(500, &[(0.7, 0.0); 4]);
    assert_close(effective_size_tail(&chains), 654.411_254_888_164);
    let sizes = [
        (-1.5, 804.795_185_652_874),
        (-0.9, 588.370_424_776_790),
        (0.9, 540.360_332_950_486),
        (1.5, 641.392_947_298_031),
    ];
    for (bound, expected) in sizes {
        for labels in [[0.0, 1.0], [1.0, 0.0]] {
            let label = |chain: &Vec<f64>| chain.iter().map(|x| labels[usize::from(*x > bound)]).collect();
            let binary: Vec<Vec<f64>> = chains.iter().map(label).collect();
            assert_close(effective_size_tail(&binary), expected);
        }
    }
    assert!(effective_size_tail(&[[1.0; 20]]).is_nan());
}

#[test]
fn chains_that_disagree() {
    let chains = chains(200, &[(0.95, 0.0), (0.9, 0.5), (-0.5, 0.0), (0.3, -1.0)]);
    assert_close(effective_size_bulk(&chains), 11.907_512_213_988_284);
    assert_close(effective_size_mean(&chains), 12.176_963_362_064_773);
    assert_close(split_r_hat(&chains), 1.277_368_151_190_831);
    assert_close(rank_r_hat(&chains), 1.281_414_535_849);
}

#[test]
fn one_antithetic_chain() {
    let chains = chains(1000, &[(-0.6, 2.0)]);
    assert_close(effective_size_bulk(&chains), 3000.0);
    assert_close(effective_size_mean(&chains), 3000.0);
}

/// Correlations of both signs count, from the second pair of lags on, too: `(1 + a) / (1 - a)` effective draws a draw.
#[test]
fn mildly_antithetic_chains() {
    let chains = chains(50_000, &[(-0.3, 0.0); 4]);
    let size = effective_size_mean(&chains) / 200_000.0;
    assert!((size / (1.3 / 0.7) - 1.0).abs() < 0.03, "{size}");
}

#[test]
fn effective_size_to_a_lag_of_an_autoregression() {
    // (1 - a) / (1 + a) effective draws per draw.
    let long = chain(5, 0.7, 0.0, 200_000);
    let size = effective_size_to_lag(&long, 50) / long.len() as f64;
    assert!((size / (0.3 / 1.7) - 1.0).abs() < 0.05, "{size}");
}

#[test]
fn divergence_of_a_histogram() {
    // Uniform draws against a density proportional to x on (0, 1): the integral of -log(2 x) is 1 - log 2.
    let mut histogram = Histogram::new(0.0, 1.0, 1000);
    (0..100_000).for_each(|k| histogram.add((f64::from(k) + 0.5) / 100_000.0));
    let divergence = histogram.divergence(|x| -x.ln());
    assert!((divergence - (1.0 - 2.0_f64.ln())).abs() < 1e-3, "{divergence}");
    assert!(histogram.divergence(|_| 0.0).abs() < 1e-12);
    // Shares of 1 and 7 are those of `x^2` in two cells, whose masses Simpson's rule has exactly.
    let mut coarse = Histogram::new(0.0, 1.0, 2);
    (0..8).for_each(|k| coarse.add(if k == 0 { 0.2 } else { 0.7 }));
    let divergence = coarse.divergence(|x| -2.0 * x.ln());
    assert!(divergence.abs() < 1e-12, "{divergence}");
}

/// A constant of any size in the potential is without effect.
#[test]
fn divergences_do_not_depend_on_a_constant() {
    let mut histogram = Histogram::new(-3.0, 3.0, 60);
    chain(5, 0.0, 0.0, 2_000).iter().for_each(|x| histogram.add(*x));
    let plain = histogram.divergence(|x| 0.5 * x * x);
    assert!((0.0..0.5).contains(&plain), "{plain}");
    for c in [800.0, -800.0, 1e6] {
        let moved = histogram.divergence(|x| 0.5 * x * x + c);
        assert!((moved - plain).abs() < 1e-8, "{c}: {moved} against {plain}");
    }
}

/// A common shift of the chains does not change R-hat, also for chains that differ in width.
#[test]
fn r_hat_does_not_depend_on_the_origin() {
    let wide: Vec<f64> = chain(3, 0.0, 0.0, 400).iter().map(|x| 3.0 * x).collect();
    let chains = [wide, chain(4, 0.0, 0.0, 400)];
    let moved: Vec<Vec<f64>> = chains.iter().map(|chain| chain.iter().map(|x| x + 50.0).collect()).collect();
    assert!(rank_r_hat(&chains) > 1.1, "{}", rank_r_hat(&chains));
    assert!((rank_r_hat(&moved) - rank_r_hat(&chains)).abs() < 1e-9);
}

#[test]
fn histograms_take_what_lies_in_their_interval() {
    let mut histogram = Histogram::new(1.0, 3.0, 2);
    // A quarter in the first cell; all else is left out.
    for x in [1.0, 2.0, 2.5, 2.999, 0.999, -5.0, 3.0, 70.0, f64::NAN] {
        histogram.add(x);
    }
    let expected = 0.25 * 0.5_f64.ln() + 0.75 * 1.5_f64.ln();
    assert!((histogram.divergence(|_| 0.0) - expected).abs() < 1e-12);
    // Of a density proportional to x the first cell has 1.5 of 4, the second 2.5.
    let expected = 0.25 * (0.25_f64 * 4.0 / 1.5).ln() + 0.75 * (0.75_f64 * 4.0 / 2.5).ln();
    assert!((histogram.divergence(|x| -x.ln()) - expected).abs() < 1e-12);
}

#[test]
fn histograms_without_draws_have_no_divergence() {
    let mut histogram = Histogram::new(0.0, 1.0, 2);
    for x in [-1.0, 2.0, f64::NAN] {
        histogram.add(x);
    }
    assert!(histogram.divergence(|_| 0.0).is_nan());
    for (low, high, cells) in
        [(1.0, 1.0, 2), (1.0, 0.0, 2), (0.0, f64::NAN, 2), (0.0, f64::INFINITY, 2), (0.0, 1.0, 0)]
    {
        assert!(
            std::panic::catch_unwind(|| Histogram::new(low, high, cells)).is_err(),
            "{low} {high} {cells}"
        );
    }
}

#[test]
fn eight_draws_are_enough() {
    let draws = [0.3, -1.0, 0.8, 0.1, -0.2, 1.4, -0.7, 0.5];
    // As arviz: of two halves of four draws no autocorrelation counts.
    assert_close(effective_size_mean(&[draws]), 8.0 * 8.0_f64.log10());
    assert!(effective_size_mean(&[&draws[..7]]).is_nan());
}

/// The first pair of autocorrelations is negative and ends the sum before it begins.
#[test]
fn alternating_draws_have_the_largest_size() {
    let draws: Vec<f64> = (0..200).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 }).collect();
    assert_close(effective_size_mean(&[&draws]), 200.0 * 200.0_f64.log10());
    let broken: Vec<f64> = (0..200).map(|k| if k == 7 { f64::NAN } else { f64::from(k % 5) }).collect();
    assert!(effective_size_mean(&[broken]).is_nan());
}

#[test]
#[should_panic(expected = "chains of one length")]
fn chains_of_unlike_length_are_refused() {
    let _ = effective_size_mean(&[vec![0.0; 20], vec![0.0; 10]]);
}

/// `2 (1 - a)` for an autoregression: the mean squared change over the variance.
#[test]
fn energy_fraction_of_an_autoregression() {
    for coefficient in [0.0, 0.5, 0.9] {
        let fraction = energy_fraction(&chain(5, coefficient, 3.0, 100_000));
        let expected = 2.0 * (1.0 - coefficient);
        assert!((fraction / expected - 1.0).abs() < 0.03, "{fraction} of {expected}");
    }
}

#[test]
fn degenerate_chains_do_not_panic() {
    let empty: [Vec<f64>; 0] = [];
    assert!(effective_size_bulk(&empty).is_nan());
    assert!(rank_r_hat(&empty).is_nan());
    for draws in 0..8 {
        let chains = [vec![1.0; draws], vec![1.0; draws]];
        let _ = effective_size_bulk(&chains);
        assert!(effective_size_mean(&chains).is_nan());
        let _ = rank_r_hat(&chains);
        let _ = split_r_hat(&chains);
        let _ = standard_error(&chains);
        let _ = autocorrelation(&chains[0]);
    }
}

/// As in arviz.
#[test]
fn a_draw_that_is_not_a_number_makes_every_diagnostic_nan() {
    for (chain, draw) in [(0, 7), (3, 250), (2, 499)] {
        for value in [f64::NAN, -f64::NAN] {
            let mut chains = chains(500, &[(0.7, 0.0); 4]);
            chains[chain][draw] = value;
            for of in [
                rank_r_hat,
                split_r_hat,
                effective_size_bulk,
                effective_size_tail,
                effective_size_mean,
                standard_error,
            ] {
                let found: f64 = of(&chains);
                assert!(found.is_nan(), "{chain}, {draw}: {found}");
            }
        }
    }
}
