//! Denoisers, sessions and real-time denoisers.

use super::shared::Shared;
use super::work::run;
use super::{denoise_exception, value_error};
use alphamf::denoiser::{
    LiveControls, LiveSettings, SessionOutput, SessionSettings, SpeechLevels, SpeechTrack, VoiceEvents,
};
use alphamf::transform::FrameGrid;
use alphamf::{DenoiseError, Dictionary, Options, ProgressCallback};
use alphamf_files::{Container, Dither, Metadata, OutputSpec, Writer};
use alphamf_signal::SampleFormat;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number and spacing of bins, and spacing of frames.
fn grid(denoiser: &alphamf::Denoiser, sample_rate: u32) -> PyResult<FrameGrid> {
    denoiser.grid(sample_rate).map_err(value_error)
}

#[pyclass(frozen, module = "alphamf._native")]
pub struct Denoiser {
    denoiser: alphamf::Denoiser,
    session: SessionSettings,
    threads: Option<usize>,
    /// Options as JSON and bytes of the dictionary: the arguments from which pickling creates a copy.
    given: (String, Option<Py<PyBytes>>),
}

/// Arguments of [`Denoiser::new`].
type Arguments<'py> = (&'py str, Option<Bound<'py, PyBytes>>, Option<usize>);

#[pymethods]
impl Denoiser {
    #[new]
    fn new(
        py: Python<'_>,
        options: &str,
        model: Option<Bound<'_, PyBytes>>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let given = (options.to_owned(), model.clone().map(Bound::unbind));
        let options = Options::from_json(options).map_err(value_error)?;
        let settings = options.settings().map_err(value_error)?;
        let dictionary =
            model.map_or_else(Dictionary::built_in, |model| Dictionary::from_bytes(model.as_bytes()));
        let dictionary = dictionary.map_err(value_error)?;
        // Fills tables, on the threads.
        let denoiser = run(py, threads, None, |_| alphamf::Denoiser::new(dictionary, settings));
        Ok(Self {
            denoiser: denoiser?.map_err(denoise_exception)?,
            session: options.session(),
            threads,
            given,
        })
    }

    fn __reduce__<'py>(this: &'py Bound<'py, Self>) -> (Bound<'py, PyType>, Arguments<'py>) {
        let Self { given: (options, model), threads, .. } = this.get();
        let model = model.as_ref().map(|model| model.bind(this.py()).clone());
        (this.get_type(), (options, model, *threads))
    }

    /// All settings, as JSON.
    fn settings(&self) -> PyResult<String> {
        serde_json::to_string(self.denoiser.settings()).map_err(value_error)
    }

    fn dictionary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.denoiser.dictionary().to_bytes().map_err(value_error)?))
    }

    #[allow(clippy::too_many_arguments, reason = "Python passes one flag for each result")]
    fn session(
        &self,
        sample_rate: u32,
        channels: usize,
        is_integer: bool,
        residual: bool,
        gain_std: bool,
        levels: bool,
        speech_track: bool,
    ) -> PyResult<Session> {
        let settings = SessionSettings { residual, gain_std, levels, speech_track, ..self.session.clone() };
        let session = self.denoiser.session(sample_rate, channels, settings).map_err(denoise_exception)?;
        let layout = OutputSpec {
            sample_rate,
            channels,
            format: SampleFormat::Int16,
            container: Container::Raw,
            length: None,
            channel_mask: None,
            dither: session.dither(SampleFormat::Int16, SampleFormat::Int16).map(Dither::new),
        };
        let integers = |layout| is_integer.then(|| Integers::new(layout)).transpose();
        let mut codes = vec![integers(layout)?];
        if residual {
            // Opposite dither, so that speech and residual add up to the recording.
            codes.push(integers(OutputSpec { dither: layout.dither.map(Dither::negated), ..layout })?);
        }
        let grid = grid(&self.denoiser, sample_rate)?;
        let state = State { session, codes, grid, clipped: 0, interrupted: false };
        Ok(Session { state: Shared::new(state), threads: self.threads })
    }

    /// A real-time denoiser with a latency in ms; `controls` is JSON of those that replace the denoiser's own.
    fn live(
        &self,
        py: Python<'_>,
        sample_rate: u32,
        channels: usize,
        latency: f64,
        controls: &str,
    ) -> PyResult<Live> {
        let controls = self.denoiser.live_controls(self.session.mix).with_json(controls);
        let settings = controls.and_then(|controls| LiveSettings::with_latency_ms(latency, controls));
        let settings = settings.map_err(value_error)?;
        let live = run(py, self.threads, None, |_| self.denoiser.live(sample_rate, channels, settings));
        let live = live?.map_err(denoise_exception)?;
        Ok(Live { state: Shared::new(LiveState { live, events: VoiceEvents::default() }) })
    }

    fn noise_profile(
        &self,
        py: Python<'_>,
        samples: PyReadonlyArray2<'_, f32>,
        sample_rate: u32,
    ) -> PyResult<NoiseProfile> {
        let channels = rows(&samples);
        let mut profile =
            self.denoiser.noise_profile(sample_rate, channels.len()).map_err(denoise_exception)?;
        let pushed = run(py, self.threads, None, |_| {
            let channels: Vec<&[f32]> = channels.iter().map(Vec::as_slice).collect();
            profile.push(&channels)
        });
        pushed?.map_err(denoise_exception)?;
        Ok(NoiseProfile { profile, grid: grid(&self.denoiser, sample_rate)?, threads: self.threads })
    }
}

