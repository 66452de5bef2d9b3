#![doc = include_str!("../README.md")]
#![deny(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod abi;

use abi::{
    AUDIO, BOUNDED, CONTROL, DEFAULT_0, DEFAULT_1, DEFAULT_LOW, DEFAULT_MIDDLE, Descriptor, HARD_RT_CAPABLE,
    Handle, INPUT, INTEGER, OUTPUT, PortRangeHint, TOGGLED,
};
use alphamf::denoiser::LiveControls;
use alphamf_plugin::{Buffers, FLOOR_DB, GAIN_EXPONENT, Knob, MIX, Plugin};
use std::ffi::{CStr, c_char, c_int, c_ulong};
use std::ops::Range;
use std::ptr;

/// Number of control ports, after the audio ports: strength, floor, mix, bypass, latency.
const CONTROLS: usize = 5;

/// Running plugin of `WIDTH` channels. Ports: inputs, outputs, controls.
struct Instance<const WIDTH: usize, const PORTS: usize> {
    plugin: Plugin<WIDTH>,
    ports: [*mut f32; PORTS],
    /// Whether the next run starts from the initial state.
    fresh: bool,
}

impl<const WIDTH: usize, const PORTS: usize> Instance<WIDTH, PORTS> {
    fn new(sample_rate: c_ulong) -> Option<Self> {
        let sample_rate = u32::try_from(sample_rate).ok()?;
        Some(Self { plugin: Plugin::new(sample_rate).ok()?, ports: [ptr::null_mut(); PORTS], fresh: true })
    }

    /// Value of a control, or `default` if it is not connected.
    ///
    /// # Safety
    /// Connected ports must be readable.
    unsafe fn control(&self, index: usize, default: f32) -> f32 {
        let port = self.ports[2 * WIDTH + index];
        // SAFETY: it is not null, so it was connected; the caller promises that it is readable.
        if port.is_null() { default } else { unsafe { *port } }
    }

    /// Applies the controls.
    ///
    /// # Safety
    /// Connected ports must be readable.
    unsafe fn apply_controls(&mut self) {
        let default = LiveControls::default();
        // SAFETY: guaranteed by the caller.
        let controls = unsafe {
            LiveControls {
                gain_exponent: self.control(0, default.gain_exponent),
                floor_db: self.control(1, default.floor_db),
                mix: self.control(2, default.mix),
                bypass: self.control(3, 0.0) > 0.0,
                ..default
            }
        };
        self.plugin.set_controls(controls);
    }

    /// # Safety
    /// Connected ports must be valid: audio ports for `count` samples, control ports for one value.
    unsafe fn run(&mut self, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.apply_controls() };
        if std::mem::take(&mut self.fresh) {
            // Reset after the controls are set, so that they need no transition.
            self.plugin.reset();
        }
        let latency = self.ports[2 * WIDTH + 4];
        if !latency.is_null() {
            // SAFETY: it is not null, so it was connected; the caller promises that it is valid.
            unsafe { *latency = self.plugin.latency() as f32 };
        }
        let (audio, _) = self.ports.split_at(2 * WIDTH);
        if audio.iter().any(|port| port.is_null()) {
            return;
        }
        let (inputs, outputs) = audio.split_at(WIDTH);
        self.plugin.run(0..count, &mut Ports { inputs, outputs, count });
    }
}

/// Audio ports, each valid for `count` samples.
struct Ports<'a> {
    inputs: &'a [*mut f32],
    outputs: &'a [*mut f32],
    count: usize,
}

impl Ports<'_> {
    /// Whether a range lies within the ports and has `length` samples.
    fn have(&self, range: &Range<usize>, length: usize) -> bool {
        range.start <= range.end && range.end <= self.count && range.len() == length
    }
}

