//! Speech levels against their definition: the mean square of the voice over exactly the 100 ms of a slot, after ideal
//! third-octave filters.

use super::shared::{demo, denoiser};
use alphamf::Settings;
use alphamf::denoiser::{SessionSettings, SpeechLevels};
use num_complex::Complex;

/// Levels of a voice, dB, bands x slots, from one transform of the whole recording; `edges` are in Hz.
fn levels(samples: &[f32], rate: f64, edges: &[f64]) -> Vec<f64> {
    let (forward, inverse) =
        (alphamf_fourier::forward::<f64>(samples.len()), alphamf_fourier::inverse::<f64>(samples.len()));
    let mut copy: Vec<f64> = samples.iter().map(|&x| x.into()).collect();
    let mut spectrum = forward.make_output_vec();
    forward.process(&mut copy, &mut spectrum).unwrap();
    let (bands, slot) = (edges.len() - 1, rate as usize / 10);
    let mut found = vec![0.0; samples.len().div_ceil(slot) * bands];
    for (band, edges) in edges.windows(2).enumerate() {
        let inside = |bin: usize| (edges[0]..edges[1]).contains(&(bin as f64 * rate / samples.len() as f64));
        let chosen = |(bin, x): (usize, &Complex<f64>)| if inside(bin) { *x } else { Complex::default() };
        let mut part: Vec<Complex<f64>> = spectrum.iter().enumerate().map(chosen).collect();
        let mut filtered = inverse.make_output_vec();
        inverse.process(&mut part, &mut filtered).unwrap();
        for (at, filtered) in filtered.chunks(slot).enumerate() {
            let sum: f64 = filtered.iter().map(|x| (x / samples.len() as f64).powi(2)).sum();
            found[at * bands + band] = 10.0 * (sum / filtered.len() as f64 + 1e-30).log10();
        }
    }
    found
}

/// The quantile of `values` at `fraction`, 0 to 1.
fn quantile(values: impl Iterator<Item = f64>, fraction: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[(fraction * (values.len() - 1) as f64) as usize]
}

/// Fraction of the intervals that contain the level of the voice, over levels down to 40 dB below their 95 % quantile.
fn held(noisy: &[f32], voice: &[f32], rate: u32) -> f64 {
    let denoiser = denoiser(Settings::fast());
    let settings = SessionSettings { levels: true, ..SessionSettings::default() };
    let mut session = denoiser.session(rate, 1, settings).unwrap();
    session.push(&[noisy]).unwrap();
    let SpeechLevels { mut cells, edges_hertz, .. } = session.take_levels().remove(0);
    session.finish().unwrap();
    cells.extend(session.take_levels().remove(0).cells);
    let truth = levels(voice, rate.into(), &edges_hertz);
    assert_eq!(cells.len(), truth.len());
    let loud = quantile(cells.iter().flatten().map(|cell| cell.level_dbfs), 0.95);
    let lowest = quantile(truth.iter().copied(), 0.95) - 50.0;
    let judged = cells.iter().zip(&truth).filter_map(|(cell, truth)| Some(((*cell)?, truth.max(lowest))));
    let judged: Vec<_> = judged.filter(|(cell, _)| cell.level_dbfs > loud - 40.0).collect();
    let held = judged.iter().filter(|(cell, truth)| (cell.lower_dbfs..=cell.upper_dbfs).contains(truth));
    assert!(judged.len() > 300, "{}", judged.len());
    held.count() as f64 / judged.len() as f64
}

/// Intervals from frames of 64 ms, which smear time, contained a half to two thirds of the levels. A single voice may
/// have more than nine tenths.
#[test]
fn intervals_hold_the_levels_of_exact_slots() {
    let (noisy, voice) = (demo("demo-noisy.wav"), demo("demo-clean.wav"));
    let (noisy, voice, rate) = (&noisy.channels()[0], &voice.channels()[0], noisy.sample_rate());
    for share in [1.0, 0.1, 0.0] {
        let mixed: Vec<f32> =
            noisy.iter().zip(voice).map(|(noisy, voice)| voice + share * (noisy - voice)).collect();
        let held = held(&mixed, voice, rate);
        assert!((0.84..=0.99).contains(&held), "{share} of the noise: {held}");
    }
}
