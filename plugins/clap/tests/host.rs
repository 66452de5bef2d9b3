//! The built plugin, loaded from its file as by a host.

mod shared;

use alphamf::denoiser::{LiveControls, LiveSettings};
use alphamf::{Denoiser, Dictionary, Settings};
use clack_extensions::audio_ports::{AudioPortFlags, AudioPortInfoBuffer, AudioPortType, PluginAudioPorts};
use clack_extensions::latency::PluginLatency;
use clack_extensions::params::{ParamInfoBuffer, ParamInfoFlags, PluginParams};
use clack_extensions::state::PluginState;
use clack_extensions::tail::{PluginTail, TailLength};
use clack_host::events::event_types::ParamValueEvent;
use clack_host::prelude::*;
use clack_host::process::StoppedPluginAudioProcessor;
use shared::{
    BYPASS, Change, FLOOR, GAIN_EXPONENT, Host, LEARN, MIX, MONO, STEREO, activate, instance, now, sound,
};
use std::path::PathBuf;
use std::sync::LazyLock;

/// Library that cargo built for this test.
fn file() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    let found = [folder.clone(), folder.join("..")].map(|folder| {
        folder.join(format!("{}alphamf_clap{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
    });
    found.into_iter().find(|path| path.exists()).expect("the plugin beside its test")
}

static ENTRY: LazyLock<PluginEntry> = LazyLock::new(|| {
    // SAFETY: it is the plugin that was just built.
    unsafe { PluginEntry::load(file()) }.unwrap()
});

/// Output of a new plugin, and its reported latency.
fn run(rate: f64, channels: &[Vec<f32>], sizes: &[usize], changes: &[Change]) -> (Vec<Vec<f32>>, usize) {
    let mut plugin = instance(&ENTRY, if channels.len() == 1 { MONO } else { STEREO });
    let mut processor = activate(&mut plugin, rate).unwrap();
    let output = shared::process(&mut processor, channels, sizes, changes, |_| ());
    let handle = plugin.plugin_handle();
    let latency = handle.get_extension::<PluginLatency>().unwrap().get(&handle);
    assert_eq!(
        processor.plugin_handle().get_extension::<PluginTail>().map(|t| t.get(&processor.plugin_handle())),
        Some(TailLength::Finite(latency))
    );
    plugin.deactivate(processor.stop_processing());
    (output, latency as usize)
}

/// The state of a plugin that a host saves with its project.
fn state(plugin: &mut PluginInstance<Host>) -> Vec<u8> {
    let handle = plugin.plugin_handle();
    let mut saved = Vec::new();
    handle.get_extension::<PluginState>().unwrap().save(&handle, &mut saved).unwrap();
    saved
}

/// Loads a saved state; returns whether the plugin accepts it.
fn load(plugin: &mut PluginInstance<Host>, saved: &[u8]) -> bool {
    let handle = plugin.plugin_handle();
    handle.get_extension::<PluginState>().unwrap().load(&handle, &mut &*saved).is_ok()
}

/// Passes changes of parameters to a plugin that is not processing.
fn flush(stopped: &mut StoppedPluginAudioProcessor<Host>, changes: &EventBuffer) {
    let mut handle = stopped.plugin_handle();
    let parameters = handle.get_extension::<PluginParams>().unwrap();
    parameters.flush_active(&mut handle, &changes.as_input(), &mut OutputEvents::void());
}

#[test]
fn hosts_find_two_plugins_with_ports_and_parameters() {
    let factory = ENTRY.get_plugin_factory().unwrap();
    assert_eq!(factory.plugin_count(), 2);
    for (index, id, width) in [(0, STEREO, 2), (1, MONO, 1)] {
        let descriptor = factory.plugin_descriptor(index).unwrap();
        assert_eq!(descriptor.id().unwrap().to_str(), Ok(id));
        assert!(descriptor.name().unwrap().to_str().unwrap().starts_with("alphamf speech denoiser"));
        assert_eq!(descriptor.version().unwrap().to_str(), Ok(env!("CARGO_PKG_VERSION")));
        let features: Vec<_> = descriptor.features().map(|feature| feature.to_str().unwrap()).collect();
        assert_eq!(features, ["audio-effect", "restoration", if width == 1 { "mono" } else { "stereo" }]);

        let mut plugin = instance(&ENTRY, id);
        let handle = plugin.plugin_handle();
        let ports = handle.get_extension::<PluginAudioPorts>().unwrap();
        for is_input in [true, false] {
            assert_eq!(ports.count(&handle, is_input), 1);
            let mut buffer = AudioPortInfoBuffer::new();
            let port = ports.get(&handle, 0, is_input, &mut buffer).unwrap();
            assert_eq!(port.channel_count, width);
            assert_eq!(port.flags, AudioPortFlags::IS_MAIN);
            let kind = if width == 1 { AudioPortType::MONO } else { AudioPortType::STEREO };
            assert!(port.port_type == Some(kind) && port.in_place_pair == Some(port.id));
        }

        let parameters = handle.get_extension::<PluginParams>().unwrap();
        assert_eq!(parameters.count(&handle), 5);
        let described: Vec<_> = (0..5)
            .map(|index| {
                let mut buffer = ParamInfoBuffer::new();
                let info = parameters.get_info(&handle, index, &mut buffer).unwrap();
                assert_eq!(info.id, ClapId::new(index));
                assert_eq!(parameters.get_value(&handle, info.id), Some(info.default_value));
                assert_eq!(info.flags.contains(ParamInfoFlags::IS_BYPASS), index == BYPASS);
                assert_eq!(info.flags.contains(ParamInfoFlags::IS_STEPPED), index >= BYPASS);
                let name = String::from_utf8_lossy(info.name).into_owned();
                (name, info.min_value, info.max_value, info.default_value)
            })
            .collect();
        let expected = [
            ("Gain exponent", 0.0, 2.0, 1.0),
            ("Floor", -60.0, 0.0, -45.0),
            ("Mix", 0.0, 1.0, 1.0),
            ("Bypass", 0.0, 1.0, 0.0),
            ("Learn noise", 0.0, 1.0, 0.0),
        ];
        let expected = expected.map(|(name, least, most, default)| (name.to_owned(), least, most, default));
        assert_eq!(described, expected);
        assert_eq!(parameters.get_value(&handle, ClapId::new(5)), None);
    }
    assert!(factory.plugin_descriptor(2).is_none());
}

#[test]
fn it_is_the_library_bit_for_bit_at_every_rate_and_block_size() {
    let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::default()).unwrap();
    for (rate, width) in [(44_100, 2), (48_000, 2), (48_000, 1), (96_000, 1)] {
        let channels: Vec<_> = (0..width).map(|n| sound(rate as usize / 4, n as u32 + 1)).collect();
        let controls =
            LiveControls { gain_exponent: 0.8, floor_db: -20.0, mix: 0.9, ..LiveControls::default() };
        // A host sends the user's settings with the first block.
        let settings = LiveSettings { controls, ..LiveSettings::default() };
        let mut live = denoiser.live(rate, width, settings).unwrap();
        let input: Vec<f32> =
            (0..channels[0].len()).flat_map(|n| channels.iter().map(move |c| c[n])).collect();
        let mut expected = vec![0.0; input.len()];
        live.process(&input, &mut expected);
        assert!(expected.iter().any(|y| y.abs() > 0.01));

        let saved = b"alphamf 1\nstrength 0.8\nfloor_db -20\nmix 0.9\n";
        for sizes in [&[1][..], &[7], &[16], &[64], &[512], &[1 << 20], &[1, 480, 333, 64, 2_000, 3]] {
            let mut plugin = instance(&ENTRY, if width == 1 { MONO } else { STEREO });
            assert!(load(&mut plugin, saved));
            let mut processor = activate(&mut plugin, rate.into()).unwrap();
            let made = shared::process(&mut processor, &channels, sizes, &[], |_| ());
            let handle = plugin.plugin_handle();
            let latency = handle.get_extension::<PluginLatency>().unwrap().get(&handle) as usize;
            assert_eq!(latency, live.latency());
            let same = made.iter().enumerate().all(|(index, channel)| {
                channel.iter().zip(expected[index..].iter().step_by(width)).all(|(made, y)| made == y)
            });
            assert!(same, "{rate} Hz, {width} channels, blocks of {sizes:?}");
            plugin.deactivate(processor.stop_processing());
        }
    }
}