impl Buffers for Ports<'_> {
    fn read(&self, channel: usize, range: Range<usize>, samples: &mut [f32]) {
        if !self.have(&range, samples.len()) {
            return samples.fill(0.0);
        }
        let port = self.inputs[channel];
        // SAFETY: the port is valid for the range, which is as long as `samples`, and those are not the host's memory.
        unsafe { ptr::copy_nonoverlapping(port.add(range.start), samples.as_mut_ptr(), samples.len()) };
    }

    fn write(&mut self, channel: usize, range: Range<usize>, samples: &[f32]) {
        if !self.have(&range, samples.len()) {
            return;
        }
        let port = self.outputs[channel];
        // SAFETY: as in `take`.
        unsafe { ptr::copy_nonoverlapping(samples.as_ptr(), port.add(range.start), samples.len()) };
    }
}

unsafe extern "C" fn instantiate<const WIDTH: usize, const PORTS: usize>(
    _: *const Descriptor,
    sample_rate: c_ulong,
) -> Handle {
    let instance = Instance::<WIDTH, PORTS>::new(sample_rate);
    instance.map_or(ptr::null_mut(), |instance| Box::into_raw(Box::new(instance)).cast())
}

unsafe extern "C" fn connect_port<const WIDTH: usize, const PORTS: usize>(
    handle: Handle,
    port: c_ulong,
    data: *mut f32,
) {
    // SAFETY: the host passes what `instantiate` returned, and uses it from one thread at a time.
    let instance = unsafe { &mut *handle.cast::<Instance<WIDTH, PORTS>>() };
    if let Some(own) = instance.ports.get_mut(port as usize) {
        *own = data;
    }
}

unsafe extern "C" fn activate<const WIDTH: usize, const PORTS: usize>(handle: Handle) {
    // A host may connect ports after this, so none is read.
    // SAFETY: as in `connect_port`.
    unsafe { (*handle.cast::<Instance<WIDTH, PORTS>>()).fresh = true };
}

unsafe extern "C" fn run<const WIDTH: usize, const PORTS: usize>(handle: Handle, count: c_ulong) {
    // SAFETY: as in `connect_port`; the host has connected every port to memory that is valid for the run.
    unsafe { (*handle.cast::<Instance<WIDTH, PORTS>>()).run(count as usize) };
}

unsafe extern "C" fn cleanup<const WIDTH: usize, const PORTS: usize>(handle: Handle) {
    // ffmpeg also cleans up instances that could not be created.
    if !handle.is_null() {
        // SAFETY: `instantiate` made the box, and the host no longer uses it.
        drop(unsafe { Box::from_raw(handle.cast::<Instance<WIDTH, PORTS>>()) });
    }
}

/// Text for the host.
#[repr(transparent)]
struct Text(*const c_char);
// SAFETY: it points to a constant.
unsafe impl Sync for Text {}

const fn text(text: &'static CStr) -> Text {
    Text(text.as_ptr())
}

const SIGNAL: PortRangeHint = PortRangeHint { hints: 0, lower: 0.0, upper: 0.0 };

const fn range(hints: c_int, lower: f32, upper: f32) -> PortRangeHint {
    PortRangeHint { hints, lower, upper }
}

const fn knob(knob: Knob, default: c_int) -> PortRangeHint {
    range(BOUNDED | default, knob.min, knob.max)
}

const GAIN_EXPONENT_RANGE: PortRangeHint = knob(GAIN_EXPONENT, DEFAULT_MIDDLE);
const FLOOR_RANGE: PortRangeHint = knob(FLOOR_DB, DEFAULT_LOW);
const MIX_RANGE: PortRangeHint = knob(MIX, DEFAULT_1);
const BYPASS: PortRangeHint = range(TOGGLED | DEFAULT_0, 0.0, 0.0);
const LATENCY: PortRangeHint = range(INTEGER, 0.0, 0.0);

const KNOB: c_int = CONTROL | INPUT;
const SHOWN: c_int = CONTROL | OUTPUT;

const MONO_PORTS: usize = 2 + CONTROLS;
static MONO_KINDS: [c_int; MONO_PORTS] = [AUDIO | INPUT, AUDIO | OUTPUT, KNOB, KNOB, KNOB, KNOB, SHOWN];
static MONO_NAMES: [Text; MONO_PORTS] = [
    text(c"Input"),
    text(c"Output"),
    text(c"Strength"),
    text(c"Floor (dB)"),
    text(c"Mix"),
    text(c"Bypass"),
    text(c"latency"),
];
static MONO_RANGES: [PortRangeHint; MONO_PORTS] =
    [SIGNAL, SIGNAL, GAIN_EXPONENT_RANGE, FLOOR_RANGE, MIX_RANGE, BYPASS, LATENCY];

