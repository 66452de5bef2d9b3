//! The causal network against the training framework.

use super::*;
use crate::presence::tests::{compare_with, spectrum};
use crate::random::SeedTree;
use rand::RngExt;

fn net(bins: usize) -> CausalPresenceNet {
    CausalPresenceNet::new(Arc::new(CausalNetwork::built_in().unwrap()), bins, 0.008)
}

#[test]
fn the_odds_are_those_of_the_training_framework() {
    let mut compared = 0;
    for bins in [513, 257] {
        let mut live = net(bins);
        let odds: Vec<Vec<f32>> =
            spectrum(bins).chunks_exact(bins).map(|power| live.log_odds(power).to_vec()).collect();
        compared += compare_with(include_str!("../reference-live.csv"), bins, |frame, bin| odds[frame][bin]);
    }
    assert!(compared > 50);
}

#[test]
fn after_a_reset_the_odds_are_those_of_the_start() {
    let mut live = net(257);
    let power = &spectrum(257)[..47 * 257];
    let mut odds = || -> Vec<Vec<f32>> {
        let odds = power.chunks_exact(257).map(|power| live.log_odds(power).to_vec()).collect();
        live.reset();
        odds
    };
    // The number of frames is odd: without the reset, the next frame would belong to the other sequence.
    assert_eq!(odds(), odds());
}

#[test]
fn the_quiet_is_the_quantile_of_the_levels() {
    let mut quiet_levels = QuietLevels::new(0.008);
    let (mut random, mut quiet) = (SeedTree::new(2).rng(0), [0.0]);
    for _ in 0..2_000 {
        quiet_levels.update(&[random.random_range(-20.0..0.0)], &mut quiet);
    }
    assert!((quiet[0] + 18.0).abs() < 0.6, "{}", quiet[0]);
    // It adapts slowly.
    (0..500).for_each(|_| quiet_levels.update(&[-2.0], &mut quiet));
    assert!(quiet[0] < -12.0, "{}", quiet[0]);
    (0..3_000).for_each(|_| quiet_levels.update(&[-2.0], &mut quiet));
    assert!((quiet[0] + 2.0).abs() < 0.5, "{}", quiet[0]);
}
