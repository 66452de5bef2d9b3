//! Tests of the clocks of recorders.

use super::*;
use crate::resampler::Resampler;
use alphamf::random::SeedTree;
use rand::RngExt;

const RATE: u32 = 8_000;

fn noise(seconds: usize, seed: u64) -> Vec<f32> {
    let mut random = SeedTree::new(seed).rng(0);
    (0..seconds * RATE as usize).map(|_| random.random_range(-1.0..1.0_f32)).collect()
}

/// A sound as recorded with another clock, with independent noise of equal level.
fn take(sound: &[f32], clock: Clock, seed: u64) -> Vec<f32> {
    let mut resampler = Resampler::<1>::new(1.0);
    // Position of the take's first sample in the reference.
    let start = clock.to_reference(0.0);
    let silence = (-start).max(0.0).ceil();
    resampler.start_at(start + silence);
    let mut samples = std::iter::repeat_n(0.0, silence as usize).chain(sound.iter().copied());
    let mut take = Vec::new();
    while let Some([sample]) = resampler.next(1.0 / (1.0 + clock.drift), || samples.next().map(|x| [x])) {
        take.push(sample);
    }
    take.iter_mut().zip(noise(220, seed)).for_each(|(x, noise)| *x += noise);
    take
}

fn measured(reference: &[f32], take: &[f32]) -> Result<Clock, Mismatch> {
    found(reference, take).map(|found| found.clock)
}

fn found(reference: &[f32], take: &[f32]) -> Result<Found, Mismatch> {
    let mut meter = ClockMeter::new(RATE);
    let most = reference.len().max(take.len());
    let block =
        |samples: &[f32], at: usize| samples[at.min(samples.len())..(at + 5_000).min(samples.len())].to_vec();
    (0..most).step_by(5_000).for_each(|at| meter.push(&block(reference, at), &block(take, at)));
    meter.finish()
}

#[test]
fn shift_and_drift_are_found_in_noise() {
    let sound = noise(90, 1);
    for (shift, ppm) in [(9_876.4, 50.0), (-12_345.6, -80.0), (0.0, 0.0), (79_000.0, 7.0)] {
        let clock = Clock { shift, drift: 1e-6 * ppm };
        let found = measured(&sound, &take(&sound, clock, 2)).unwrap();
        assert!((found.shift - shift).abs() < 0.5, "{clock:?}: {found:?}");
        assert!((found.drift - clock.drift).abs() < 2e-6, "{clock:?}: {found:?}");
    }
}

/// A file with a wrong sample rate has such a drift.
#[test]
fn clocks_far_apart_are_followed_or_refused() {
    // Drift blurs long sounds. These are as short as those of a voice.
    let loudness = |n: usize| if n % 7_000 < 400 { 30.0 } else { 1.0 };
    let sound: Vec<f32> = noise(90, 1).iter().enumerate().map(|(n, x)| loudness(n) * x).collect();
    // A long sound, low-passed.
    let mut level = 0.0;
    let mut low_passed = |x: f32| {
        level += 0.2 * (x - level);
        10.0 * level
    };
    let long: Vec<f32> = noise(90, 1).into_iter().map(&mut low_passed).collect();
    for sound in [&sound, &long] {
        for ppm in [-999.0, 600.0, 1_001.0] {
            let clock = Clock { shift: 9_876.4, drift: 1e-6 * ppm };
            let found = measured(sound, &take(sound, clock, 2)).unwrap();
            assert!((found.shift - clock.shift).abs() < 8.0, "{clock:?}: {found:?}");
            assert!((found.drift - clock.drift).abs() < 2e-5, "{clock:?}: {found:?}");
        }
    }
    for ppm in [-3_000.0, 3_000.0] {
        let found = measured(&sound, &take(&sound, Clock { shift: 0.0, drift: 1e-6 * ppm }, 2));
        let Err(Mismatch::Drift(found)) = found else { panic!("{ppm}: {found:?}") };
        assert!((found / ppm - 1.0).abs() < 0.05, "{ppm}: {found}");
    }
}

#[test]
fn a_short_take_has_a_shift_and_no_drift() {
    let sound = noise(6, 1);
    let found = measured(&sound, &take(&sound, Clock { shift: 4_000.0, drift: 5e-5 }, 2)).unwrap();
    assert!((found.shift - 4_000.0).abs() < 2.0 && found.drift == 0.0, "{found:?}");
}

/// Transforms for them are shorter than the longest shift.
#[test]
fn short_takes_have_their_own_shift() {
    for tenths in [12, 20, 39] {
        let sound = &noise(4, 1)[..tenths * RATE as usize / 10];
        for shift in [0.0, 1_000.0, -1_000.0] {
            let take = take(sound, Clock { shift, drift: 0.0 }, 2);
            let found = measured(sound, &take).unwrap();
            assert!((found.shift - shift).abs() < 0.5, "{tenths} tenths: {found:?}");
        }
    }
}

/// Most of the short take lies in another section of the long one.
#[test]
fn a_short_take_is_found_anywhere() {
    let sound = noise(40, 1);
    for shift in [-72_000.0, -16_000.0] {
        let short = &take(&sound, Clock { shift, drift: 0.0 }, 2)[..20_000];
        let found = measured(&sound, short).unwrap();
        assert!((found.shift - shift).abs() < 0.5 && found.drift == 0.0, "{found:?}");
        let found = measured(short, &sound).unwrap();
        assert!((found.shift + shift).abs() < 0.5 && found.drift == 0.0, "{found:?}");
    }
}

