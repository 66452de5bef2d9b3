#![doc = include_str!("../README.md")]
#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod noise;
mod parameters;

use alphamf_plugin::{Buffers, Plugin as Running};
use clack_extensions::audio_ports::{
    AudioPortFlags, AudioPortInfo, AudioPortInfoWriter, AudioPortType, PluginAudioPorts, PluginAudioPortsImpl,
};
use clack_extensions::latency::{HostLatency, PluginLatency, PluginLatencyImpl};
use clack_extensions::params::{
    HostParams, ParamDisplayWriter, ParamInfoWriter, ParamRescanFlags, PluginAudioProcessorParams,
    PluginMainThreadParams, PluginParams,
};
use clack_extensions::state::{PluginState, PluginStateImpl};
use clack_extensions::tail::{PluginTail, PluginTailImpl, TailLength};
use clack_plugin::entry::prelude::*;
use clack_plugin::plugin::features::{AUDIO_EFFECT, MONO, RESTORATION, STEREO};
use clack_plugin::prelude::*;
use clack_plugin::process::ConstantMask;
use clack_plugin::stream::{InputStream, OutputStream};
use noise::{Noise, Saved};
use parameters::{ForeignState, Parameters};
use std::ffi::CStr;
use std::fmt;
use std::io::{Read, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum length of a saved state, bytes.
const MAX_STATE_BYTES: u64 = 1 << 20;
/// First line of a saved state.
const STATE: &str = "alphamf 1";

/// Plugin of `WIDTH` channels.
struct Denoise<const WIDTH: usize>;

impl<const WIDTH: usize> Plugin for Denoise<WIDTH> {
    type AudioProcessor<'a> = Processor<'a, WIDTH>;
    type Shared<'a> = Shared;
    type MainThread<'a> = MainThread<'a>;

    fn declare_extensions(builder: &mut PluginExtensions<Self>, _: Option<&Shared>) {
        builder
            .register::<PluginAudioPorts>()
            .register::<PluginLatency>()
            .register::<PluginParams>()
            .register::<PluginState>()
            .register::<PluginTail>();
    }
}

/// State shared by all threads of a plugin.
struct Shared {
    parameters: Parameters,
    noise: Noise,
    /// Delay in samples; 0 before the first activation.
    latency: AtomicU32,
}

impl PluginShared<'_> for Shared {}

/// Part of a plugin that runs on the main thread.
struct MainThread<'a> {
    host: HostMainThreadHandle<'a>,
    shared: &'a Shared,
    /// Number of channels.
    width: u32,
}

impl<'a> PluginMainThread<'a, Shared> for MainThread<'a> {}

impl PluginAudioPortsImpl for MainThread<'_> {
    fn count(&self, _is_input: bool) -> u32 {
        1
    }

    fn get(&self, index: u32, is_input: bool, writer: &mut AudioPortInfoWriter) {
        if index == 0 {
            writer.set(&AudioPortInfo {
                id: ClapId::new(0),
                name: if is_input { b"Input" } else { b"Output" },
                channel_count: self.width,
                flags: AudioPortFlags::IS_MAIN,
                port_type: Some(if self.width == 1 { AudioPortType::MONO } else { AudioPortType::STEREO }),
                in_place_pair: Some(ClapId::new(0)),
            });
        }
    }
}

impl PluginLatencyImpl for MainThread<'_> {
    fn get(&self) -> u32 {
        self.shared.latency.load(Ordering::Relaxed)
    }
}

impl PluginMainThreadParams for MainThread<'_> {
    fn count(&self) -> u32 {
        parameters::ALL.len() as u32
    }

    fn get_info(&self, index: u32, writer: &mut ParamInfoWriter) {
        if let Some(info) = parameters::info(index) {
            writer.set(&info);
        }
    }

    fn get_value(&self, id: ClapId) -> Option<f64> {
        self.shared.parameters.get(id.get())
    }

    fn value_to_text(&self, id: ClapId, value: f64, writer: &mut ParamDisplayWriter) -> fmt::Result {
        parameters::ALL.get(id.get() as usize).ok_or(fmt::Error)?.show(value, writer)
    }

    fn text_to_value(&self, id: ClapId, text: &CStr) -> Option<f64> {
        parameters::ALL.get(id.get() as usize)?.read(text.to_str().ok()?)
    }

    fn flush(&self, input: &InputEvents, _: &mut OutputEvents) {
        input.iter().for_each(|event| self.shared.parameters.apply(event));
    }
}

