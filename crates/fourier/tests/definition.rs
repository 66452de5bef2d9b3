//! The transforms, beside their definition. Not within the library, whose kernels would be compiled once more.

use alphamf_fourier::{FftError, forward, inverse};
use num_complex::Complex;
use std::f64::consts::TAU;

/// Samples without any symmetry.
fn samples(length: usize) -> Vec<f64> {
    (0..length).map(|t| (1.7 * t as f64).sin() + 0.3 * ((t * t) % 7) as f64).collect()
}

#[test]
fn both_precisions_follow_the_definition() {
    for length in [1, 2, 3, 8, 15, 64, 97] {
        let samples = samples(length);
        let mut double = forward::<f64>(length).make_output_vec();
        forward(length).process(&mut samples.clone(), &mut double).unwrap();
        let mut single = forward::<f32>(length).make_output_vec();
        let mut rounded: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
        forward(length).process(&mut rounded, &mut single).unwrap();
        assert_eq!((double.len(), single.len()), (length / 2 + 1, length / 2 + 1));
        for (bin, (double, single)) in double.iter().zip(&single).enumerate() {
            let turn = |t: usize| Complex::from_polar(1.0, -TAU * (bin * t % length) as f64 / length as f64);
            let exact: Complex<f64> = samples.iter().enumerate().map(|(t, &x)| turn(t) * x).sum();
            assert!((double - exact).norm() < 1e-11 * length as f64, "{length}, bin {bin}");
            let single = Complex::new(f64::from(single.re), f64::from(single.im));
            assert!((single - exact).norm() < 1e-5 * length as f64, "{length}, bin {bin}");
        }
    }
}

#[test]
fn the_inverse_returns_the_samples() {
    for length in [1, 2, 9, 64] {
        let (samples, scale) = (samples(length), length as f64);
        let mut spectrum = forward::<f64>(length).make_output_vec();
        forward(length).process(&mut samples.clone(), &mut spectrum).unwrap();
        let mut back = vec![0.0; length];
        inverse(length).process(&mut spectrum, &mut back).unwrap();
        assert!(samples.iter().zip(&back).all(|(x, y)| (x - y / scale).abs() < 1e-12), "{length}");
    }
}

#[test]
fn wrong_lengths_are_refused() {
    let (mut samples, mut bins) = ([0.0; 8], [Complex::new(0.0, 0.0); 5]);
    let transform = forward::<f64>(8);
    assert!(matches!(transform.process(&mut samples[..7], &mut bins), Err(FftError::InputBuffer(8, 7))));
    assert!(matches!(transform.process(&mut samples, &mut bins[..4]), Err(FftError::OutputBuffer(5, 4))));
    let short = transform.process_with_scratch(&mut samples, &mut bins, &mut []);
    assert!(matches!(short, Err(FftError::ScratchBuffer(_, 0))));
    let transform = inverse::<f64>(8);
    assert!(matches!(transform.process(&mut bins[..4], &mut samples), Err(FftError::InputBuffer(5, 4))));
    assert!(matches!(transform.process(&mut bins, &mut samples[..7]), Err(FftError::OutputBuffer(8, 7))));
}

/// As the documentation of `inverse` has it.
#[test]
fn imaginary_parts_at_both_ends_have_no_effect() {
    let bins = |ends: f64| [Complex::new(3.0, ends), Complex::new(1.0, 2.0), Complex::new(-1.0, -ends)];
    let (mut real, mut double) = ([0.0; 4], [0.0; 4]);
    inverse(4).process(&mut bins(0.0), &mut real).unwrap();
    inverse(4).process(&mut bins(0.5), &mut double).unwrap();
    let mut single = [0.0_f32; 4];
    let mut bins = bins(0.5).map(|bin| Complex::new(bin.re as f32, bin.im as f32));
    let error = inverse(4).process(&mut bins, &mut single);
    assert!(matches!(error, Err(FftError::InputValues(true, true))), "{error:?}");
    assert_eq!((double, single.map(f64::from)), (real, real));
}