#[test]
fn a_take_that_ends_early_is_found_and_the_rest_does_not_wait() {
    let sound = noise(200, 1);
    let clock = Clock { shift: -70_000.0, drift: 0.0 };
    let take = &take(&sound, clock, 2)[..20 * RATE as usize];
    let found = measured(&sound, take).unwrap();
    assert!((found.shift - clock.shift).abs() < 0.5, "{found:?}");
    let mut meter = ClockMeter::new(RATE);
    sound.chunks(5_000).for_each(|block| meter.push(block, &[]));
    assert!(meter.reference.samples.len() < 62 * RATE as usize);
}

#[test]
fn a_take_that_lacks_samples_is_reported() {
    let sound = noise(100, 1);
    let (clock, rate) = (Clock { shift: 4_000.0, drift: 2e-5 }, RATE as usize);
    let mut take = take(&sound, clock, 2);
    let whole = found(&sound, &take).unwrap();
    assert_eq!(whole.unmatched_from, None);
    // Most windows agree, so that the clock is that of the part before the gap.
    take.drain(60 * rate..60 * rate + rate / 5);
    let lacking = found(&sound, &take).unwrap();
    assert!((lacking.clock.shift - whole.clock.shift).abs() < 0.5, "{lacking:?}");
    let from = lacking.unmatched_from.unwrap() / f64::from(RATE);
    assert!((57.0..=61.0).contains(&from), "{from} s");
    // After the end of a take, there is nothing to compare.
    assert_eq!(found(&sound, &take[..50 * rate]).unwrap().unmatched_from, None);
}

#[test]
fn a_day_takes_no_more_memory_than_two_hours() {
    let drift = 30e-6 * f64::from(RATE);
    let shift = |n: u32| 500.0 + 2.0 * drift * f64::from(n) + if n.is_multiple_of(3) { 0.01 } else { 0.0 };
    let found: Vec<[f64; 2]> = (0..43_200).map(|n| [2.0 * f64::from(RATE * n), shift(n)]).collect();
    assert!(slopes(&found).take(8_000_001).count() <= 8_000_000);
    let clock = line(&found, f64::from(RATE)).unwrap();
    assert!((clock.drift - 30e-6).abs() < 1e-9 && (clock.shift - 500.0).abs() < 0.02, "{clock:?}");
    assert_eq!(slopes(&found[..3_600]).count(), 3_600 * 3_599 / 2);
}

#[test]
fn takes_of_other_sounds_have_no_clock() {
    assert_eq!(measured(&noise(60, 1), &noise(60, 2)), Err(Mismatch::NoCommonSound));
    assert_eq!(measured(&noise(60, 1), &vec![0.0; 60 * RATE as usize]), Err(Mismatch::NoCommonSound));
    assert_eq!(measured(&noise(60, 1), &[]), Err(Mismatch::NoCommonSound));
}

/// The product of the spectra exceeds what floats hold.
#[test]
fn samples_far_above_full_scale_end_nothing() {
    let sound = noise(90, 1);
    let clock = Clock { shift: 4_000.0, drift: 5e-5 };
    let mut take = take(&sound, clock, 2);
    take[280_000..330_000].iter_mut().step_by(16_000).for_each(|x| *x = f32::MAX);
    let found = found(&sound, &take).unwrap();
    assert!((found.clock.shift - clock.shift).abs() < 0.5, "{found:?}");
    assert!((found.clock.drift - clock.drift).abs() < 2e-6, "{found:?}");
    assert_eq!(found.unmatched_from, None);
}

/// The correlation of a whole section has a peak, but among its windows only the one with the knock has.
#[test]
fn a_knock_in_each_is_no_sound_in_common() {
    let knocking = |seed: u64, at: usize| {
        let mut sound = noise(30, seed);
        sound.iter_mut().for_each(|x| *x *= 0.01);
        sound[at] += 0.43;
        sound
    };
    for at in [70_000, 90_000, 110_000] {
        let found = measured(&knocking(1, 80_000), &knocking(2, at));
        assert_eq!(found, Err(Mismatch::NoCommonSound), "{at}");
    }
}

/// The event is louder and longer than a knock: the peak of one section needs no confirmation.
#[test]
fn one_event_in_each_is_no_sound_in_common() {
    let (mut one, mut other) = (noise(60, 1), noise(60, 2));
    let event = noise(1, 3);
    for (take, at) in [(&mut one, 80_000), (&mut other, 120_000)] {
        take[at..][..4_000].iter_mut().zip(&event).for_each(|(x, y)| *x += 20.0 * y);
    }
    assert_eq!(measured(&one, &other), Err(Mismatch::NoCommonSound));
}

#[test]
fn a_take_of_opposite_sign_has_the_same_clock() {
    let mut level = 0.0;
    let mut low_passed = |x: f32| {
        level += 0.2 * (x - level);
        10.0 * level
    };
    let sound: Vec<f32> = noise(40, 1).into_iter().map(&mut low_passed).collect();
    let clock = Clock { shift: 9_876.4, drift: 2e-5 };
    let inverted: Vec<f32> = take(&sound, clock, 2).into_iter().map(|x| -x).collect();
    let found = measured(&sound, &inverted).unwrap();
    assert!((found.shift - clock.shift).abs() < 0.5, "{found:?}");
    assert!((found.drift - clock.drift).abs() < 2e-6, "{found:?}");
}

#[test]
fn lines_by_chance_are_those_of_the_binomial_distribution() {
    // Six pairs of four; at least one of two others, each with probability 1/2.
    assert!((chance_lines(4, 3, 0.5) - 6.0 * 0.75).abs() < 1e-12);
    assert!((chance_lines(4, 4, 0.5) - 6.0 * 0.25).abs() < 1e-12);
    assert_eq!(chance_lines(4, 2, 0.5), f64::INFINITY);
    // No overflow, nor zero times infinity.
    assert!(chance_lines(43_200, 800, 0.1) > 1e8 && chance_lines(43_200, 40_000, 0.1) < 1e-100);
}