const STEREO_PORTS: usize = 4 + CONTROLS;
static STEREO_KINDS: [c_int; STEREO_PORTS] =
    [AUDIO | INPUT, AUDIO | INPUT, AUDIO | OUTPUT, AUDIO | OUTPUT, KNOB, KNOB, KNOB, KNOB, SHOWN];
static STEREO_NAMES: [Text; STEREO_PORTS] = [
    text(c"Input (L)"),
    text(c"Input (R)"),
    text(c"Output (L)"),
    text(c"Output (R)"),
    text(c"Strength"),
    text(c"Floor (dB)"),
    text(c"Mix"),
    text(c"Bypass"),
    text(c"latency"),
];
static STEREO_RANGES: [PortRangeHint; STEREO_PORTS] =
    [SIGNAL, SIGNAL, SIGNAL, SIGNAL, GAIN_EXPONENT_RANGE, FLOOR_RANGE, MIX_RANGE, BYPASS, LATENCY];

const fn descriptor<const WIDTH: usize, const PORTS: usize>(
    unique_id: c_ulong,
    label: &'static CStr,
    name: &'static CStr,
    (kinds, names, ranges): (
        &'static [c_int; PORTS],
        &'static [Text; PORTS],
        &'static [PortRangeHint; PORTS],
    ),
) -> Descriptor {
    Descriptor {
        unique_id,
        label: label.as_ptr(),
        properties: HARD_RT_CAPABLE,
        name: name.as_ptr(),
        maker: c"The alphamf authors".as_ptr(),
        copyright: c"MIT OR Apache-2.0".as_ptr(),
        port_count: PORTS as c_ulong,
        port_descriptors: kinds.as_ptr(),
        port_names: names.as_ptr().cast(),
        port_range_hints: ranges.as_ptr(),
        implementation_data: ptr::null_mut(),
        instantiate: instantiate::<WIDTH, PORTS>,
        connect_port: connect_port::<WIDTH, PORTS>,
        activate: Some(activate::<WIDTH, PORTS>),
        run: run::<WIDTH, PORTS>,
        run_adding: None,
        set_run_adding_gain: None,
        deactivate: None,
        cleanup: cleanup::<WIDTH, PORTS>,
    }
}

static MONO: Descriptor = descriptor::<1, MONO_PORTS>(
    0x00a1_fa01,
    c"alphamf_mono",
    c"alphamf speech denoiser (mono)",
    (&MONO_KINDS, &MONO_NAMES, &MONO_RANGES),
);
static STEREO: Descriptor = descriptor::<2, STEREO_PORTS>(
    0x00a1_fa02,
    c"alphamf_stereo",
    c"alphamf speech denoiser (stereo)",
    (&STEREO_KINDS, &STEREO_NAMES, &STEREO_RANGES),
);

