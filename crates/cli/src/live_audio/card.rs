//! The two devices: names, capabilities and callbacks.

use super::Arguments;
use super::bridge::{Counters, Entrance, Exit, Frame, Offer, bridge, choose_rates, find};
use super::meters::Readings;
use crate::common::Common;
use crate::failure::Failure;
use crate::interrupts::interrupted;
use crate::live::settings;
use crate::model::Mode;
use crate::terminal::{columns, has_colours, is_interactive, print, printable, say, write_error};
use alphamf::LiveDenoiser;
use anyhow::Context;
use cpal::traits::{DeviceTrait, HostTrait, StreamTrait};
use cpal::{
    BufferSize, Device, FromSample, SampleFormat, SizedSample, Stream, StreamConfig, SupportedStreamConfig,
};
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Frames that are processed together.
const CHUNK: usize = 256;
/// Block length requested from a device, in seconds; devices may choose another.
const BLOCK_SECONDS: f64 = 0.01;
/// Errors kept for reporting: a lost device may raise them endlessly.
const ERRORS: usize = 16;
/// Time without audio after which a device counts as lost.
const PATIENCE: Duration = Duration::from_secs(5);
/// Like [`PATIENCE`], after an error that may be transient.
const PATIENCE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// Time that a device has to stop: a lost one may never do so.
const FAREWELL: Duration = Duration::from_secs(1);
/// Time between two states of the meters.
const REFRESH: Duration = Duration::from_millis(100);
/// Time between two lines of levels without a terminal.
const LOG: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Input,
    Output,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }

    /// The failure of a device.
    fn failure(self, device: &str) -> Failure {
        let device = format!("{} device {device}", self.name()).into();
        match self {
            Self::Input => Failure::Input(device),
            Self::Output => Failure::Output(device),
        }
    }

    fn default(self, host: &cpal::Host) -> Option<Device> {
        match self {
            Self::Input => host.default_input_device(),
            Self::Output => host.default_output_device(),
        }
    }

    /// All devices, with ID and name.
    fn devices(self, host: &cpal::Host) -> anyhow::Result<(Vec<Device>, Vec<Names>)> {
        let found: Vec<Device> = match self {
            Self::Input => host.input_devices().map(Iterator::collect),
            Self::Output => host.output_devices().map(Iterator::collect),
        }
        .with_context(|| format!("cannot list {} devices", self.name()))?;
        let names = found.iter().map(names).collect();
        Ok((found, names))
    }

    fn own_configuration(self, device: &Device) -> Result<SupportedStreamConfig, cpal::Error> {
        match self {
            Self::Input => device.default_input_config(),
            Self::Output => device.default_output_config(),
        }
    }

    /// Sample rates of a device with its own channels and format.
    fn offers(self, device: &Device, own: &SupportedStreamConfig) -> Vec<Offer> {
        let all: Result<Vec<_>, _> = match self {
            Self::Input => device.supported_input_configs().map(Iterator::collect),
            Self::Output => device.supported_output_configs().map(Iterator::collect),
        };
        let same = |offer: &cpal::SupportedStreamConfigRange| {
            offer.channels() == own.channels() && offer.sample_format() == own.sample_format()
        };
        let rates = |offer: cpal::SupportedStreamConfigRange| Offer {
            least_rate: offer.min_sample_rate(),
            most_rate: offer.max_sample_rate(),
        };
        all.unwrap_or_default().into_iter().filter(same).map(rates).collect()
    }
}

/// ID and name of a device.
type Names = (String, String);

fn names(device: &Device) -> Names {
    let id = device.id().map(|id| id.id().to_owned()).unwrap_or_default();
    let name = device.description().map(|description| description.name().to_owned()).unwrap_or_default();
    (id, name)
}

/// A device to use.
struct Chosen {
    direction: Direction,
    device: Device,
    name: String,
    own: SupportedStreamConfig,
}

impl Chosen {
    fn new(host: &cpal::Host, direction: Direction, wanted: Option<&str>) -> anyhow::Result<Self> {
        let device = match wanted {
            None => direction
                .default(host)
                .context("no such device: --list-devices lists them")
                .with_context(|| direction.failure("of the system"))?,
            Some(wanted) => {
                let (mut devices, names) = direction.devices(host)?;
                let place = find(&names, wanted)
                    .context("no device or several match: --list-devices lists them")
                    .with_context(|| direction.failure(&format!("{wanted:?}")))?;
                devices.swap_remove(place)
            }
        };
        let (id, name) = names(&device);
        let name = if name.is_empty() { id } else { name };
        let own = direction.own_configuration(&device).with_context(|| direction.failure(&name))?;
        Ok(Self { direction, device, name, own })
    }

