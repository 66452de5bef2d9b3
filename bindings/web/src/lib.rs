//! What the npm package is made of; `index.js` and `index.d.ts` say what it means.

use alphamf::denoiser::{Options, Portion, SessionSettings};
use alphamf::{Denoiser, Dictionary, Refiner, Session};
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
    /// By options as JSON, and the bytes of a dictionary and a refiner.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str, model: Option<Vec<u8>>, refiner: Option<Vec<u8>>) -> Result<Self, JsError> {
        let options: Options = serde_json::from_str(options).map_err(error)?;
        let dictionary =
            model.map_or_else(Dictionary::shipped, |bytes| Dictionary::from_bytes(&bytes)).map_err(error)?;
        let mut denoiser = Denoiser::new(dictionary, options.settings().map_err(error)?).map_err(error)?;
        if let Some(bytes) = refiner {
            denoiser = denoiser.with_refiner(Refiner::from_bytes(&bytes).map_err(error)?).map_err(error)?;
        }
        Ok(Self { denoiser, session: options.session() })
    }

    /// Begins a recording.
    pub fn session(&self, sample_rate: u32, channels: usize, deviation: bool) -> Result<WebSession, JsError> {
        let settings = SessionSettings { residual: true, deviation, ..self.session.clone() };
        let session = self.denoiser.session(sample_rate, channels, settings).map_err(error)?;
        Ok(WebSession { session })
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
    pub fn start_from(
        &mut self,
        denoiser: &WebDenoiser,
        noise: Vec<Float32Array>,
        sample_rate: u32,
    ) -> Result<(), JsError> {
        let channels: Vec<Vec<f32>> = noise.iter().map(Float32Array::to_vec).collect();
        let mut profile = denoiser.denoiser.noise_profile(sample_rate, channels.len()).map_err(error)?;
        profile.push(&channels.iter().map(Vec::as_slice).collect::<Vec<_>>()).map_err(error)?;
        self.session.start_from(&profile).map_err(error)
    }

    /// Takes an array for each channel; gives those of the voice, then those of the residual.
    pub fn push(&mut self, block: Vec<Float32Array>, progress: Option<Function>) -> Result<Array, JsError> {
        let channels: Vec<Vec<f32>> = block.iter().map(Float32Array::to_vec).collect();
        let channels: Vec<&[f32]> = channels.iter().map(Vec::as_slice).collect();
        let progress = Progress(progress.as_ref());
        let portion = self.session.push_with(&channels, &mut |seconds: f64| progress.tell(seconds));
        Ok(arrays(&portion.map_err(error)?))
    }

    /// The samples still to come, as `push` gives them.
    pub fn finish(&mut self, progress: Option<Function>) -> Result<Array, JsError> {
        let progress = Progress(progress.as_ref());
        let portion = self.session.finish_with(&mut |seconds: f64| progress.tell(seconds));
        Ok(arrays(&portion.map_err(error)?))
    }

    /// Standard deviations of the gain since it was last asked for, frame by frame; of all channels, or of each.
    #[wasm_bindgen(js_name = takeDeviation)]
    pub fn take_deviation(&mut self) -> Array {
        self.session.take_deviation().iter().map(|values| Float32Array::from(values.as_slice())).collect()
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

fn arrays(portion: &Portion) -> Array {
    let channels = portion.voice.iter().chain(&portion.residual);
    channels.map(|samples| Float32Array::from(samples.as_slice())).collect()
}