impl PluginStateImpl for MainThread<'_> {
    fn save(&self, output: &mut OutputStream) -> Result<(), PluginError> {
        let Shared { parameters, noise, .. } = self.shared;
        Ok(write!(output, "{STATE}\n{}{}", parameters.state(), noise.state())?)
    }

    fn load(&self, input: &mut InputStream) -> Result<(), PluginError> {
        let mut state = String::new();
        input.take(MAX_STATE_BYTES).read_to_string(&mut state)?;
        let mut lines = state.lines();
        let first = lines.next().unwrap_or_default();
        if first != STATE {
            return Err(ForeignState::of(first).into());
        }
        let noise = Saved::read(lines.clone())?;
        self.shared.parameters.set_state(lines)?;
        self.shared.noise.restore(noise);
        if let Some(parameters) = self.host.get_extension::<HostParams>() {
            parameters.rescan(&self.host, ParamRescanFlags::VALUES);
        }
        Ok(())
    }
}

/// Part of a plugin that runs on the audio thread.
struct Processor<'a, const WIDTH: usize> {
    shared: &'a Shared,
    running: Running<WIDTH>,
    /// Whether learned noise is not shared yet.
    unshared: bool,
}

impl<const WIDTH: usize> Processor<'_, WIDTH> {
    fn apply_parameters(&mut self) {
        let learning = self.shared.parameters.learning();
        self.running.set_controls(self.shared.parameters.controls());
        self.running.learn(learning);
        self.unshared |= learning;
    }

    /// Applies noise that was loaded with a project.
    fn take_noise(&mut self) {
        let (rate, running) = (self.running.sample_rate(), &mut self.running);
        if self.shared.noise.take_if_loaded(rate, |power| running.set_learned_noise(power)) {
            self.unshared = false;
        }
    }

    /// Shares learned noise for saving, unless other noise was loaded meanwhile.
    fn share_noise(&mut self) {
        self.take_noise();
        if self.unshared && !self.shared.parameters.learning() {
            let (rate, noise) = (self.running.sample_rate(), self.running.learned_noise());
            self.unshared = !self.shared.noise.try_store(rate, noise);
        }
    }
}

impl<'a, const WIDTH: usize> PluginAudioProcessor<'a, Shared, MainThread<'a>> for Processor<'a, WIDTH> {
    fn activate(
        _: HostAudioProcessorHandle<'a>,
        main_thread: &MainThread<'a>,
        shared: &'a Shared,
        configuration: PluginAudioConfiguration,
    ) -> Result<Self, PluginError> {
        let sample_rate = configuration.sample_rate.round() as u32;
        let mut running = Running::new(sample_rate)?;
        shared.noise.read_for(sample_rate, |power| running.set_learned_noise(power));
        let latency = running.latency() as u32;
        if shared.latency.swap(latency, Ordering::Relaxed) != latency
            && let Some(extension) = main_thread.host.get_extension::<HostLatency>()
        {
            extension.changed(&main_thread.host);
        }
        let mut processor = Self { shared, running, unshared: false };
        // Controls that are set before the start need no transition.
        processor.reset();
        Ok(processor)
    }

    fn deactivate(mut self, _: &MainThread<'a>) {
        self.take_noise();
        if self.unshared {
            self.shared.noise.store(self.running.sample_rate(), self.running.learned_noise());
        }
    }

    fn process(
        &mut self,
        _: Process,
        mut audio: Audio,
        events: Events,
    ) -> Result<ProcessStatus, PluginError> {
        let count = audio.frames_count() as usize;
        let mut buffers = HostBuffers(&mut audio);
        let mut done = 0;
        self.take_noise();
        for batch in events.input.batch() {
            batch.events().for_each(|event| self.shared.parameters.apply(event));
            self.apply_parameters();
            let end = batch.next_batch_first_sample().unwrap_or(count).clamp(done, count);
            self.running.run(done..end, &mut buffers);
            done = end;
        }
        self.share_noise();
        if let Some(mut port) = audio.output_port(0) {
            port.set_constant_mask(ConstantMask::FULLY_DYNAMIC);
        }
        Ok(ProcessStatus::Tail)
    }

