//! Systems that `denoise eval` scores: the denoiser of the command line, those of a protocol, or enhanced files.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;

use alphamf::denoiser::{DenoiseError, Denoiser, SessionSettings, Settings};
use alphamf::learning::{Corpus, TrainingSettings};
use alphamf::model::Dictionary;
use alphamf::signal::Signal;
use alphamf::signal::progress::ProgressCallback;
use alphamf_eval::{Observer, Protocol, checksum};
use anyhow::Context;

use super::common::Common;
use super::interrupts::{check_interrupt, interrupted};
use super::live::{self, Live};
use super::model::Model;
use super::progress::Progress;
use super::recording::read_whole;

/// Denoises one recording, and may pass snapshots to an observer.
type Denoise = dyn Fn(&Signal, &mut Observer) -> Result<Signal, Box<dyn Error + Send + Sync>> + Sync;

/// Settings for the record, without those of live denoising.
fn settings_of(settings: &Settings, session: &SessionSettings) -> serde_json::Result<serde_json::Value> {
    let mut record = serde_json::to_value(settings)?;
    if *session != SessionSettings::default() {
        record["session"] = serde_json::to_value(session)?;
    }
    Ok(record)
}

/// A system to score.
pub struct System {
    /// Name in the results.
    pub name: String,
    /// Settings for the record.
    pub settings: serde_json::Value,
    /// Seed of its random numbers.
    pub seed: Option<u64>,
    /// SHA-256 of its dictionary.
    pub dictionary_sha256: Option<String>,
    /// The denoiser.
    pub denoise: Box<Denoise>,
}

impl System {
    /// Files that were enhanced elsewhere.
    pub fn enhanced() -> Self {
        Self {
            name: "enhanced".to_owned(),
            settings: serde_json::Value::Null,
            seed: None,
            dictionary_sha256: None,
            denoise: Box::new(|_, _| Err("no enhanced file for this recording".into())),
        }
    }

    /// The denoiser that the command line describes.
    pub fn of_arguments(model: &Model, live: &Live) -> anyhow::Result<Self> {
        let denoiser = model.denoiser(live.mode())?;
        Self::of_denoiser("denoise", denoiser, live, &model.options.session(), 0)
    }

    /// The denoisers that a protocol compares, with the built-in dictionary or one trained on files below `data`.
    pub fn of_protocol(
        protocol: &Protocol,
        data: &Path,
        live: &Live,
        strict: bool,
        common: &Common,
    ) -> anyhow::Result<Vec<Self>> {
        // Settings are checked before training.
        let variants = protocol.variants::<Settings>()?;
        for variant in &variants {
            let place = || match variant.name.as_str() {
                "" => protocol.name.clone(),
                name => format!("{}: {name}", protocol.name),
            };
            variant.settings.validate().with_context(place)?;
        }
        let dictionary = match &protocol.training {
            None => Dictionary::built_in()?,
            Some(training) => train(protocol, training.sample_rate, data, strict, common)?,
        };
        let systems = variants.into_iter().map(|variant| {
            let name = if variant.name.is_empty() { "denoise" } else { &variant.name };
            Self::of_denoiser(
                name,
                Denoiser::new(dictionary.clone(), variant.settings)?,
                live,
                &SessionSettings::default(),
                protocol.trace_every,
            )
        });
        systems.collect()
    }

    fn of_denoiser(
        name: &str,
        denoiser: Denoiser,
        live: &Live,
        session: &SessionSettings,
        trace_every: usize,
    ) -> anyhow::Result<Self> {
        let live = live.settings(&denoiser, session.mix);
        let mut settings = settings_of(denoiser.settings(), session)?;
        let session = (*session != SessionSettings::default()).then(|| session.clone());
        if let Some(live) = &live {
            settings["live"] = serde_json::to_value(live)?;
        }
        Ok(Self {
            name: name.to_owned(),
            settings,
            seed: Some(denoiser.settings().seed),
            dictionary_sha256: Some(checksum(&denoiser.dictionary().to_bytes()?)),
            denoise: Box::new(move |noisy, observer| {
                if let Some(settings) = &live {
                    return Ok(live::denoise(&denoiser, noisy, settings)?);
                }
                if let Some(settings) = &session {
                    return Ok(in_session(&denoiser, noisy, settings.clone())?);
                }
                let progress = &mut |_: f64| interrupted();
                let denoised = match NonZeroUsize::new(trace_every) {
                    Some(every) => denoiser.denoise_with_snapshots(noisy, every, observer, progress)?,
                    None => denoiser.denoise_with_progress(noisy, progress)?,
                };
                Ok(denoised.signal)
            }),
        })
    }
}

/// Denoises a recording with settings of the mix and the channels.
fn in_session(
    denoiser: &Denoiser,
    noisy: &Signal,
    settings: SessionSettings,
) -> Result<Signal, DenoiseError> {
    let mut session = denoiser.session(noisy.sample_rate(), noisy.channels().len(), settings)?;
    let progress: &mut dyn ProgressCallback = &mut |_: f64| interrupted();
    let block: Vec<&[f32]> = noisy.channels().iter().map(Vec::as_slice).collect();
    let mut channels = session.push_with_progress(&block, progress)?.speech;
    let rest = session.finish_with_progress(progress)?.speech;
    channels.iter_mut().zip(rest).for_each(|(samples, rest)| samples.extend(rest));
    Ok(noisy.with_channels(channels)?)
}

fn train(
    protocol: &Protocol,
    sample_rate: u32,
    data: &Path,
    strict: bool,
    common: &Common,
) -> anyhow::Result<Dictionary> {
    let mut corpus = Corpus::new(sample_rate, protocol.training_settings::<TrainingSettings>()?)?;
    for file in protocol.training_files(data)? {
        check_interrupt()?;
        corpus.add(&read_whole(&file, strict)?).with_context(|| file.display().to_string())?;
    }
    let progress = Progress::new("training", common.quiet);
    Ok(corpus.train_with_progress(&mut |fraction: f64| progress.update(fraction))?)
}
