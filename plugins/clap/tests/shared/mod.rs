//! A small host.

use clack_host::events::event_types::ParamValueEvent;
use clack_host::prelude::*;
use clack_host::process::StartedPluginAudioProcessor;
use std::ffi::CString;

pub const STEREO: &str = "alphamf.speech-denoiser.stereo";
pub const MONO: &str = "alphamf.speech-denoiser.mono";

/// Indices of the parameters.
pub const GAIN_EXPONENT: u32 = 0;
pub const FLOOR: u32 = 1;
pub const MIX: u32 = 2;
pub const BYPASS: u32 = 3;
pub const LEARN: u32 = 4;

pub struct Host;
pub struct Nothing;

impl SharedHandler<'_> for Nothing {
    fn request_restart(&self) {}
    fn request_process(&self) {}
    fn request_callback(&self) {}
}
impl MainThreadHandler<'_> for Nothing {}
impl AudioProcessorHandler<'_> for Nothing {}

impl HostHandlers for Host {
    type Shared<'a> = Nothing;
    type MainThread<'a> = Nothing;
    type AudioProcessor<'a> = Nothing;
}

pub fn instance(entry: &PluginEntry, id: &str) -> PluginInstance<Host> {
    let info = HostInfo::new("test", "", "", "1").unwrap();
    let id = CString::new(id).unwrap();
    PluginInstance::new(|_| Nothing, |_| Nothing, entry, &id, &info).unwrap()
}

pub fn activate(
    instance: &mut PluginInstance<Host>,
    sample_rate: f64,
) -> Result<StartedPluginAudioProcessor<Host>, String> {
    let configuration =
        PluginAudioConfiguration { sample_rate, min_frames_count: 1, max_frames_count: 1 << 20 };
    let stopped = instance.activate(|_, _| Nothing, configuration).map_err(|error| error.to_string())?;
    stopped.start_processing().map_err(|error| error.to_string())
}

/// A change of a parameter at a sample, counted from the start of processing.
#[derive(Clone, Copy)]
pub struct Change {
    pub at: usize,
    pub parameter: u32,
    pub value: f64,
}

#[allow(dead_code)] // not used by every test
pub fn now(parameter: u32, value: f64) -> Change {
    Change { at: 0, parameter, value }
}

/// Processes channels in blocks of the given sizes, in turn. The callback is called before (`false`) and after (`true`)
/// every block.
pub fn process(
    processor: &mut StartedPluginAudioProcessor<Host>,
    channels: &[Vec<f32>],
    sizes: &[usize],
    changes: &[Change],
    mut around: impl FnMut(bool),
) -> Vec<Vec<f32>> {
    let (width, length) = (channels.len(), channels[0].len());
    let mut input = channels.to_vec();
    let mut output = vec![vec![f32::NAN; length]; width];
    let (mut inputs, mut outputs) =
        (AudioPorts::with_capacity(width, 1), AudioPorts::with_capacity(width, 1));
    let mut sizes = sizes.iter().cycle();
    let mut first = 0;
    while first < length {
        let end = length.min(first + sizes.next().unwrap());
        let mut events = EventBuffer::with_capacity(changes.len());
        for change in changes.iter().filter(|change| (first..end).contains(&change.at)) {
            let (time, id) = ((change.at - first) as u32, ClapId::new(change.parameter));
            events.push(&ParamValueEvent::new(time, id, Pckn::match_all(), change.value));
        }
        let came = inputs.with_input_buffers([AudioPortBuffer {
            latency: 0,
            channels: AudioPortBufferType::f32_input_only(
                input.iter_mut().map(|channel| InputChannel::variable(&mut channel[first..end])),
            ),
        }]);
        let mut goes = outputs.with_output_buffers([AudioPortBuffer {
            latency: 0,
            channels: AudioPortBufferType::f32_output_only(
                output.iter_mut().map(|channel| &mut channel[first..end]),
            ),
        }]);
        let (input_events, mut output_events) = (events.as_input(), OutputEvents::void());
        around(false);
        let status =
            processor.process(&came, &mut goes, &input_events, &mut output_events, Some(first as u64), None);
        around(true);
        status.unwrap();
        first = end;
    }
    output
}

/// Noise with a tone in it.
pub fn sound(samples: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..samples).map(|n| 0.1 * noise() + 0.2 * (n as f32 * 0.03).sin()).collect()
}