    fn reset(&mut self) {
        self.take_noise();
        self.running.set_controls(self.shared.parameters.controls());
        self.running.reset();
    }
}

impl<const WIDTH: usize> PluginAudioProcessorParams for Processor<'_, WIDTH> {
    fn flush(&mut self, input: &InputEvents, _: &mut OutputEvents) {
        input.iter().for_each(|event| self.shared.parameters.apply(event));
        self.share_noise();
    }
}

impl<const WIDTH: usize> PluginTailImpl for Processor<'_, WIDTH> {
    fn get(&self) -> TailLength {
        TailLength::Finite(self.running.latency() as u32)
    }
}

/// Buffers of the first port in each direction. Channels that the host does not provide are silent.
struct HostBuffers<'a, 'b>(&'a mut Audio<'b>);

impl Buffers for HostBuffers<'_, '_> {
    fn read(&self, channel: usize, range: Range<usize>, samples: &mut [f32]) {
        let port = self.0.input_port(0);
        let channels = port.and_then(|port| port.channels().ok()?.into_f32());
        match channels.and_then(|channels| channels.channel(channel as u32)?.get(range)) {
            Some(input) => samples.copy_from_slice(input),
            None => samples.fill(0.0),
        }
    }

    fn write(&mut self, channel: usize, range: Range<usize>, samples: &[f32]) {
        if let Some(mut port) = self.0.output_port(0)
            && let Some(mut channels) = port.channels().ok().and_then(|channels| channels.into_f32())
            && let Some(place) = channels.channel_mut(channel as u32).and_then(|place| place.get_mut(range))
        {
            place.copy_from_slice(samples);
        }
    }
}

/// Entry point of the library: `clap_entry`.
pub struct DenoiserEntry {
    factory: PluginFactoryWrapper<Factory>,
}

impl Entry for DenoiserEntry {
    fn new(_: Option<&CStr>) -> Result<Self, EntryLoadError> {
        let descriptor = |id, name, feature| {
            PluginDescriptor::new(id, name)
                .with_vendor("The alphamf authors")
                .with_version(env!("CARGO_PKG_VERSION"))
                .with_description("Removes background noise from speech")
                .with_features([AUDIO_EFFECT, RESTORATION, feature])
        };
        let mono = descriptor("alphamf.speech-denoiser.mono", "alphamf speech denoiser (mono)", MONO);
        let stereo = descriptor("alphamf.speech-denoiser.stereo", "alphamf speech denoiser", STEREO);
        // Stereo first, as most tracks are.
        Ok(Self { factory: PluginFactoryWrapper::new(Factory { stereo, mono }) })
    }

    fn declare_factories<'a>(&'a self, builder: &mut EntryFactories<'a>) {
        builder.register_factory(&self.factory);
    }
}

struct Factory {
    stereo: PluginDescriptor,
    mono: PluginDescriptor,
}

impl PluginFactoryImpl for Factory {
    fn plugin_count(&self) -> u32 {
        2
    }

    fn plugin_descriptor(&self, index: u32) -> Option<&PluginDescriptor> {
        [&self.stereo, &self.mono].get(index as usize).copied()
    }

    fn create_plugin<'a>(&'a self, host: HostInfo<'a>, id: &CStr) -> Option<PluginInstance<'a>> {
        if self.stereo.id() == Some(id) {
            Some(instance::<2>(host, &self.stereo))
        } else if self.mono.id() == Some(id) {
            Some(instance::<1>(host, &self.mono))
        } else {
            None
        }
    }
}

fn instance<'a, const WIDTH: usize>(
    host: HostInfo<'a>,
    descriptor: &'a PluginDescriptor,
) -> PluginInstance<'a> {
    PluginInstance::new::<Denoise<WIDTH>>(
        host,
        descriptor,
        |_| {
            Ok(Shared {
                parameters: Parameters::default(),
                noise: Noise::default(),
                latency: AtomicU32::new(0),
            })
        },
        |host, shared| Ok(MainThread { host, shared, width: WIDTH as u32 }),
    )
}

clack_export_entry!(DenoiserEntry);