#[test]
fn the_delay_is_the_reported_one_and_the_mix_is_in_time() {
    for rate in [8_000.0, 44_100.0, 48_000.0, 96_000.0, 192_000.0] {
        let channels = [sound(rate as usize / 2, 3)];
        for change in [now(BYPASS, 1.0), now(MIX, 0.0)] {
            // The transition takes 20 ms.
            let (output, latency) = run(rate, &channels, &[441], &[change]);
            let settled = rate as usize / 40;
            assert!((latency as f64 - 0.016 * rate).abs() <= 1.0, "{rate} Hz: {latency}");
            assert!(output[0][settled + latency..] == channels[0][settled..channels[0].len() - latency]);
        }
        // An equal mix of input and denoised signal causes no comb filter if nothing is removed.
        let (output, latency) = run(rate, &channels, &[64], &[now(MIX, 0.5), now(GAIN_EXPONENT, 0.0)]);
        let settled = 2 * rate as usize / 5;
        let error =
            output[0][settled + latency..].iter().zip(&channels[0][settled..]).map(|(y, x)| (y - x).abs());
        let error = error.fold(0.0, f32::max);
        assert!(error < 1e-4, "{rate} Hz: {error}");
    }
}

#[test]
fn parameters_change_at_their_sample() {
    let channels = [sound(9_600, 4), sound(9_600, 5)];
    let changes = [
        Change { at: 1_001, parameter: MIX, value: 0.3 },
        Change { at: 1_001, parameter: FLOOR, value: -10.0 },
        Change { at: 5_000, parameter: BYPASS, value: 1.0 },
    ];
    let whole = run(48_000.0, &channels, &[9_600], &changes);
    for sizes in [&[64][..], &[1_001, 3_999], &[1]] {
        assert!(run(48_000.0, &channels, sizes, &changes) == whole, "blocks of {sizes:?}");
    }
    assert!(whole != run(48_000.0, &channels, &[9_600], &changes[..2]));
}