    fn failure(&self) -> Failure {
        self.direction.failure(&self.name)
    }

    /// Channels of the device.
    fn channels(&self) -> usize {
        usize::from(self.own.channels()).max(1)
    }

    /// Requested configurations: short blocks first, then the default of the device.
    fn configurations(&self, sample_rate: u32) -> [StreamConfig; 2] {
        let own = StreamConfig { sample_rate, ..self.own.config() };
        let block = (BLOCK_SECONDS * f64::from(sample_rate)) as u32;
        [StreamConfig { buffer_size: BufferSize::Fixed(block), ..own }, own]
    }
}

/// An error of an audio thread.
struct DeviceError {
    direction: Direction,
    error: cpal::Error,
}

/// Meter values shared by threads.
#[derive(Default)]
struct Meters([AtomicU32; 4]);

impl Meters {
    fn set(&self, values: [f32; 4]) {
        let places = self.0.iter().zip(values);
        places.for_each(|(place, value)| place.store(value.to_bits(), Ordering::Relaxed));
    }

    fn get(&self) -> [f32; 4] {
        self.0.each_ref().map(|place| f32::from_bits(place.load(Ordering::Relaxed)))
    }
}

/// State of the input thread, which denoises.
struct Capture {
    live: LiveDenoiser,
    entrance: Entrance,
    meters: Arc<Meters>,
    /// Channels of the device; the first one or two are denoised.
    channels: usize,
}

impl Capture {
    fn process<T: SizedSample>(&mut self, data: &[T])
    where
        f32: FromSample<T>,
    {
        let width = self.live.channels();
        self.entrance.begin_block(data.len() / self.channels);
        let (mut input, mut output) = ([0.0_f32; 2 * CHUNK], [0.0_f32; 2 * CHUNK]);
        for block in data.chunks(CHUNK * self.channels) {
            let frames = block.chunks_exact(self.channels);
            let length = width * frames.len();
            for (place, frame) in input.chunks_exact_mut(width).zip(frames) {
                place.iter_mut().zip(frame).for_each(|(place, sample)| *place = sample.to_sample());
            }
            self.live.process(&input[..length], &mut output[..length]);
            let frames = output[..length].chunks_exact(width);
            self.entrance.push(frames.map(|frame| [frame[0], frame[width - 1]]));
        }
        let meters = self.live.meters();
        self.meters.set([meters.noise_dbfs, meters.speech_dbfs, meters.gain_db, meters.speech_probability]);
    }
}

/// State of the output thread, which plays.
struct Playback {
    exit: Exit,
    channels: usize,
}

impl Playback {
    fn process<T: SizedSample + FromSample<f32>>(&mut self, data: &mut [T]) {
        let write = |place: &mut [T], [left, right]: Frame| match place {
            [only] => *only = T::from_sample((0.5 * (left + right)).clamp(-1.0, 1.0)),
            [first, second, rest @ ..] => {
                *first = T::from_sample(left.clamp(-1.0, 1.0));
                *second = T::from_sample(right.clamp(-1.0, 1.0));
                rest.fill(T::EQUILIBRIUM);
            }
            [] => {}
        };
        let places = data.chunks_exact_mut(self.channels);
        self.exit.fill(places.map(|place| move |frame| write(place, frame)));
    }
}

/// Opens a stream in the format of the device.
macro_rules! with_format {
    ($format:expr, $open:ident, $($argument:expr),*) => {
        match $format {
            SampleFormat::I8 => $open::<i8>($($argument),*),
            SampleFormat::I16 => $open::<i16>($($argument),*),
            SampleFormat::I32 => $open::<i32>($($argument),*),
            SampleFormat::U8 => $open::<u8>($($argument),*),
            SampleFormat::U16 => $open::<u16>($($argument),*),
            SampleFormat::U32 => $open::<u32>($($argument),*),
            SampleFormat::F64 => $open::<f64>($($argument),*),
            // A device with none of these reports an error.
            _ => $open::<f32>($($argument),*),
        }
    };
}

/// State of an audio thread, shared until its stream is opened: a refused stream is requested again.
type Shared<T> = Arc<Mutex<T>>;

fn open_input<T: SizedSample>(
    chosen: &Chosen,
    configuration: StreamConfig,
    capture: &Shared<Capture>,
    errors: &SyncSender<DeviceError>,
) -> Result<Stream, cpal::Error>
where
    f32: FromSample<T>,
{
    let (capture, errors) = (Arc::clone(capture), errors.clone());
    chosen.device.build_input_stream(
        configuration,
        // Nothing else locks it while the stream runs, so it never waits.
        move |data: &[T], _: &cpal::InputCallbackInfo| {
            if let Ok(mut capture) = capture.try_lock() {
                capture.process(data);
            }
        },
        move |error| drop(errors.try_send(DeviceError { direction: Direction::Input, error })),
        None,
    )
}

