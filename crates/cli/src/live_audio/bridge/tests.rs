//! Tests of the bridge between two devices.

use super::*;
use std::f64::consts::PI;

/// Fills a block, and returns its frames.
fn fill(exit: &mut Exit, count: usize) -> Vec<Frame> {
    let mut frames = vec![[f32::NAN; 2]; count];
    exit.fill(frames.iter_mut().map(|place| move |frame| *place = frame));
    frames
}

/// Pushes a block in parts, as the denoiser does.
fn push(entrance: &mut Entrance, block: &[Frame]) {
    entrance.begin_block(block.len());
    block.chunks(256).for_each(|part| entrance.push(part.iter().copied()));
}

/// Simulates two devices, the input's clock wrong by a fraction. Returns the output of `seconds` s.
fn devices(
    rates: (u32, u32),
    wrong: f64,
    blocks: (usize, usize),
    seconds: f64,
) -> (Vec<Frame>, Arc<Counters>) {
    let (mut entrance, mut exit, counters) = bridge(rates.0, rates.1);
    let tone = |n: usize| (n as f64 * 2.0 * PI * 440.0 / f64::from(rates.0)).sin() as f32;
    let (mut came, mut output) = (0, Vec::new());
    while (output.len() as f64) < seconds * f64::from(rates.1) {
        let time = (output.len() + blocks.1) as f64 / f64::from(rates.1);
        while ((came + blocks.0) as f64) < time * f64::from(rates.0) * (1.0 + wrong) {
            let block: Vec<Frame> = (came..came + blocks.0).map(|n| [tone(n), -tone(n)]).collect();
            push(&mut entrance, &block);
            came += blocks.0;
        }
        output.extend(fill(&mut exit, blocks.1));
    }
    (output, counters)
}

#[test]
fn a_tone_stays_a_tone_at_any_rates_and_clocks() {
    for (rates, wrong, blocks) in [
        ((48_000, 48_000), 0.0, (480, 512)),
        ((48_000, 48_000), 1e-3, (64, 1_024)),
        ((48_000, 48_000), -1e-3, (1_024, 128)),
        ((44_100, 48_000), 1e-4, (441, 480)),
        ((96_000, 44_100), -1e-4, (1_024, 128)),
        ((16_000, 48_000), 0.0, (64, 1_024)),
        ((48_000, 48_000), 1e-4, (4_096, 480)),
    ] {
        let (output, counters) = devices(rates, wrong, blocks, 15.0);
        let rate = f64::from(rates.1);
        // In the first second, the buffer fills.
        let settled = &output[rates.1 as usize..];
        let context = format!("{rates:?}, clock wrong by {wrong}, blocks of {blocks:?}");
        assert_eq!(counters.dropped(), 0, "{context}");
        assert_eq!(counters.missing(), 0, "{context}");
        assert!(settled.iter().all(|[l, r]| (l + r).abs() < 1e-6), "{context}");
        let longest = (blocks.0 as f64 / f64::from(rates.0) + blocks.1 as f64 / rate + 0.015) * 2.0;
        assert!(f64::from(counters.waiting()) < longest * f64::from(rates.0), "{context}");
        // A sinusoid solves y[n-1] + y[n+1] = 2 cos(w) y[n]: the residual is noise and clicks.
        let w = 2.0 * PI * 440.0 / rate * (1.0 + wrong);
        let error = settled
            .windows(3)
            .map(|y| f64::from(y[0][0]) + f64::from(y[2][0]) - 2.0 * w.cos() * f64::from(y[1][0]));
        let worst = error.fold(0.0, |worst: f64, error| worst.max(error.abs()));
        assert!(worst < 2e-3 * w, "{context}: {worst}");
    }
}

#[test]
fn at_equal_rates_and_clocks_samples_stay_what_they_are() {
    let (mut entrance, mut exit, _) = bridge(48_000, 48_000);
    let ramp: Vec<Frame> = (0..2_300).map(|n| [n as f32; 2]).collect();
    push(&mut entrance, &ramp[..2_000]);
    // The target delay, 240 spare frames and blocks of 2000 and 10, is not reached yet.
    assert!(fill(&mut exit, 10).iter().all(|frame| *frame == [0.0; 2]));
    push(&mut entrance, &ramp[2_000..]);
    let output: Vec<Frame> = (0..40).flat_map(|_| fill(&mut exit, 10)).collect();
    let first = output.iter().position(|frame| frame[0] > 0.5).unwrap();
    for (n, frame) in output[first + 40..].iter().enumerate() {
        assert!((frame[0] - output[first + 40][0] - n as f32).abs() < 0.5, "{n}: {frame:?}");
    }
}