#[test]
fn a_project_is_found_as_it_was_saved() {
    let mut plugin = instance(&ENTRY, STEREO);
    let mut processor = activate(&mut plugin, 48_000.0).unwrap();
    let channels = [sound(64, 6), sound(64, 7)];
    let changes =
        [now(GAIN_EXPONENT, 1.25), now(FLOOR, -31.0), now(MIX, 0.7), now(BYPASS, 1.0), now(LEARN, 1.0)];
    shared::process(&mut processor, &channels, &[64], &changes, |_| ());
    let saved = state(&mut plugin);

    let mut other = instance(&ENTRY, STEREO);
    let value = |plugin: &mut PluginInstance<Host>, parameter| {
        let handle = plugin.plugin_handle();
        handle.get_extension::<PluginParams>().unwrap().get_value(&handle, ClapId::new(parameter))
    };
    for foreign in [&b"not a state"[..], b"", b"alphamf 2\n", &[0xff; 100_000]] {
        assert!(!load(&mut other, foreign));
        assert_eq!(value(&mut other, MIX), Some(1.0));
    }
    assert!(load(&mut other, &saved));
    for change in changes {
        assert_eq!(value(&mut other, change.parameter), Some(change.value));
    }
    plugin.deactivate(processor.stop_processing());
}

#[test]
fn learned_noise_is_removed() {
    let level = |samples: &[f32]| samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32;
    let hum: Vec<f32> =
        (0..16_000).map(|n| 0.1 * (1..6).map(|k| (n as f32 * 0.06 * k as f32).sin()).sum::<f32>()).collect();
    let shown = [now(LEARN, 1.0), Change { at: 8_000, parameter: LEARN, value: 0.0 }];
    let taken_out = |changes: &[Change]| {
        let (output, _) = run(16_000.0, std::slice::from_ref(&hum), &[160], changes);
        [1_000..8_000, 10_000..16_000].map(|part| level(&output[0][part.clone()]) / level(&hum[part]))
    };
    let [while_learning, after] = taken_out(&shown);
    // The output is muted, to the floor of -45 dB.
    assert!(while_learning < 1e-4 && after < 0.01, "{while_learning} {after}");
    assert!(taken_out(&[])[0] > 1e-3);
}

#[test]
fn learned_noise_outlasts_a_reset_and_another_activation() {
    let mut plugin = instance(&ENTRY, MONO);
    let mut processor = activate(&mut plugin, 16_000.0).unwrap();
    let (noise, start) = ([sound(16_000, 9)], [sound(4_000, 10)]);
    let starts = |processor: &mut _| shared::process(processor, &start, &[160], &[], |_| ());
    let unlearned = starts(&mut processor);
    processor.reset();
    let changes = [now(LEARN, 1.0), Change { at: 15_000, parameter: LEARN, value: 0.0 }];
    shared::process(&mut processor, &noise, &[160], &changes, |_| ());
    processor.reset();
    let learned = starts(&mut processor);
    assert!(learned != unlearned);
    processor.reset();
    assert!(starts(&mut processor) == learned, "after another reset");
    plugin.deactivate(processor.stop_processing());
    let mut processor = activate(&mut plugin, 16_000.0).unwrap();
    assert!(starts(&mut processor) == learned, "after another activation");
    plugin.deactivate(processor.stop_processing());
    // The noise does not apply at another rate, and is kept for its own.
    for (rate, same) in [(8_000.0, false), (16_000.0, true)] {
        let mut processor = activate(&mut plugin, rate).unwrap();
        assert_eq!(starts(&mut processor) == learned, same, "{rate} Hz");
        plugin.deactivate(processor.stop_processing());
    }
}

