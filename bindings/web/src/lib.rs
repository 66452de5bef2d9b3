//! WebAssembly part of the npm package; `index.js` wraps it and `index.d.ts` documents it.
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

use alphamf::denoiser::{
    DEFAULT_LATENCY_MS, LiveControls, LiveSettings, SessionOutput, SessionSettings, VoiceEvent, VoiceEvents,
};
use alphamf::transform::FrameGrid;
use alphamf::{DenoiseError, Denoiser, Dictionary, ErrorKind, LiveDenoiser, Options, Session};
use js_sys::{Array, Float32Array, Float64Array, Function, Reflect};
use std::ops::ControlFlow;
use wasm_bindgen::prelude::*;

/// A JavaScript `Error` with a member `kind`.
fn failure(kind: &str, error: impl std::fmt::Display) -> JsValue {
    let failure = JsValue::from(js_sys::Error::new(&error.to_string()));
    // `Reflect::set` fails on frozen objects only.
    let _ = Reflect::set(&failure, &"kind".into(), &kind.into());
    failure
}

fn invalid_setting(error: impl std::fmt::Display) -> JsValue {
    failure("setting", error)
}

fn denoise_failure(error: DenoiseError) -> JsValue {
    let kind = match error.kind() {
        ErrorKind::Setting => "setting",
        ErrorKind::Input => "input",
        ErrorKind::Model => "model",
        ErrorKind::Cancelled => "cancelled",
        _ => "other",
    };
    failure(kind, error)
}

/// Calls a JavaScript function with the seconds completed; an exception cancels the work.
struct Progress<'a>(Option<&'a Function>);

