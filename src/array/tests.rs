//! Several microphones: matrices against their definitions, and the filter where the answer is known.

use super::bin::{BinFilter, Frame};
use super::hermitian::{Matrix, Value};
use super::*;
use crate::random::SeedTree;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// A complex normal value of variance one.
fn normal(random: &mut impl Rng) -> Value {
    let mut part = || <StandardNormal as Distribution<f64>>::sample(&StandardNormal, random);
    Complex::new(part(), part()) / 2f64.sqrt()
}

fn matrix(size: usize, random: &mut impl Rng) -> Matrix {
    Matrix { size, values: (0..size * size).map(|_| normal(random)).collect() }
}

/// A positive definite matrix.
fn covariance(size: usize, random: &mut impl Rng) -> Matrix {
    let root = matrix(size, random);
    root.congruent(&Matrix::identity(size))
}

fn distance(a: &Matrix, b: &Matrix) -> f64 {
    a.values.iter().zip(&b.values).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
}

fn diagonal(values: &[f64]) -> Matrix {
    let mut matrix = Matrix::zero(values.len());
    values.iter().enumerate().for_each(|(i, &value)| *matrix.at_mut(i, i) = value.into());
    matrix
}

#[test]
fn matrices_are_what_they_are_called() {
    let mut random = SeedTree::new(1).rng(0);
    for size in 1..=8 {
        let a = covariance(size, &mut random);
        let lower = a.cholesky();
        assert!(distance(&lower.times(&lower.adjoint()), &a) < 1e-10, "{size}");
        assert!((0..size).all(|i| (i + 1..size).all(|j| lower.at(i, j) == Value::ZERO)));
        assert!(distance(&lower.inverse_of_lower().times(&lower), &Matrix::identity(size)) < 1e-8);
        let (values, vectors) = a.clone().eigen();
        assert!(distance(&vectors.congruent(&diagonal(&values)), &a) < 1e-10, "{size}");
        assert!(distance(&vectors.adjoint().times(&vectors), &Matrix::identity(size)) < 1e-12);
        assert!((values.iter().sum::<f64>() - a.trace()).abs() < 1e-10);
    }
    // Known by hand: [2 i; -i 2] has the eigenvalues 1 and 3.
    let (mut values, _) =
        Matrix { size: 2, values: vec![2.0.into(), Value::I, -Value::I, 2.0.into()] }.eigen();
    values.sort_by(f64::total_cmp);
    assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] - 3.0).abs() < 1e-12, "{values:?}");
}

#[test]
fn the_basis_diagonalises_both() {
    let mut random = SeedTree::new(2).rng(0);
    for size in [2, 4, 8] {
        let (speech, noise) = (covariance(size, &mut random), covariance(size, &mut random));
        let basis = super::bin::Basis::new(&speech, &noise);
        let identity = Matrix::identity(size);
        assert!(distance(&basis.analysis.congruent(&noise), &identity) < 1e-7);
        assert!(distance(&basis.analysis.congruent(&speech), &diagonal(&basis.variances)) < 1e-5);
        assert!(distance(&basis.synthesis.times(&basis.analysis), &identity) < 1e-7);
    }
}

/// A voice and a noise from one direction each, in four channels with independent weak noise; frames x channels.
struct Scene {
    voice: Vec<Value>,
    mixture: Vec<Value>,
    /// Fraction of speech, with errors.
    prior: Vec<f32>,
}

const CHANNELS: usize = 4;
/// One bin, 16 frames a second.
const GRID: FrameGrid = FrameGrid { bins: 1, bin_hertz: 15.625, frame_seconds: 0.0625 };

fn scene(frames: usize, seed: u64) -> Scene {
    let mut random = SeedTree::new(seed).rng(0);
    let [near, far]: [Vec<Value>; 2] = [0.4, -1.1].map(|phase: f64| {
        (0..CHANNELS).map(|channel| Value::from_polar(1.0, phase * channel as f64)).collect()
    });
    let mut scene = Scene { voice: Vec::new(), mixture: Vec::new(), prior: Vec::new() };
    for t in 0..frames {
        let levels = [if t % 7 < 4 { 1.0 } else { 0.05 }, if t % 3 == 0 { 1.0 } else { 0.3 }];
        let [s, n] = levels.map(|level: f64| normal(&mut random) * level);
        for channel in 0..CHANNELS {
            let image = near[channel] * s;
            scene.voice.push(image);
            scene.mixture.push(image + far[channel] * n + normal(&mut random) * 0.01);
        }
        let odds = (s.norm_sqr() / n.norm_sqr()).ln() + 2.0 * normal(&mut random).re;
        scene.prior.push((1.0 / (1.0 + (-odds).exp())) as f32);
    }
    scene
}