#[test]
fn learned_noise_is_saved_with_the_project() {
    let (noise, start) = ([sound(16_000, 9)], [sound(4_000, 10)]);
    let starts = |processor: &mut _| shared::process(processor, &start, &[160], &[], |_| ());
    let mut plugin = instance(&ENTRY, MONO);
    let empty = state(&mut plugin);
    let mut processor = activate(&mut plugin, 16_000.0).unwrap();
    let changes = [now(LEARN, 1.0), Change { at: 15_000, parameter: LEARN, value: 0.0 }];
    shared::process(&mut processor, &noise, &[160], &changes, |_| ());
    let saved = state(&mut plugin);
    assert!(saved.len() > empty.len());
    processor.reset();
    let learned = starts(&mut processor);

    // States are loaded before activation and while the plugin runs; a project without noise discards learned noise.
    let mut other = instance(&ENTRY, MONO);
    assert!(load(&mut other, &saved));
    assert_eq!(state(&mut other), saved);
    let mut processor_of_other = activate(&mut other, 16_000.0).unwrap();
    assert!(starts(&mut processor_of_other) == learned);
    assert!(load(&mut other, &empty));
    processor_of_other.reset();
    let unlearned = starts(&mut processor_of_other);
    assert!(unlearned != learned);
    processor_of_other.reset();
    assert!(starts(&mut processor_of_other) == unlearned);
    assert!(load(&mut other, &saved));
    assert!(!load(&mut other, &[&empty[..], b"noise loud\n"].concat()));
    starts(&mut processor_of_other);
    processor_of_other.reset();
    assert!(starts(&mut processor_of_other) == learned);
    other.deactivate(processor_of_other.stop_processing());
    plugin.deactivate(processor.stop_processing());
}

/// With a stopped transport, no sound reaches a project that is opened during learning.
#[test]
fn loaded_noise_outlasts_what_was_being_learned() {
    let noise = [sound(4_000, 9)];
    let mut plugin = instance(&ENTRY, MONO);
    let of_project =
        format!("{}noise_rate 16000\nnoise 2e0\n", String::from_utf8(state(&mut plugin)).unwrap());
    for flushed in [true, false] {
        let mut processor = activate(&mut plugin, 16_000.0).unwrap();
        shared::process(&mut processor, &noise, &[160], &[now(LEARN, 1.0)], |_| ());
        assert!(load(&mut plugin, of_project.as_bytes()));
        let mut stopped = processor.stop_processing();
        if flushed {
            flush(&mut stopped, &EventBuffer::new());
        }
        plugin.deactivate(stopped);
        assert_eq!(String::from_utf8(state(&mut plugin)).unwrap(), of_project, "{flushed}");
    }
}

/// The highest sample rate has the maximum number of bins of a state.
#[test]
fn noise_is_learned_through_a_loaded_state_and_saved_where_learning_ends_in_a_stopped_transport() {
    for (rate, bins) in [(16_000.0, 513), (192_000.0, 6_145)] {
        let mut plugin = instance(&ENTRY, MONO);
        let mut processor = activate(&mut plugin, rate).unwrap();
        let noise = [sound(rate as usize / 4, 9)];
        shared::process(&mut processor, &noise, &[480], &[now(LEARN, 1.0)], |_| ());
        let saved = state(&mut plugin);
        assert!(load(&mut plugin, &saved));
        shared::process(&mut processor, &noise, &[480], &[], |_| ());

        let mut stopped = processor.stop_processing();
        let mut end = EventBuffer::with_capacity(1);
        end.push(&ParamValueEvent::new(0, ClapId::new(LEARN), Pckn::match_all(), 0.0));
        flush(&mut stopped, &end);
        let saved = String::from_utf8(state(&mut plugin)).unwrap();
        assert_eq!(saved.lines().filter(|line| line.starts_with("noise ")).count(), bins, "{rate} Hz");
        assert!(load(&mut plugin, saved.as_bytes()));
        plugin.deactivate(stopped);
    }
}

#[test]
fn it_starts_again_at_another_rate_and_refuses_what_it_cannot() {
    let mut plugin = instance(&ENTRY, MONO);
    assert!(activate(&mut plugin, 4_000.0).is_err());
    let channels = [sound(6_000, 8)];
    let mut outputs = Vec::new();
    for rate in [48_000.0, 44_100.0, 48_000.0] {
        let mut processor = activate(&mut plugin, rate).unwrap();
        outputs.push(shared::process(&mut processor, &channels, &[128], &[], |_| ()));
        processor.reset();
        let again = shared::process(&mut processor, &channels, &[100], &[], |_| ());
        assert!(outputs.last() == Some(&again), "{rate} Hz, after a reset");
        plugin.deactivate(processor.stop_processing());
    }
    assert!(outputs[0] == outputs[2] && outputs[0] != outputs[1]);
}
