//! Settings of streams and of real-time denoisers.

use crate::alphamf_status::{self, ALPHAMF_FAILED, ALPHAMF_INPUT};
use crate::boundary::{Failure, guarded, memory, model, reference, setting, string};
use alphamf::denoiser::SessionSettings;
use alphamf::{Denoiser, Dictionary, Options};
use alphamf_signal::check_sample_rate;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Number, Value, json};
use std::ffi::c_char;
use std::sync::{Arc, OnceLock};

/// Settings of streams and of real-time denoisers.
pub struct alphamf_settings {
    options: Options,
    threads: usize,
    speech_track: bool,
    dictionary: Option<Dictionary>,
    /// Made on first use and shared by all streams of these settings.
    prepared: OnceLock<Prepared>,
}

#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) denoiser: Denoiser,
    pub(crate) session: SessionSettings,
    pub(crate) threads: Threads,
}

/// Worker threads: a separate pool if their number was set, else the global pool of the process.
#[derive(Clone)]
pub(crate) struct Threads(Option<Arc<ThreadPool>>);

impl Threads {
    /// Creates a pool of `count` threads, or uses the global pool if `count` is 0.
    fn new(count: usize) -> Result<Self, Failure> {
        if count == 0 {
            return Ok(Self(None));
        }
        let pool = ThreadPoolBuilder::new().num_threads(count).build();
        Ok(Self(Some(Arc::new(pool.map_err(|error| Failure(ALPHAMF_FAILED, error.to_string()))?))))
    }

    /// Runs work on the threads.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// Parses numbers and booleans as in JSON, and numbers that only the program accepts, such as .5 and +3. Other values
/// are text.
fn value_of(text: &str) -> Value {
    let whole = || text.parse().map(|number: u64| number.into()).ok();
    // JSON has no numbers that are not finite.
    let number = || text.parse().ok().and_then(Number::from_f64).map(Value::Number);
    let json = serde_json::from_str(text).ok();
    json.or_else(whole).or_else(number).unwrap_or_else(|| Value::String(text.to_owned()))
}

impl alphamf_settings {
    fn new() -> Self {
        Self {
            options: Options::default(),
            threads: 0,
            speech_track: false,
            dictionary: None,
            prepared: OnceLock::new(),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let is_default = value == "null";
        if name == "threads" {
            let count =
                if is_default { Some(0) } else { value.parse().ok().filter(|n| (1..=1024).contains(n)) };
            self.threads = count.ok_or_else(|| setting(format!("threads is {value}; expected 1 to 1024")))?;
        } else if name == "speech_track" {
            let is_wanted = if is_default { Some(false) } else { value.parse().ok() };
            self.speech_track = is_wanted
                .ok_or_else(|| setting(format!("speech_track is {value}; expected true or false")))?;
        } else if !Options::names().contains(&name) {
            let known: Vec<&str> = Options::float_names().chain(["threads", "speech_track"]).collect();
            return Err(setting(format!("option is {name}; expected {}", known.join(", "))));
        } else {
            let given = json!({ name: value_of(value) }).to_string();
            self.options = self.options.with_json_for_floats(&given).map_err(setting)?;
        }
        self.prepared = OnceLock::new();
        Ok(())
    }

    pub(crate) fn prepared(&self) -> Result<Prepared, Failure> {
        if let Some(prepared) = self.prepared.get() {
            return Ok(prepared.clone());
        }
        let dictionary = self.dictionary.clone().map_or_else(Dictionary::built_in, Ok).map_err(model)?;
        let settings = self.options.settings().map_err(setting)?;
        let threads = Threads::new(self.threads)?;
        let denoiser = threads.run(|| Denoiser::new(dictionary, settings))?;
        let session = SessionSettings { speech_track: self.speech_track, ..self.options.session() };
        Ok(self.prepared.get_or_init(|| Prepared { denoiser, session, threads }).clone())
    }
}

/// Denoiser of the settings, or of the defaults if they are NULL. The sample rate is checked first, before tables are
/// filled.
///
/// # Safety
/// `settings` is null or of `alphamf_settings_new`.
pub(crate) unsafe fn prepare(
    sample_rate: u32,
    settings: *const alphamf_settings,
) -> Result<Prepared, Failure> {
    check_sample_rate(sample_rate).map_err(|error| Failure(ALPHAMF_INPUT, error.to_string()))?;
    // SAFETY: as the caller promises.
    match unsafe { settings.as_ref() } {
        Some(settings) => settings.prepared(),
        None => alphamf_settings::new().prepared(),
    }
}

/// Creates settings at their defaults; free them with alphamf_settings_free.
#[unsafe(no_mangle)]
pub extern "C" fn alphamf_settings_new() -> *mut alphamf_settings {
    Box::into_raw(Box::new(alphamf_settings::new()))
}

/// Sets an option of the program `denoise` by name, with _ for -, such as ("strength", "gentle"), ("mix", "0.8"),
/// ("channels", "separate") or ("no_neural", "true"); or the number of worker threads, ("threads", "2"); or whether streams
/// record where there is speech, for alphamf_pull_probability and alphamf_pull_segments, ("speech_track", "true"). The value
/// "null" restores the default. Existing streams keep their settings.
///
/// Returns ALPHAMF_SETTING for an unknown name or a value of the wrong type; alphamf_create checks most ranges and
/// combinations.
///
/// # Safety
/// `settings` is of `alphamf_settings_new`; the texts are zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_set(
    settings: *mut alphamf_settings,
    name: *const c_char,
    value: *const c_char,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (settings, name, value) =
            unsafe { (reference(settings, "settings")?, string(name, "name")?, string(value, "value")?) };
        settings.set(name, value)
    })
}

/// Replaces the built-in dictionary by the bytes of a file of `denoise train`.
///
/// # Safety
/// `settings` is of `alphamf_settings_new`; `bytes` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_set_dictionary(
    settings: *mut alphamf_settings,
    bytes: *const u8,
    length: usize,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (settings, bytes) = unsafe { (reference(settings, "settings")?, memory(bytes, length)?) };
        settings.dictionary = Some(Dictionary::from_bytes(bytes).map_err(model)?);
        settings.prepared = OnceLock::new();
        Ok(())
    })
}

/// Frees settings, or NULL. Streams created with them remain valid.
///
/// # Safety
/// `settings` is NULL or of `alphamf_settings_new`, and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_settings_free(settings: *mut alphamf_settings) {
    if !settings.is_null() {
        // SAFETY: as the caller promises, and it is not null.
        drop(unsafe { Box::from_raw(settings) });
    }
}
