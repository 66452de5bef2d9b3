//! Non-stationary noise starts from log odds of speech.

use super::initial_noise_power;
use crate::inference::state::{Separation, UpdateMask};
use crate::inference::tests::{ALPHA, start};
use crate::model::{MarginalTable, NoiseDrift, NoiseModel, Prior};
use crate::random::SeedTree;
use std::sync::Arc;

#[test]
fn noise_starts_from_the_log_odds() {
    // A bang in steady noise, and a voice as loud as the bang.
    let (bins, frames, middle) = (40, 100, 20);
    let (bang, voice) = (30..36, 60..66);
    let loud = |t: usize| if bang.contains(&t) || voice.contains(&t) { 100.0 } else { 1.0 };
    let power: Vec<f32> = (0..frames).flat_map(|t| vec![loud(t); bins]).collect();
    let odds = |t: usize| if voice.contains(&t) { 8.0 } else { -8.0 };
    let log_odds: Vec<f32> = (0..frames).flat_map(|t| vec![odds(t); bins]).collect();
    let (flat, drift) = (vec![1.0; bins], NoiseDrift { seconds: 0.8, hertz: 31.25 });
    let start = start(bins, &flat, NoiseModel::Drifting(drift), Prior::Flat);
    let table = Arc::new(MarginalTable::new(ALPHA.0, ALPHA.1));
    let mut separation = Separation::new(&start, &power, &table, SeedTree::new(5));
    separation.init_noise_field(&initial_noise_power(bins, &power, &log_odds));
    let noise = |separation: &Separation, t: usize| {
        libm::powf(separation.dispersions()[1][t * bins + middle], 2.0 / ALPHA.1 as f32)
    };
    // A tenth of the bang, and in the voice no more than beside it.
    assert!((noise(&separation, 33) - 10.0).abs() < 0.1, "{}", noise(&separation, 33));
    assert!(noise(&separation, 63) < 1.1 * noise(&separation, 10));
    let gains = |mut separation: Separation| {
        for _ in 0..12 {
            separation.em_step(1.0, UpdateMask { noise: true, response: false });
            separation.accumulate();
        }
        let gain = separation.mean_gain();
        [33, 63].map(|t| gain[t * bins + middle])
    };
    let [bang, voice] = gains(separation);
    assert!(bang < 0.45 && voice > 0.85, "{bang} in the bang, {voice} in the voice");
    // Drifting noise without that initial field classifies both as voice.
    let [bang, voice] = gains(Separation::new(&start, &power, &table, SeedTree::new(5)));
    assert!(bang > 0.7 && voice > 0.7, "{bang} in the bang, {voice} in the voice");
}