fn open_output<T: SizedSample + FromSample<f32>>(
    chosen: &Chosen,
    configuration: StreamConfig,
    playback: &Shared<Playback>,
    errors: &SyncSender<DeviceError>,
) -> Result<Stream, cpal::Error> {
    let (playback, errors) = (Arc::clone(playback), errors.clone());
    chosen.device.build_output_stream(
        configuration,
        move |data: &mut [T], _: &cpal::OutputCallbackInfo| match playback.try_lock() {
            Ok(mut playback) => playback.process(data),
            Err(_) => data.fill(T::EQUILIBRIUM),
        },
        move |error| drop(errors.try_send(DeviceError { direction: Direction::Output, error })),
        None,
    )
}

/// Denoises until Ctrl-C, or until a device is lost.
pub fn run(arguments: &Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    // ALSA prints a line for each absent device of its configuration. cpal reports the errors of the devices in use.
    #[cfg(target_os = "linux")]
    let _unprinted = alsa::Output::local_error_handler();
    let host = cpal::default_host();
    if arguments.list_devices {
        return list(&host);
    }
    let input = Chosen::new(&host, Direction::Input, arguments.input.as_deref())?;
    let output = Chosen::new(&host, Direction::Output, arguments.output.as_deref())?;
    let own = (input.own.sample_rate(), output.own.sample_rate());
    let offers = [&input, &output].map(|chosen| chosen.direction.offers(&chosen.device, &chosen.own));
    let rates = choose_rates(&offers[0], &offers[1], own);
    let live = denoiser(arguments, &input, rates.0)?;
    let latency_seconds = live.latency() as f64 / f64::from(rates.0);

    let (entrance, exit, counters) = bridge(rates.0, rates.1);
    let meters = Arc::new(Meters::default());
    let (sender, errors) = mpsc::sync_channel(ERRORS);
    let capture = Capture { live, entrance, meters: Arc::clone(&meters), channels: input.channels() };
    let streams = Streams::start(
        [&input, &output],
        [rates.0, rates.1],
        capture,
        Playback { exit, channels: output.channels() },
        &sender,
    )?;
    if !common.quiet {
        say(&format!(
            "{} ({} Hz) -> {} ({} Hz): press Ctrl-C to stop",
            input.name, rates.0, output.name, rates.1
        ));
    }
    let shown = match (common.quiet, is_interactive()) {
        (true, _) => Shown::Nothing,
        (false, true) => Shown::Meters { colours: has_colours() },
        (false, false) => Shown::Lines,
    };
    let seconds = |frames: u64, rate: u32| frames as f64 / f64::from(rate);
    let readings = || {
        let [noise_dbfs, speech_dbfs, gain_db, speech_probability] = meters.get();
        Readings {
            noise_dbfs,
            speech_dbfs,
            gain_db,
            speech_probability,
            delay_seconds: latency_seconds + seconds(counters.waiting().into(), rates.0),
            dropped_seconds: seconds(counters.dropped(), rates.0),
            missing_seconds: seconds(counters.missing(), rates.1),
        }
    };
    let ended = wait(&errors, &counters, shown, &readings, [&input, &output]);
    streams.end();
    if matches!(shown, Shown::Meters { .. }) {
        write_error("\n");
    }
    if !common.quiet {
        say(&readings().words());
    }
    ended.map(|()| ExitCode::SUCCESS)
}

/// Creates the denoiser of the first one or two channels of an input.
fn denoiser(arguments: &Arguments, input: &Chosen, sample_rate: u32) -> anyhow::Result<LiveDenoiser> {
    let denoiser = arguments.model.denoiser(Mode::Live)?;
    let mix = arguments.model.options.session().mix;
    let settings = settings(&denoiser, arguments.latency / 1000.0, mix);
    denoiser.live(sample_rate, input.channels().min(2), settings).with_context(|| input.failure())
}

/// The running streams of both devices.
struct Streams {
    capture: Stream,
    playback: Stream,
}