impl Denoiser {
    /// Denoiser of the library.
    pub fn inner(&self) -> &alphamf::Denoiser {
        &self.denoiser
    }
}

#[pyclass(frozen)]
pub struct Live {
    state: Shared<LiveState>,
}

struct LiveState {
    live: alphamf::LiveDenoiser,
    /// Starts and ends of speech that have not been retrieved yet.
    events: VoiceEvents,
}

#[pymethods]
impl Live {
    /// Denoises a block of samples x channels.
    fn process<'py>(
        &self,
        py: Python<'py>,
        samples: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (input, shape) = (samples.as_slice()?, samples.as_array().raw_dim());
        let state = &mut *self.state.lock(py)?;
        py.detach(|| state.process(input)).into_pyarray(py).reshape(shape)
    }

    /// Like `process`, for 16-bit samples: rounded to the nearest, without dither.
    fn process_int16<'py>(
        &self,
        py: Python<'py>,
        samples: PyReadonlyArray2<'_, i16>,
    ) -> PyResult<Bound<'py, PyArray2<i16>>> {
        let (input, shape) = (samples.as_slice()?, samples.as_array().raw_dim());
        let state = &mut *self.state.lock(py)?;
        let output = py.detach(|| {
            let input: Vec<f32> = input.iter().map(|code| f32::from(*code) / 32768.0).collect();
            // A conversion from float to integer saturates.
            state
                .process(&input)
                .into_iter()
                .map(|x| (32768.0 * x).round_ties_even() as i16)
                .collect::<Vec<_>>()
        });
        output.into_pyarray(py).reshape(shape)
    }

    /// Sets the controls that are given as JSON; the others stay.
    fn set_controls(&self, py: Python<'_>, controls: &str) -> PyResult<()> {
        // Read and written under one lock: another thread may set another control.
        let live = &mut self.state.lock(py)?.live;
        live.set_controls(live.controls().with_json(controls).map_err(value_error)?);
        Ok(())
    }

    fn controls(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(&self.state.lock(py)?.live.controls()).map_err(value_error)
    }

    /// Noise and speech level, dBFS, gain, dB, and probability of speech.
    fn meters(&self, py: Python<'_>) -> PyResult<(f32, f32, f32, f32)> {
        let meters = self.state.lock(py)?.live.meters();
        Ok((meters.noise_dbfs, meters.speech_dbfs, meters.gain_db, meters.speech_probability))
    }

    fn speaking(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.state.lock(py)?.live.voice_activity().speaking)
    }

    /// Starts (true) and ends (false) of speech since the last call, with their positions in samples.
    fn take_events(&self, py: Python<'_>) -> PyResult<Vec<(bool, u64)>> {
        let mut state = self.state.lock(py)?;
        Ok(state.events.take().map(|event| (event.speaking, event.sample)).collect())
    }

    fn learn_noise(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        self.state.lock(py)?.live.learn_noise(seconds);
        Ok(())
    }

    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock(py)?;
        state.live.reset();
        state.events.clear();
        Ok(())
    }

    fn latency(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.state.lock(py)?.live.latency())
    }
}

/// Lowest and highest controls, as JSON.
#[pyfunction]
pub fn control_ranges() -> PyResult<String> {
    serde_json::to_string(&[LiveControls::LOWEST, LiveControls::HIGHEST]).map_err(value_error)
}

impl LiveState {
    /// Denoises interleaved samples and keeps the events.
    fn process(&mut self, input: &[f32]) -> Vec<f32> {
        let mut output = vec![0.0; input.len()];
        self.live.process_with_events(input, &mut output, |event| self.events.push(event));
        output
    }
}

