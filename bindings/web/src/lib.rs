//! What the npm package is made of; `index.js` and `index.d.ts` say what it means.

use alphamf::denoiser::{LiveControls, LiveSettings, Options, SessionOutput, SessionSettings};
use alphamf::{Denoiser, Dictionary, LiveDenoiser, Session};
use js_sys::{Array, Float32Array, Function};
use std::ops::ControlFlow;
use wasm_bindgen::prelude::*;

fn error(error: impl std::fmt::Display) -> JsError {
    JsError::new(&error.to_string())
}

/// Told the seconds that are done. What a function throws ends the work.
struct Progress<'a>(Option<&'a Function>);

impl Progress<'_> {
    fn tell(&self, seconds: f64) -> ControlFlow<()> {
        match self.0.map(|function| function.call1(&JsValue::NULL, &JsValue::from_f64(seconds))) {
            Some(Err(_)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

// SAFETY: without the feature `atomics` there is one thread.
#[cfg(not(target_feature = "atomics"))]
unsafe impl Send for Progress<'_> {}

/// A denoiser with its tables.
#[wasm_bindgen(js_name = NativeDenoiser)]
pub struct WebDenoiser {
    denoiser: Denoiser,
    session: SessionSettings,
}

#[wasm_bindgen(js_class = NativeDenoiser)]
impl WebDenoiser {
    /// By options as JSON, and the bytes of a dictionary.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str, model: Option<Vec<u8>>) -> Result<Self, JsError> {
        let options: Options = serde_json::from_str(options).map_err(error)?;
        let dictionary =
            model.map_or_else(Dictionary::built_in, |bytes| Dictionary::from_bytes(&bytes)).map_err(error)?;
        let denoiser = Denoiser::new(dictionary, options.settings().map_err(error)?).map_err(error)?;
        Ok(Self { denoiser, session: options.session() })
    }

    /// Begins a recording.
    pub fn session(&self, sample_rate: u32, channels: usize, deviation: bool) -> Result<WebSession, JsError> {
        let settings = SessionSettings { residual: true, deviation, ..self.session.clone() };
        let session = self.denoiser.session(sample_rate, channels, settings).map_err(error)?;
        Ok(WebSession { session })
    }

    /// Begins sound as it comes; controls as JSON.
    pub fn live(
        &self,
        sample_rate: u32,
        channels: usize,
        latency_seconds: f64,
        controls: &str,
    ) -> Result<WebLive, JsError> {
        let controls = serde_json::from_str(controls).map_err(error)?;
        let settings = LiveSettings { latency_seconds, controls };
        let live = self.denoiser.live(sample_rate, channels, settings).map_err(error)?;
        let buffer = vec![0.0; channels * LIVE_BLOCK];
        Ok(WebLive { live, input: buffer.clone(), output: buffer })
    }
}

/// A recording on its way through a denoiser.
#[wasm_bindgen(js_name = NativeSession)]
pub struct WebSession {
    session: Session,
}

#[wasm_bindgen(js_class = NativeSession)]
impl WebSession {
    /// Lets the noise start from a stretch of noise alone, an array for each channel.
    #[wasm_bindgen(js_name = startFrom)]
    pub fn set_noise_profile(
        &mut self,
        denoiser: &WebDenoiser,
        noise: Vec<Float32Array>,
        sample_rate: u32,
    ) -> Result<(), JsError> {
        let channels: Vec<Vec<f32>> = noise.iter().map(Float32Array::to_vec).collect();
        let mut profile = denoiser.denoiser.noise_profile(sample_rate, channels.len()).map_err(error)?;
        profile.push(&channels.iter().map(Vec::as_slice).collect::<Vec<_>>()).map_err(error)?;
        self.session.set_noise_profile(&profile).map_err(error)
    }

    /// Takes an array for each channel; gives those of the voice, then those of the residual.
    pub fn push(&mut self, block: Vec<Float32Array>, progress: Option<Function>) -> Result<Array, JsError> {
        let channels: Vec<Vec<f32>> = block.iter().map(Float32Array::to_vec).collect();
        let channels: Vec<&[f32]> = channels.iter().map(Vec::as_slice).collect();
        let progress = Progress(progress.as_ref());
        let portion = self.session.push_with_progress(&channels, &mut |seconds: f64| progress.tell(seconds));
        Ok(arrays(&portion.map_err(error)?))
    }

    /// The samples still to come, as `push` gives them.
    pub fn finish(&mut self, progress: Option<Function>) -> Result<Array, JsError> {
        let progress = Progress(progress.as_ref());
        let portion = self.session.finish_with_progress(&mut |seconds: f64| progress.tell(seconds));
        Ok(arrays(&portion.map_err(error)?))
    }

    /// Standard deviations of the gain since it was last asked for, frame by frame; of all channels, or of each.
    #[wasm_bindgen(js_name = takeDeviation)]
    pub fn take_gain_std(&mut self) -> Array {
        self.session.take_gain_std().iter().map(|values| Float32Array::from(values.as_slice())).collect()
    }

    /// What was found, as JSON.
    pub fn statistics(&self) -> Result<String, JsError> {
        serde_json::to_string(&self.session.statistics()).map_err(error)
    }

    /// Samples that may have gone in and not come out yet.
    pub fn latency(&self) -> usize {
        self.session.latency()
    }
}

/// The most samples per channel that [`WebLive::process`] takes at once: more than browsers give.
const LIVE_BLOCK: usize = 1024;

/// Sound on its way through a denoiser, for the thread that plays it: samples are written to and read from where
/// they lie, controls are numbers, so that nothing is allocated.
#[wasm_bindgen(js_name = NativeLive)]
pub struct WebLive {
    live: LiveDenoiser,
    input: Vec<f32>,
    output: Vec<f32>,
}

#[wasm_bindgen(js_class = NativeLive)]
impl WebLive {
    /// Where the samples that come in are to be written, channels interleaved.
    pub fn input(&mut self) -> *mut f32 {
        self.input.as_mut_ptr()
    }

    /// Where those that come out are to be read.
    pub fn output(&self) -> *const f32 {
        self.output.as_ptr()
    }

    /// Samples per channel that there is room for.
    pub fn room() -> usize {
        LIVE_BLOCK
    }

    /// Takes so many samples per channel and gives as many.
    pub fn process(&mut self, frames: usize) {
        let count = self.input.len().min(frames * self.live.channels());
        self.live.process(&self.input[..count], &mut self.output[..count]);
    }

    /// Changes the controls.
    #[wasm_bindgen(js_name = setControls)]
    pub fn set_controls(&mut self, gain_exponent: f32, floor_db: f32, mix: f32, bypass: bool) {
        self.live.set_controls(LiveControls { gain_exponent, floor_db, mix, bypass });
    }

    /// Takes all that comes in the next seconds for noise.
    #[wasm_bindgen(js_name = learnNoise)]
    pub fn learn_noise(&mut self, seconds: f64) {
        self.live.learn_noise(seconds);
    }

    /// Forgets all that has come.
    pub fn reset(&mut self) {
        self.live.reset();
    }

    /// Level of the noise, dBFS.
    #[wasm_bindgen(js_name = noiseDbfs)]
    pub fn noise_dbfs(&self) -> f32 {
        self.live.meters().noise_dbfs
    }

    /// Level of the voice, dBFS.
    #[wasm_bindgen(js_name = speechDbfs)]
    pub fn speech_dbfs(&self) -> f32 {
        self.live.meters().speech_dbfs
    }

    /// Level of what comes out against what came in, dB.
    #[wasm_bindgen(js_name = gainDb)]
    pub fn gain_db(&self) -> f32 {
        self.live.meters().gain_db
    }

    /// Samples per channel by which the output is late.
    pub fn latency(&self) -> usize {
        self.live.latency()
    }
}

fn arrays(portion: &SessionOutput) -> Array {
    let channels = portion.speech.iter().chain(&portion.residual);
    channels.map(|samples| Float32Array::from(samples.as_slice())).collect()
}