#[test]
fn an_input_that_stops_is_silence_and_goes_on_and_one_that_floods_is_dropped() {
    let (mut entrance, mut exit, counters) = bridge(48_000, 48_000);
    assert!(fill(&mut exit, 480).iter().all(|frame| *frame == [0.0; 2]));
    assert_eq!(counters.missing(), 0, "before anything came");
    let mut feed = |exit: &mut Exit, blocks: usize| {
        let mut last = Vec::new();
        for _ in 0..blocks {
            push(&mut entrance, &[[0.5; 2]; 480]);
            last = fill(exit, 480);
        }
        last
    };
    assert!(feed(&mut exit, 20).iter().all(|frame| (frame[0] - 0.5).abs() < 1e-3));
    let before = counters.missing();
    for _ in 0..10 {
        fill(&mut exit, 480);
    }
    assert!(counters.missing() > before);
    assert!(fill(&mut exit, 480).iter().all(|frame| *frame == [0.0; 2]));
    assert!(feed(&mut exit, 20).iter().all(|frame| (frame[0] - 0.5).abs() < 1e-3));
    assert_eq!(counters.dropped(), 0);
    // Three seconds at once: the ring holds two, of which the output keeps some ms.
    for _ in 0..300 {
        push(&mut entrance, &[[0.25; 2]; 480]);
    }
    fill(&mut exit, 480);
    assert!(counters.dropped() > 130_000, "{}", counters.dropped());
    assert!(exit.ring.slots() < 2_000);
}

#[test]
fn one_long_block_does_not_delay_for_ever() {
    let (mut entrance, mut exit, counters) = bridge(48_000, 48_000);
    let run = |entrance: &mut Entrance, exit: &mut Exit, seconds: usize| {
        for _ in 0..seconds * 100 {
            push(entrance, &[[0.5; 2]; 480]);
            fill(exit, 480);
        }
        counters.waiting()
    };
    let before = run(&mut entrance, &mut exit, 5);
    // The input is delayed by 90 ms.
    (0..9).for_each(|_| drop(fill(&mut exit, 480)));
    push(&mut entrance, &[[0.5; 2]; 4_800]);
    fill(&mut exit, 480);
    let during = run(&mut entrance, &mut exit, 5);
    let missing = counters.missing();
    assert!(during > before + 3_000, "{before} frames, {during} after a long block");
    let after = run(&mut entrance, &mut exit, 60);
    assert!(after < before + 240, "{before} frames, {after} a minute after a long block");
    assert_eq!((counters.missing(), counters.dropped()), (missing, 0));
}

#[test]
fn rates_are_common_where_that_can_be() {
    let any = Offer { least_rate: 8_000, most_rate: 192_000 };
    let only = |rate| Offer { least_rate: rate, most_rate: rate };
    assert_eq!(choose_rates(&[any], &[any], (44_100, 48_000)), (44_100, 44_100));
    assert_eq!(
        choose_rates(&[only(16_000), only(48_000)], &[only(48_000)], (16_000, 48_000)),
        (48_000, 48_000)
    );
    assert_eq!(choose_rates(&[only(96_000), only(8_000)], &[any], (8_000, 44_100)), (8_000, 8_000));
    assert_eq!(choose_rates(&[only(16_000)], &[only(44_100)], (16_000, 44_100)), (16_000, 44_100));
    assert_eq!(choose_rates(&[], &[], (48_000, 44_100)), (48_000, 44_100));
}

#[test]
fn devices_are_found_by_what_users_write() {
    let devices = [("hw:0", "Built-in Microphone"), ("hw:1", "USB Microphone"), ("null", "Discard all")]
        .map(|(id, name)| (id.to_owned(), name.to_owned()));
    assert_eq!(find(&devices, "hw:1"), Some(1));
    assert_eq!(find(&devices, "USB Microphone"), Some(1));
    assert_eq!(find(&devices, "usb"), Some(1));
    assert_eq!(find(&devices, "microphone"), None);
    assert_eq!(find(&devices, "headset"), None);
}