impl Progress<'_> {
    fn report(&self, seconds: f64) -> ControlFlow<()> {
        match self.0.map(|function| function.call1(&JsValue::NULL, &JsValue::from_f64(seconds))) {
            Some(Err(_)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

// SAFETY: without the feature `atomics` there is one thread.
#[cfg(not(target_feature = "atomics"))]
unsafe impl Send for Progress<'_> {}

/// Parses options from JSON.
fn options_of(text: &str) -> Result<Options, JsValue> {
    Options::default().with_json_for_floats(text).map_err(invalid_setting)
}

/// All settings that options, as JSON, stand for, as JSON.
#[wasm_bindgen(js_name = settingsOf)]
pub fn settings_of(options: &str) -> Result<String, JsValue> {
    let settings = options_of(options)?.settings().map_err(invalid_setting)?;
    json(serde_json::to_string(&settings))
}

/// Denoiser with its precomputed tables.
#[wasm_bindgen(js_name = NativeDenoiser)]
pub struct WebDenoiser {
    denoiser: Denoiser,
    session: SessionSettings,
}

#[wasm_bindgen(js_class = NativeDenoiser)]
impl WebDenoiser {
    /// Creates a denoiser from options as JSON and, optionally, the bytes of a dictionary file.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str, model: Option<Vec<u8>>) -> Result<Self, JsValue> {
        let options = options_of(options)?;
        let dictionary = model.map_or_else(Dictionary::built_in, |bytes| Dictionary::from_bytes(&bytes));
        let dictionary = dictionary.map_err(|error| failure("model", error))?;
        let settings = options.settings().map_err(invalid_setting)?;
        let denoiser = Denoiser::new(dictionary, settings).map_err(denoise_failure)?;
        Ok(Self { denoiser, session: options.session() })
    }

    /// Starts a recording; `speech_track`: whether to record where there is speech.
    pub fn session(
        &self,
        sample_rate: u32,
        channels: usize,
        gain_std: bool,
        speech_track: bool,
    ) -> Result<WebSession, JsValue> {
        let settings = SessionSettings { residual: true, gain_std, speech_track, ..self.session.clone() };
        let session = self.denoiser.session(sample_rate, channels, settings).map_err(denoise_failure)?;
        let grid = self.denoiser.grid(sample_rate).map_err(denoise_failure)?;
        Ok(WebSession { session, grid })
    }

    /// Creates a causal denoiser with a latency in ms; `controls` is JSON of those that replace the denoiser's own.
    pub fn live(
        &self,
        sample_rate: u32,
        channels: usize,
        latency: Option<f64>,
        controls: &str,
    ) -> Result<WebLive, JsValue> {
        let latency = latency.unwrap_or(DEFAULT_LATENCY_MS);
        let controls = self.denoiser.live_controls(self.session.mix).with_json(controls);
        let settings = controls.and_then(|controls| LiveSettings::with_latency_ms(latency, controls));
        let settings = settings.map_err(invalid_setting)?;
        let live = self.denoiser.live(sample_rate, channels, settings).map_err(denoise_failure)?;
        let buffer = vec![0.0; channels * LIVE_BLOCK];
        Ok(WebLive { live, input: buffer.clone(), output: buffer, events: VoiceEvents::default() })
    }
}

/// Block-by-block denoising of one recording.
#[wasm_bindgen(js_name = NativeSession)]
pub struct WebSession {
    session: Session,
    grid: FrameGrid,
}

#[wasm_bindgen(js_class = NativeSession)]
impl WebSession {
    /// Sets the initial noise spectra from a section without speech, one array per channel.
    #[wasm_bindgen(js_name = setNoiseProfile)]
    pub fn set_noise_profile(
        &mut self,
        denoiser: &WebDenoiser,
        noise: Vec<Float32Array>,
        sample_rate: u32,
    ) -> Result<(), JsValue> {
        let channels: Vec<Vec<f32>> = noise.iter().map(Float32Array::to_vec).collect();
        let mut profile =
            denoiser.denoiser.noise_profile(sample_rate, channels.len()).map_err(denoise_failure)?;
        profile.push(&channels.iter().map(Vec::as_slice).collect::<Vec<_>>()).map_err(denoise_failure)?;
        self.session.set_noise_profile(&profile).map_err(denoise_failure)
    }

    /// Takes one array per channel; returns the completed speech arrays, then the residual arrays.
    pub fn push(&mut self, block: Vec<Float32Array>, progress: Option<Function>) -> Result<Array, JsValue> {
        let channels: Vec<Vec<f32>> = block.iter().map(Float32Array::to_vec).collect();
        let channels: Vec<&[f32]> = channels.iter().map(Vec::as_slice).collect();
        let progress = Progress(progress.as_ref());
        let output = self.session.push_with_progress(&channels, &mut |seconds: f64| progress.report(seconds));
        Ok(arrays(&output.map_err(denoise_failure)?))
    }

    /// Ends the recording and returns the remaining samples, as `push` does.
    pub fn finish(&mut self, progress: Option<Function>) -> Result<Array, JsValue> {
        let progress = Progress(progress.as_ref());
        let output = self.session.finish_with_progress(&mut |seconds: f64| progress.report(seconds));
        Ok(arrays(&output.map_err(denoise_failure)?))
    }

    /// Standard deviations of the gain since the last call, frame by frame; one array, or one per separate channel.
    #[wasm_bindgen(js_name = takeGainStd)]
    pub fn take_gain_std(&mut self) -> Array {
        self.session.take_gain_std().iter().map(|values| Float32Array::from(values.as_slice())).collect()
    }

    /// Number of bins of a frame.
    pub fn bins(&self) -> usize {
        self.grid.bins
    }

    /// Distance between bins, Hz.
    #[wasm_bindgen(js_name = binHertz)]
    pub fn bin_hertz(&self) -> f64 {
        self.grid.bin_hertz
    }

    /// Distance between frames, s.
    #[wasm_bindgen(js_name = frameSeconds)]
    pub fn frame_seconds(&self) -> f64 {
        self.grid.frame_seconds
    }

    /// Where there is speech, since the last call; for all channels, or for each: its probability every 10 ms, and the sections
    /// that have ended, four numbers each: start and end (s), level (dBFS), SNR (dB).
    #[wasm_bindgen(js_name = takeSpeechTrack)]
    pub fn take_speech_track(&mut self) -> Array {
        let parts = self.session.take_speech_track().into_iter().flat_map(|track| {
            let numbers = track.segments.iter().flat_map(|segment| {
                [segment.start_seconds, segment.end_seconds, segment.level_dbfs, segment.snr_db]
            });
            let segments: Vec<f64> = numbers.collect();
            let probability = Float32Array::from(track.probability.as_slice());
            [JsValue::from(probability), JsValue::from(Float64Array::from(segments.as_slice()))]
        });
        parts.collect()
    }

    /// Statistics so far, as JSON.
    pub fn statistics(&self) -> Result<String, JsValue> {
        json(serde_json::to_string(&self.session.statistics()))
    }

    /// Maximum number of samples per channel held back after a `push`.
    pub fn latency(&self) -> usize {
        self.session.latency()
    }
}

/// Maximum number of samples per channel in one call of [`WebLive::process`]; browsers pass fewer.
const LIVE_BLOCK: usize = 1024;

/// Causal denoiser for the audio thread. Samples are exchanged in place and controls are numbers, so that no call
/// allocates.
#[wasm_bindgen(js_name = NativeLive)]
pub struct WebLive {
    live: LiveDenoiser,
    input: Vec<f32>,
    output: Vec<f32>,
    /// Starts and ends of speech in `process_arrays` that have not been retrieved yet.
    events: VoiceEvents,
}

#[wasm_bindgen(js_class = NativeLive)]
impl WebLive {
    /// Address of the input buffer, channels interleaved.
    pub fn input(&mut self) -> *mut f32 {
        self.input.as_mut_ptr()
    }

    /// Address of the output buffer, channels interleaved.
    pub fn output(&self) -> *const f32 {
        self.output.as_ptr()
    }

    /// Capacity of both buffers, samples per channel.
    pub fn capacity() -> usize {
        LIVE_BLOCK
    }

    /// Processes `frames` samples per channel from the input to the output buffer.
    pub fn process(&mut self, frames: usize) {
        let count = self.input.len().min(frames * self.live.channels());
        self.live.process(&self.input[..count], &mut self.output[..count]);
    }

    /// Like `process`, for one array per channel; returns arrays.
    #[wasm_bindgen(js_name = processArrays)]
    pub fn process_arrays(&mut self, block: Vec<Float32Array>) -> Result<Array, JsValue> {
        let (width, found) = (self.live.channels(), block.len());
        if found != width {
            return Err(denoise_failure(DenoiseError::Channels { found, expected: width }));
        }
        let channels: Vec<Vec<f32>> = block.iter().map(Float32Array::to_vec).collect();
        let length = channels.first().map_or(0, Vec::len);
        if channels.iter().any(|channel| channel.len() != length) {
            return Err(failure("input", "channels have different lengths"));
        }
        let input: Vec<f32> = (0..length)
            .flat_map(|n| channels.iter().filter_map(move |channel| channel.get(n)))
            .copied()
            .collect();
        let mut output = vec![0.0; input.len()];
        self.live.process_with_events(&input, &mut output, |event| self.events.push(event));
        let of_channel =
            |channel| -> Vec<f32> { output.iter().skip(channel).step_by(width).copied().collect() };
        Ok((0..width).map(|channel| Float32Array::from(of_channel(channel).as_slice())).collect())
    }

    /// Starts and ends of speech in arrays since the last call, two numbers each: 1 or 0, and the position in samples.
    #[wasm_bindgen(js_name = takeEvents)]
    pub fn take_events(&mut self) -> Float64Array {
        let numbers = |event: VoiceEvent| [f64::from(u8::from(event.speaking)), event.sample as f64];
        Float64Array::from(self.events.take().flat_map(numbers).collect::<Vec<_>>().as_slice())
    }

    /// Sets the controls that are given as JSON; the others stay, and values out of range are clamped.
    pub fn set(&mut self, controls: &str) -> Result<(), JsValue> {
        self.live.set_controls(self.live.controls().with_json(controls).map_err(invalid_setting)?);
        Ok(())
    }

    /// Controls, as JSON.
    pub fn controls(&self) -> Result<String, JsValue> {
        json(serde_json::to_string(&self.live.controls()))
    }

    /// Lowest and highest controls, as JSON.
    #[wasm_bindgen(js_name = controlRanges)]
    pub fn control_ranges() -> Result<String, JsValue> {
        json(serde_json::to_string(&[LiveControls::LOWEST, LiveControls::HIGHEST]))
    }

    /// Sets the controls of the sound.
    #[wasm_bindgen(js_name = setControls)]
    pub fn set_controls(&mut self, gain_exponent: f32, floor_db: f32, mix: f32, bypass: bool) {
        let controls = LiveControls { gain_exponent, floor_db, mix, bypass, ..self.live.controls() };
        self.live.set_controls(controls);
    }

    /// Sets the controls of the voice activity.
    #[wasm_bindgen(js_name = setVoiceControls)]
    pub fn set_voice_controls(&mut self, voice_threshold: f32, voice_hang_over_seconds: f32) {
        let controls = LiveControls { voice_threshold, voice_hang_over_seconds, ..self.live.controls() };
        self.live.set_controls(controls);
    }

    /// Learns the noise from the next `seconds` of input.
    #[wasm_bindgen(js_name = learnNoise)]
    pub fn learn_noise(&mut self, seconds: f64) {
        self.live.learn_noise(seconds);
    }

    /// Clears all state but the controls.
    pub fn reset(&mut self) {
        self.live.reset();
        self.events.clear();
    }

    /// Noise level, dBFS.
    #[wasm_bindgen(js_name = noiseDbfs)]
    pub fn noise_dbfs(&self) -> f32 {
        self.live.meters().noise_dbfs
    }

    /// Speech level, dBFS.
    #[wasm_bindgen(js_name = speechDbfs)]
    pub fn speech_dbfs(&self) -> f32 {
        self.live.meters().speech_dbfs
    }

    /// Output level relative to the input, before mixing, dB.
    #[wasm_bindgen(js_name = gainDb)]
    pub fn gain_db(&self) -> f32 {
        self.live.meters().gain_db
    }

    /// Probability of speech in the last frame, 0 to 1.
    #[wasm_bindgen(js_name = speechProbability)]
    pub fn speech_probability(&self) -> f32 {
        self.live.voice_activity().probability
    }

    /// Whether there is speech.
    pub fn speaking(&self) -> bool {
        self.live.voice_activity().speaking
    }

    /// Delay of the output, samples per channel.
    pub fn latency(&self) -> usize {
        self.live.latency()
    }
}

fn json(text: serde_json::Result<String>) -> Result<String, JsValue> {
    text.map_err(|error| failure("other", error))
}

fn arrays(output: &SessionOutput) -> Array {
    let channels = output.speech.iter().chain(&output.residual);
    channels.map(|samples| Float32Array::from(samples.as_slice())).collect()
}
