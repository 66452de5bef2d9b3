//! The causal network against the whole network and against the training framework.

use super::network::CausalNetwork;
use super::*;
use crate::kernels::convolution::Grid;
use crate::presence::sizes::PLACES;
use crate::presence::tests::{compare_with, spectrum};
use crate::random::SeedTree;
use rand::RngExt;

#[test]
fn pairs_of_frames_have_the_results_of_the_network_at_once() {
    let network = PresenceNet::built_in_causal().unwrap().network;
    let mut input = Grid::new(network.first.inputs, PLACES, 40);
    let mut random = SeedTree::new(1).rng(0);
    input.values.iter_mut().for_each(|x| *x = random.random_range(-1.0..1.0));
    let expected = network.forward(&input);
    let causal = CausalNetwork::new(&network);
    let (mut memory, mut rows) = (causal.memory(), causal.rows());
    for again in 0..2 {
        let mut found = Vec::new();
        for row in input.values.chunks_exact(input.row()) {
            rows.input[input.channels..][..row.len()].copy_from_slice(row);
            causal.forward(&mut memory, &mut rows);
            for frame in 0..PAIR {
                let places = rows.output.chunks_exact(PAIR * GROUP);
                found.extend(places.flat_map(|place| &place[frame * GROUP..(frame + 1) * GROUP]).copied());
            }
        }
        assert_eq!(found.len(), expected.len());
        let error = found.iter().zip(&expected).map(|(a, b): (&f32, &f32)| (a - b).abs());
        let error = error.fold(0.0, f32::max);
        assert!(error < 1e-3, "{error}, round {again}");
        memory.reset();
    }
}

#[test]
fn the_odds_are_those_of_the_training_framework() {
    let net = PresenceNet::built_in_causal().unwrap();
    let mut compared = 0;
    for bins in [513, 257] {
        let mut live = CausalPresenceNet::new(&net, bins, 0.008);
        let odds: Vec<Vec<f32>> =
            spectrum(bins).chunks_exact(bins).map(|power| live.log_odds(power).to_vec()).collect();
        compared += compare_with(include_str!("../reference-live.csv"), bins, |frame, bin| odds[frame][bin]);
    }
    assert!(compared > 50);
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