impl Streams {
    /// Opens input and output at their sample rates, and starts the output first.
    fn start(
        [input, output]: [&Chosen; 2],
        rates: [u32; 2],
        capture: Capture,
        playback: Playback,
        errors: &SyncSender<DeviceError>,
    ) -> anyhow::Result<Self> {
        let (capture, playback) = (Arc::new(Mutex::new(capture)), Arc::new(Mutex::new(playback)));
        let first = |configurations: [StreamConfig; 2],
                     open: &dyn Fn(StreamConfig) -> Result<Stream, cpal::Error>| {
            let [short, own] = configurations;
            open(short).or_else(|_| open(own))
        };
        let playback = first(output.configurations(rates[1]), &|configuration| {
            with_format!(output.own.sample_format(), open_output, output, configuration, &playback, errors)
        })
        .with_context(|| output.failure())?;
        let capture = first(input.configurations(rates[0]), &|configuration| {
            with_format!(input.own.sample_format(), open_input, input, configuration, &capture, errors)
        })
        .with_context(|| input.failure())?;
        playback.play().with_context(|| output.failure())?;
        capture.play().with_context(|| input.failure())?;
        Ok(Self { capture, playback })
    }

    /// Stops both streams before the final readings. The stream of a lost device may never stop.
    fn end(self) {
        let (done, ending) = mpsc::channel::<()>();
        let end = move || {
            drop((self.capture, self.playback));
            drop(done);
        };
        if std::thread::Builder::new().spawn(end).is_ok() {
            let _ended = ending.recv_timeout(FAREWELL);
        }
    }
}

/// How levels are shown.
#[derive(Clone, Copy)]
enum Shown {
    Nothing,
    Lines,
    Meters { colours: bool },
}

/// Monitor of whether a device still delivers or accepts audio.
struct Monitored<'a> {
    chosen: &'a Chosen,
    /// Frames delivered or accepted, and when the count last changed.
    frames: u64,
    changed: Instant,
    /// The last error since then.
    error: Option<cpal::Error>,
}

impl<'a> Monitored<'a> {
    fn new(chosen: &'a Chosen) -> Self {
        Self { chosen, frames: 0, changed: Instant::now(), error: None }
    }

    /// Fails if the count has not changed for too long.
    fn look(&mut self, frames: u64) -> anyhow::Result<()> {
        if self.frames != frames {
            (self.frames, self.changed) = (frames, Instant::now());
            if let Some(error) = self.error.take() {
                tracing::debug!("{}: {error}", self.chosen.direction.name());
            }
        }
        let patience = if self.error.is_some() { PATIENCE_AFTER_ERROR } else { PATIENCE };
        if self.changed.elapsed() <= patience {
            return Ok(());
        }
        let lost = || anyhow::anyhow!("device lost: no audio for {} s", patience.as_secs());
        Err(self.error.take().map_or_else(lost, anyhow::Error::new)).with_context(|| self.chosen.failure())
    }
}

/// Shows the levels until Ctrl-C; fails if a device does.
fn wait(
    errors: &mpsc::Receiver<DeviceError>,
    counters: &Counters,
    shown: Shown,
    readings: &dyn Fn() -> Readings,
    [input, output]: [&Chosen; 2],
) -> anyhow::Result<()> {
    use cpal::ErrorKind::{BackendError, DeviceChanged, RealtimeDenied, Xrun};
    let mut monitored = [input, output].map(Monitored::new);
    let mut logged = Instant::now();
    while interrupted().is_continue() {
        for (monitored, now) in monitored.iter_mut().zip([counters.came(), counters.went()]) {
            monitored.look(now)?;
        }
        match errors.recv_timeout(REFRESH) {
            Ok(DeviceError { direction, error }) => match error.kind() {
                // Lost samples are counted by the bridge.
                Xrun => tracing::debug!("{}: {error}", direction.name()),
                DeviceChanged | RealtimeDenied => tracing::warn!("{}: {error}", direction.name()),
                // It may be transient: ALSA's plugin for PulseAudio reports one before the server's time is available
                // (alsa-plugins, issue 65).
                BackendError => monitored[direction as usize].error = Some(error),
                _ => return Err(error).with_context(|| monitored[direction as usize].chosen.failure()),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("both devices stopped"),
        }
        match shown {
            Shown::Nothing => {}
            Shown::Lines if logged.elapsed() < LOG => {}
            Shown::Lines => {
                logged = Instant::now();
                say(&readings().words());
            }
            Shown::Meters { colours } => {
                let mut terminal = std::io::stderr();
                let line = readings().meters(columns(), colours);
                // A closed terminal does not stop the denoiser.
                let _written = write!(terminal, "\r{line}\x1b[K").and_then(|()| terminal.flush());
            }
        }
    }
    Ok(())
}

fn list(host: &cpal::Host) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for direction in [Direction::Input, Direction::Output] {
        let own = direction.default(host).map(|device| names(&device).0);
        for (id, name) in direction.devices(host)?.1 {
            let mark = if own.as_ref() == Some(&id) { "*" } else { " " };
            let line = format!("{mark} {:6}  {id}  {name}", direction.name());
            text.push_str(&printable(&line));
            text.push('\n');
        }
    }
    if text.is_empty() {
        say("no devices");
    }
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