/// Descriptor of a plugin of this library: 0 is mono, 1 stereo.
#[unsafe(no_mangle)]
pub extern "C" fn ladspa_descriptor(index: c_ulong) -> *const Descriptor {
    match index {
        0 => &MONO,
        1 => &STEREO,
        _ => ptr::null(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alphamf::denoiser::LiveSettings;
    use alphamf::{Denoiser, Dictionary, Settings};

    /// Connects the control ports of a plugin of `width` channels.
    ///
    /// # Safety
    /// `handle` must be an instance of the descriptor.
    unsafe fn connect_controls(
        descriptor: &Descriptor,
        handle: Handle,
        width: usize,
        controls: [*mut f32; CONTROLS],
    ) {
        for (n, control) in controls.into_iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { (descriptor.connect_port)(handle, (2 * width + n) as c_ulong, control) };
        }
    }

    /// Runs a plugin in place, in blocks of `size` samples. Its controls are connected before and after its activation, to
    /// valid memory only after it.
    fn host(index: c_ulong, channels: &mut [Vec<f32>], size: usize, controls: [f32; 4]) -> f32 {
        // SAFETY: the descriptor is constant; the connected memory outlives the runs.
        unsafe {
            let descriptor = &*ladspa_descriptor(index);
            let handle = (descriptor.instantiate)(descriptor, 48_000);
            assert!(!handle.is_null());
            let width = channels.len();
            let (mut controls, mut latency) = (controls, 0.0);
            let [strength, floor, mix, bypass] = &mut controls;
            let nowhere = ptr::without_provenance_mut(align_of::<f32>());
            connect_controls(descriptor, handle, width, [nowhere; CONTROLS]);
            (descriptor.activate.unwrap())(handle);
            connect_controls(descriptor, handle, width, [strength, floor, mix, bypass, &mut latency]);
            let length = channels[0].len();
            for first in (0..length).step_by(size) {
                for (n, samples) in channels.iter_mut().enumerate() {
                    let data = samples[first..].as_mut_ptr();
                    (descriptor.connect_port)(handle, n as c_ulong, data);
                    (descriptor.connect_port)(handle, (width + n) as c_ulong, data);
                }
                (descriptor.run)(handle, size.min(length - first) as c_ulong);
            }
            (descriptor.cleanup)(handle);
            latency
        }
    }

    fn signal(seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut noise = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        (0..24_000).map(|n| 0.1 * noise() + 0.2 * (n as f32 * 0.03).sin()).collect()
    }

    #[test]
    fn output_equals_that_of_the_library_for_any_block_size() {
        let controls = [0.8, -20.0, 0.9, 0.0];
        let [left, right] = [signal(1), signal(2)];
        let settings = LiveSettings {
            controls: LiveControls {
                gain_exponent: 0.8,
                floor_db: -20.0,
                mix: 0.9,
                ..LiveControls::default()
            },
            ..LiveSettings::default()
        };
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::default()).unwrap();
        let mut live = denoiser.live(48_000, 2, settings).unwrap();
        let input: Vec<f32> = left.iter().zip(&right).flat_map(|(l, r)| [*l, *r]).collect();
        let mut output = vec![0.0; input.len()];
        live.process(&input, &mut output);
        assert!(output.iter().any(|x| *x != 0.0));
        for size in [64, 1_000] {
            let mut channels = [left.clone(), right.clone()];
            assert_eq!(host(1, &mut channels, size, controls), 768.0);
            let same = output.chunks_exact(2).zip(channels[0].iter().zip(&channels[1]));
            assert!(same.into_iter().all(|(frame, (l, r))| frame == [*l, *r]), "blocks of {size}");
        }
    }

    #[test]
    fn bypass_delays_the_input() {
        let mut channels = [signal(3)];
        assert_eq!(host(0, &mut channels, 512, [1.0, -45.0, 1.0, 1.0]), 768.0);
        assert!(channels[0][768..] == signal(3)[..24_000 - 768]);
    }

    #[test]
    fn samples_outside_of_the_run_or_of_another_length_are_not_copied() {
        let mut memory = [1.0_f32; 8];
        let port = [memory.as_mut_ptr()];
        let mut ports = Ports { inputs: &port, outputs: &port, count: 4 };
        let mut samples = [2.0_f32; 8];
        ports.read(0, 0..4, &mut samples[..2]);
        assert_eq!(samples[..4], [0.0, 0.0, 2.0, 2.0]);
        ports.read(0, 2..6, &mut samples[4..]);
        assert_eq!(samples[4..], [0.0; 4]);
        ports.write(0, 2..6, &samples[..4]);
        ports.write(0, 0..4, &samples[..2]);
        ports.write(0, 1..3, &samples[2..4]);
        assert_eq!(memory, [1.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn there_are_two_plugins_and_invalid_sample_rates_are_refused() {
        assert!(!ladspa_descriptor(1).is_null() && ladspa_descriptor(2).is_null());
        // SAFETY: the descriptor is constant.
        let handle = unsafe { (MONO.instantiate)(&MONO, 4_000) };
        assert!(handle.is_null());
    }
}