#[pyclass(frozen)]
pub struct NoiseProfile {
    profile: alphamf::denoiser::NoiseProfile,
    grid: FrameGrid,
    threads: Option<usize>,
}

#[pymethods]
impl NoiseProfile {
    /// Channels x bins, and the spacing of bins in hertz; `None` if the section is shorter than a window.
    fn spectra<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyArray2<f64>>, f64)>> {
        // Analyses the buffered samples, on the threads.
        let Some(spectra) = run(py, self.threads, None, |_| self.profile.spectra())? else { return Ok(None) };
        Ok(Some((PyArray2::from_vec2(py, &spectra)?, self.grid.bin_hertz)))
    }
}

#[pyclass(frozen)]
pub struct Session {
    state: Shared<State>,
    threads: Option<usize>,
}

struct State {
    session: alphamf::Session,
    /// Encoders of the result and, if requested, of the residual; `None` for floating-point samples.
    codes: Vec<Option<Integers>>,
    grid: FrameGrid,
    clipped: u64,
    /// Whether an exception discarded samples. A callback may raise it after the last report, too late to cancel the
    /// work.
    interrupted: bool,
}

/// Encodes samples with 16 bits, as the program does.
struct Integers {
    writer: Option<Writer>,
    bytes: Sink,
}

/// Collects written bytes.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Integers {
    fn new(layout: OutputSpec) -> PyResult<Self> {
        let bytes = Sink::default();
        let writer =
            Writer::to_stream("samples", layout, &Metadata::default(), bytes.clone()).map_err(value_error)?;
        Ok(Self { writer: Some(writer), bytes })
    }

    /// Interleaved codes of samples.
    fn encode(&mut self, samples: &[Vec<f32>]) -> PyResult<Vec<i16>> {
        if let Some(writer) = &mut self.writer {
            writer.write_block(samples).map_err(value_error)?;
        }
        let bytes = std::mem::take(&mut *self.bytes.bytes());
        Ok(bytes.chunks_exact(2).map(|code| i16::from_le_bytes([code[0], code[1]])).collect())
    }

    /// Ends the encoding and returns the number of clipped samples.
    fn finish(&mut self) -> PyResult<u64> {
        self.writer.take().map_or(Ok(0), |writer| writer.finish().map_err(value_error))
    }
}

/// Rows of an array, one per channel.
fn rows(samples: &PyReadonlyArray2<'_, f32>) -> Vec<Vec<f32>> {
    samples.as_array().rows().into_iter().map(|row| row.to_vec()).collect()
}

/// Standard deviations of the gain, frames x bins, one array or one per separate channel; spacing of bins (Hz) and of
/// frames (s).
type Deviations<'py> = (Vec<Bound<'py, PyArray2<f32>>>, f64, f64);

/// Speech levels, edges of their bands (Hz), duration of a slot (s) and number of the first slot.
type Levels<'py> = (Vec<Bound<'py, PyArray3<f64>>>, Vec<f64>, f64, u64);

/// Probability of speech per slot, and sections: start and end (s), level (dBFS) and SNR (dB).
type Track<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray2<f64>>);

/// Tracks, one or one per separate channel, duration of a slot (s) and number of the first slot.
type Tracks<'py> = (Vec<Track<'py>>, f64, u64);

/// Completed samples: result and, if requested, residual, channels x samples.
type Blocks<'py> = Vec<Bound<'py, PyAny>>;

#[pymethods]
impl Session {
    /// Takes channels x samples; `progress` receives the completed seconds.
    #[pyo3(signature = (samples, progress=None))]
    fn push<'py>(
        &self,
        py: Python<'py>,
        samples: PyReadonlyArray2<'_, f32>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Blocks<'py>> {
        let channels = rows(&samples);
        self.state.lock(py)?.advance(py, self.threads, progress, |session, progress| {
            let channels: Vec<&[f32]> = channels.iter().map(Vec::as_slice).collect();
            session.push_with_progress(&channels, progress)
        })
    }

    #[pyo3(signature = (progress=None))]
    fn finish<'py>(&self, py: Python<'py>, progress: Option<&Bound<'py, PyAny>>) -> PyResult<Blocks<'py>> {
        let mut state = self.state.lock(py)?;
        let blocks = state.advance(py, self.threads, progress, alphamf::Session::finish_with_progress)?;
        if let Some(Some(speech)) = state.codes.first_mut() {
            state.clipped = speech.finish()?;
        }
        Ok(blocks)
    }