fn error_db(found: impl Iterator<Item = Value>, voice: &[Value]) -> f64 {
    let error: f64 = found.zip(voice).map(|(found, voice)| (found - voice).norm_sqr()).sum();
    10.0 * (error / voice.iter().map(Value::norm_sqr).sum::<f64>()).log10()
}

fn frames(prior: &[f32]) -> Vec<Frame> {
    prior.iter().map(|&prior| Frame::new(prior, 0.0)).collect()
}

fn widen(x: &Complex<f32>) -> Value {
    Complex::new(x.re.into(), x.im.into())
}

#[test]
fn directions_separate_what_the_gain_alone_does_not() {
    let Scene { voice, mixture, prior } = scene(480, 3);
    let alone = mixture.iter().enumerate().map(|(i, x)| x * f64::from(prior[i / CHANNELS]));
    let alone = error_db(alone, &voice);
    let found = BinFilter::new(CHANNELS).filter(&mixture, frames(&prior), 0);
    let joint = error_db(found.iter().map(widen), &voice);
    assert!(joint < alone - 12.0 && joint < -20.0, "{joint} dB, by the gain alone {alone} dB");
}

#[test]
fn a_short_last_block_keeps_what_was_learned() {
    let Scene { voice, mixture, prior } = scene(486, 4);
    let (first, last) = mixture.split_at(480 * CHANNELS);
    let mut filter = BinFilter::new(CHANNELS);
    filter.filter(first, frames(&prior[..480]), 0);
    let found = filter.filter(last, frames(&prior[480..]), 4);
    let error = error_db(found.iter().map(widen), &voice[480 * CHANNELS..]);
    assert!(error < -12.0, "{error} dB");
    // Silence is silent.
    let silence = filter.filter(&[Value::ZERO; 3 * CHANNELS], frames(&[0.5; 3]), 0);
    assert!(silence.len() == 3 * CHANNELS && silence.iter().all(|x| *x == Complex::ZERO));
}

#[test]
fn channels_that_say_the_same_are_filtered_by_the_gain() {
    let mut random = SeedTree::new(5).rng(0);
    let values: Vec<Value> = (0..400).flat_map(|_| [normal(&mut random); 2]).collect();
    for (gain, floor) in [(0.9, 0.0), (0.1, 0.0), (0.1, 0.5)] {
        let frames = vec![Frame::new(gain, floor); 400];
        let found = BinFilter::new(2).filter(&values, frames, 0);
        let energy = |values: &[Value]| values.iter().map(Value::norm_sqr).sum::<f64>();
        let found: Vec<Value> = found.iter().map(widen).collect();
        let ratio = (energy(&found) / energy(&values)).sqrt();
        assert!((ratio - f64::from(gain.max(floor))).abs() < 0.1, "{gain} {floor}: {ratio}");
    }
}

/// One bin of a voice and two noises in four channels, all with an echo a frame later: more than a single frame can separate.
struct EchoingScene {
    /// The voice in every channel.
    images: Vec<Spectrogram>,
    mixture: Vec<Spectrogram>,
    /// The voice with errors.
    estimate: Vec<Spectrogram>,
}

fn echoing_scene(frames: usize, seed: u64) -> EchoingScene {
    let mut random = SeedTree::new(seed).rng(0);
    let sources: [Vec<Value>; 3] = [0, 1, 2].map(|_| (0..=frames).map(|_| normal(&mut random)).collect());
    let image = |source: &[Value], random: &mut _| -> Vec<Value> {
        let [direct, echo] = [normal(random), normal(random) * 0.5];
        (1..=frames).map(|t| direct * source[t] + echo * source[t - 1]).collect()
    };
    let spectrogram = |values: &[Value]| {
        Spectrogram::from_values(1, values.iter().map(|x| Complex::new(x.re as f32, x.im as f32)).collect())
    };
    let mut scene = EchoingScene { images: Vec::new(), mixture: Vec::new(), estimate: Vec::new() };
    for _ in 0..CHANNELS {
        let [voice, first, second] = sources.each_ref().map(|source| image(source, &mut random));
        let mut add = |values: &[Value], level: f64| -> Vec<Value> {
            values.iter().map(|x| x + normal(&mut random) * level).collect()
        };
        let sum: Vec<Value> = (0..frames).map(|t| voice[t] + first[t] + second[t]).collect();
        scene.mixture.push(spectrogram(&add(&sum, 0.01)));
        scene.estimate.push(spectrogram(&add(&voice, 0.5)));
        scene.images.push(spectrogram(&voice));
    }
    scene
}

/// Error of all channels together, dB.
fn spectrogram_error_db(found: &[Spectrogram], voice: &[Spectrogram]) -> f64 {
    let all = |channels: &[Spectrogram]| -> Vec<Value> {
        channels.iter().flat_map(|channel| channel.as_slice()).map(widen).collect()
    };
    error_db(all(found).into_iter(), &all(voice))
}

