//! Peak memory of the metrics.

#[path = "../../files/tests/containers/memory.rs"]
mod memory;

use alphamf_eval::metrics::spectral_distances;

/// All spectra of a minute at 48 kHz would take 46 MB per signal.
#[test]
fn spectra_of_long_recordings_are_not_held_in_memory() {
    let mut state = 1_u32;
    let noise: Vec<f64> = (0..60 * 48_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state) / f64::from(u32::MAX) - 0.5
        })
        .collect();
    let start = memory::start();
    let distances = spectral_distances(&noise, &noise, 48_000, 100.0..=8_000.0).unwrap();
    let most = memory::most_since(start);
    assert_eq!((distances.all, distances.loudest), (0.0, 0.0));
    assert!(most < 5_000_000, "{most} bytes");
}
