use super::super::bands::{Bands, edges};
use super::super::sizes::BANDS;
use super::*;

const BINS: usize = 513;
const FRAMES: usize = 119;

/// Log odds of model and network, and levels, of a band in a frame.
fn made(frame: usize, band: usize) -> [f32; 3] {
    let (t, b) = (frame as f64, band as f64);
    let model = 4.0 * (0.05 * t * (1.0 + (band % 7) as f64)).sin() - b / 40.0;
    let network = 3.0 * (0.3 * b + 0.1 * t).cos() - 2.0;
    let level = 2.0 * (0.2 * b).sin() + (0.07 * t).cos() - b / 30.0;
    [model, network, level].map(|value| value as f32)
}

/// The network's log odds, raised by `raised`, and the model's gain (bins x frames) of a recording with `bins` bins.
fn block(bins: usize, frames: usize, raised: f32) -> (BandLogOdds, Vec<f32>) {
    let edges = edges();
    let (mut power, mut gain, mut odds) = (vec![0.0; bins * frames], vec![0.0; bins * frames], Vec::new());
    for frame in 0..frames {
        for band in 0..BANDS {
            let [model, network, level] = made(frame, band);
            odds.push(network + raised);
            for bin in edges[band].min(bins)..edges[band + 1].min(bins) {
                power[frame * bins + bin] = level.exp();
                gain[frame * bins + bin] = vector::logistic(model);
            }
        }
    }
    (BandLogOdds::new(Bands::new(&power, bins, &edges, None), odds), gain)
}

/// The rows of the reference, which are named by their first cell.
fn reference() -> impl Iterator<Item = (&'static str, Vec<f32>)> {
    include_str!("reference.csv").lines().skip(1).map(|line| {
        let (name, values) = line.split_once(',').unwrap();
        (name, values.split(',').map(|value| value.parse().unwrap()).collect())
    })
}

#[test]
fn inputs_are_those_of_the_training_framework() {
    let (network, gain) = block(BINS, FRAMES, 0.0);
    let evidence = Evidence::new(&network, &gain, BINS);
    let inputs = evidence.inputs(network.certainty.unwrap());
    let mut compared = 0;
    for (place, expected) in reference().filter(|(name, _)| name.contains(':')) {
        let (pair, band) = place.split_once(':').unwrap();
        let found = inputs[pair.parse::<usize>().unwrap() * BANDS + band.parse::<usize>().unwrap()];
        for (input, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!((found - expected).abs() < 1e-3, "{place}, input {input}: {found}, not {expected}");
            compared += 1;
        }
    }
    assert_eq!(compared, 4 * INPUTS);
}

#[test]
fn outputs_are_those_of_the_training_framework() {
    let net = PoolNet::built_in().unwrap();
    let mut compared = 0;
    for (_, values) in reference().filter(|(name, _)| *name == "outputs") {
        let (inputs, expected) = values.split_first_chunk::<INPUTS>().unwrap();
        let mut bands = ([0.0; BANDS], [0.0; BANDS]);
        net.outputs(&[*inputs], &mut bands);
        for (found, expected) in [bands.0[0], bands.1[0]].into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{found} {expected}");
            compared += 1;
        }
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn a_network_that_is_certain_is_left_as_it_is() {
    let net = PoolNet::built_in().unwrap();
    // Before they are raised, the log odds are 1 at most.
    for (raised, fraction) in
        [(8.0, None), (3.2, None), (1.5, Some(0.5)), (-1.0, Some(1.0)), (-9.0, Some(1.0))]
    {
        let (network, gain) = block(BINS, FRAMES, raised);
        let found = net.change(&network, &gain, BINS).map(|change| change.fraction);
        match (found, fraction) {
            (None, None) => {}
            (Some(found), Some(fraction)) => assert!((found - fraction).abs() < 0.02, "{raised}: {found}"),
            (found, _) => panic!("{raised}: {found:?}"),
        }
    }
}

#[test]
fn changes_fit_the_block_whatever_its_size() {
    let net = PoolNet::built_in().unwrap();
    for (bins, frames) in [(BINS, 1), (BINS, 2), (257, 31), (400, 8), (1, 3)] {
        let (network, gain) = block(bins, frames, -5.0);
        let PoolChange { weight, shift, fraction } = net.change(&network, &gain, bins).unwrap();
        assert_eq!((weight.len(), shift.len(), fraction), (gain.len(), gain.len(), 1.0), "{bins} x {frames}");
        assert!(weight.iter().all(|weight| weight.is_finite()));
        assert!(shift.iter().all(|shift| shift.abs() <= MAX_SHIFT));
    }
    let (network, gain) = block(1, 0, 0.0);
    assert_eq!(net.change(&network, &gain, 1), None);
}

#[test]
fn damaged_files_are_refused() {
    let good = include_bytes!("../../../models/pool.safetensors");
    assert!(matches!(PoolNet::from_bytes(&good[..100]), Err(TensorFileError::Bytes(_))));
    let read = |from: &[u8], to: &[u8]| {
        let at = good.windows(from.len()).position(|window| window == from).unwrap();
        let mut bytes = good.to_vec();
        bytes[at..at + to.len()].copy_from_slice(to);
        PoolNet::from_bytes(&bytes).unwrap_err()
    };
    assert!(matches!(read(b"\"third\"", b"\"thurd\""), TensorFileError::Tensor("third")));
}