#[test]
fn a_constant_filter_keeps_directions_and_echoes_of_an_estimate_and_not_its_errors() {
    let EchoingScene { images, mixture, estimate } = echoing_scene(1_000, 6);
    let found = LinearFilter::new(CHANNELS, GRID).filter(&mixture, &estimate, 0..1_000);
    let [before, after] = [&estimate, &found].map(|channels| spectrogram_error_db(channels, &images));
    assert!(after < before - 15.0, "{before} dB before, {after} dB after");
}

#[test]
fn a_short_last_block_keeps_the_constant_filter() {
    let EchoingScene { images, mixture, estimate } = echoing_scene(410, 7);
    let rest = |channels: &[Spectrogram], first: usize| -> Vec<Spectrogram> {
        let rest = |channel: &Spectrogram| Spectrogram::from_values(1, channel.as_slice()[first..].to_vec());
        channels.iter().map(rest).collect()
    };
    let mut filter = LinearFilter::new(CHANNELS, GRID);
    filter.filter(&mixture, &estimate, 0..400);
    // The second block includes the last frame of the first as context.
    let found = filter.filter(&rest(&mixture, 399), &rest(&estimate, 399), 1..11);
    let kept = spectrogram_error_db(&found, &rest(&images, 400));
    let alone = LinearFilter::new(CHANNELS, GRID).filter(&rest(&mixture, 399), &rest(&estimate, 399), 1..11);
    let alone = spectrogram_error_db(&alone, &rest(&images, 400));
    assert!(kept < alone - 3.0 && kept < -11.0, "{kept} dB, {alone} dB without the block before");
    // Silence is silent, and so are channels without a target.
    let silence = vec![Spectrogram::new(1, 3); CHANNELS];
    assert!(filter.filter(&silence, &silence, 0..3) == silence);
    let mut filter = LinearFilter::new(CHANNELS, GRID);
    assert!(filter.filter(&silence, &silence, 0..3) == silence);
}

#[test]
fn channels_that_say_the_same_pass_the_constant_filter() {
    let EchoingScene { mixture, estimate, .. } = echoing_scene(1_000, 8);
    let mixture = vec![mixture[0].clone(); 2];
    let found = LinearFilter::new(2, GRID).filter(&mixture, &estimate[..2], 0..1_000);
    let change = spectrogram_error_db(&found, &mixture);
    assert!(change < -60.0, "{change} dB");
}

/// Channels 2 and 3 of four drop out for some of the frames, and come back.
#[test]
fn channels_that_drop_out_take_nothing_from_the_others_and_get_nothing() {
    let EchoingScene { images, mut mixture, estimate } = echoing_scene(1_500, 9);
    let gone = 500..1_000;
    mixture[1..3].iter_mut().for_each(|channel| channel.as_mut_slice()[gone.clone()].fill(Complex::ZERO));
    let part = |channels: &[Spectrogram], which: [usize; 2]| -> Vec<Spectrogram> {
        let part = |&channel: &usize| {
            Spectrogram::from_values(1, channels[channel].as_slice()[gone.clone()].to_vec())
        };
        which.iter().map(part).collect()
    };
    let found = LinearFilter::new(CHANNELS, GRID).filter(&mixture, &estimate, 0..1_500);
    // No worse than if the others had always been alone.
    let alone = LinearFilter::new(2, GRID).filter(&part(&mixture, [0, 3]), &part(&estimate, [0, 3]), 0..500);
    let [left, alone] =
        [part(&found, [0, 3]), alone].map(|found| spectrogram_error_db(&found, &part(&images, [0, 3])));
    assert!(left < alone + 0.1, "{left} dB, alone {alone} dB");
    assert!(part(&found, [1, 2]) == part(&mixture, [1, 2]));

    let gain: Vec<f32> = (0..1_500).map(|t| if t % 3 == 0 { 0.9 } else { 0.2 }).collect();
    let applied: Vec<f32> = gain.iter().map(|gain| gain.max(0.3)).collect();
    let filtered = |mixture: &[Spectrogram]| {
        let mut found = mixture.to_vec();
        SpatialFilter::new(CHANNELS, GRID).filter(&mut found, &gain, &applied, 0);
        found
    };
    let silent = filtered(&mixture);
    // The gain alone filters a dropped-out channel that is not entirely silent.
    mixture[1].as_mut_slice()[gone.start + 100] = Complex::new(1e-4, 0.0);
    let found = filtered(&mixture);
    assert!(part(&found, [0, 3]) == part(&silent, [0, 3]));
    for t in gone {
        assert_eq!(found[1].as_slice()[t], mixture[1].as_slice()[t] * applied[t]);
    }
}