    fn set_noise_profile(&self, py: Python<'_>, noise: &NoiseProfile) -> PyResult<()> {
        let mut state = self.state.lock(py)?;
        let session = &mut state.session;
        let set = run(py, self.threads, None, |_| session.set_noise_profile(&noise.profile));
        set?.map_err(denoise_exception)
    }

    /// Maximum number of samples per channel held back after a push.
    fn latency(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.state.lock(py)?.session.latency())
    }

    /// Statistics as JSON, and the number of clipped samples.
    fn statistics(&self, py: Python<'_>) -> PyResult<(String, u64)> {
        let state = self.state.lock(py)?;
        Ok((serde_json::to_string(&state.session.statistics()).map_err(value_error)?, state.clipped))
    }

    fn take_gain_std<'py>(&self, py: Python<'py>) -> PyResult<Deviations<'py>> {
        let mut state = self.state.lock(py)?;
        let grid = state.grid;
        let arrays = state.session.take_gain_std().into_iter().map(|values| {
            let frames = values.len() / grid.bins;
            PyArray1::from_vec(py, values).reshape([frames, grid.bins])
        });
        Ok((arrays.collect::<PyResult<_>>()?, grid.bin_hertz, grid.frame_seconds))
    }

    /// One array, or one per separate channel: slots x bands x (level, lower, upper).
    fn take_levels<'py>(&self, py: Python<'py>) -> PyResult<Levels<'py>> {
        let found = self.state.lock(py)?.session.take_levels();
        let Some(SpeechLevels { edges_hertz, slot_seconds, first_slot, .. }) = found.first().cloned() else {
            return Ok((Vec::new(), Vec::new(), 0.0, 0));
        };
        let bands = edges_hertz.len().saturating_sub(1).max(1);
        let arrays = found.into_iter().map(|SpeechLevels { cells, .. }| {
            let values = cells.iter().flat_map(|cell| {
                cell.map_or([f64::NAN; 3], |cell| [cell.level_dbfs, cell.lower_dbfs, cell.upper_dbfs])
            });
            PyArray1::from_vec(py, values.collect()).reshape([cells.len() / bands, bands, 3])
        });
        Ok((arrays.collect::<PyResult<_>>()?, edges_hertz, slot_seconds, first_slot))
    }

    /// One track, or one per separate channel.
    fn take_speech_track<'py>(&self, py: Python<'py>) -> PyResult<Tracks<'py>> {
        let found = self.state.lock(py)?.session.take_speech_track();
        let (slot_seconds, first_slot) =
            found.first().map_or((0.0, 0), |track| (track.slot_seconds, track.first_slot));
        let tracks = found.into_iter().map(|SpeechTrack { probability, segments, .. }| {
            let count = segments.len();
            let rows = segments.iter().flat_map(|segment| {
                [segment.start_seconds, segment.end_seconds, segment.level_dbfs, segment.snr_db]
            });
            let rows = PyArray1::from_vec(py, rows.collect()).reshape([count, 4])?;
            Ok((PyArray1::from_vec(py, probability), rows))
        });
        Ok((tracks.collect::<PyResult<_>>()?, slot_seconds, first_slot))
    }
}

impl State {
    /// Runs work of the session and returns the completed samples. Fails after an earlier exception.
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
        work: impl FnOnce(&mut alphamf::Session, &mut dyn ProgressCallback) -> Result<SessionOutput, DenoiseError>
        + Send,
    ) -> PyResult<Blocks<'py>> {
        if self.interrupted {
            return Err(value_error(
                "the stream has ended: an exception interrupted it, and samples are lost",
            ));
        }
        self.interrupted = true;
        let session = &mut self.session;
        let output = run(py, threads, progress, |progress| work(session, progress))?;
        self.interrupted = false;
        self.blocks(py, output.map_err(denoise_exception)?)
    }

    /// Result and residual as arrays.
    fn blocks<'py>(&mut self, py: Python<'py>, output: SessionOutput) -> PyResult<Blocks<'py>> {
        let parts = [output.speech, output.residual].into_iter().zip(&mut self.codes);
        let array = |(channels, codes): (Vec<Vec<f32>>, &mut Option<Integers>)| {
            let shape = [channels.len(), channels.first().map_or(0, Vec::len)];
            if let Some(codes) = codes {
                let codes = codes.encode(&channels)?.into_pyarray(py).reshape([shape[1], shape[0]])?;
                return Ok(codes.transpose()?.into_any());
            }
            Ok(channels.concat().to_pyarray(py).reshape(shape)?.into_any())
        };
        parts.map(array).collect()
    }
}
