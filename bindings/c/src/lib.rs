//! The C interface of alphamf: its documentation is that of the header, `include/alphamf.h`, made from this file by
//! cbindgen.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
#![allow(non_camel_case_types)] // As C writes them.

use alphamf::denoiser::{LiveControls, LiveSettings, Options, SessionOutput, SessionSettings};
use alphamf::signal::check_sample_rate;
use alphamf::{DenoiseError, Denoiser, Dictionary, ErrorKind, LiveDenoiser, ProgressCallback, Session};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_double, c_int, c_void};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// What came of a call; the codes are those that the program `denoise` exits with.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum alphamf_status {
    /// Done.
    ALPHAMF_OK = 0,
    /// Failed for another reason than those below.
    ALPHAMF_FAILED = 1,
    /// A setting is unknown, out of its range, or does not go with another.
    ALPHAMF_SETTING = 2,
    /// What was given to work on is of no use: a null pointer, samples that are not finite, a sample rate or a number of
    /// channels that is not served, anything after the end.
    ALPHAMF_INPUT = 3,
    /// A dictionary is of no use.
    ALPHAMF_MODEL = 5,
    /// The watch has ended it.
    ALPHAMF_CANCELLED = 130,
}
use alphamf_status::{
    ALPHAMF_CANCELLED, ALPHAMF_FAILED, ALPHAMF_INPUT, ALPHAMF_MODEL, ALPHAMF_OK, ALPHAMF_SETTING,
};

/// Is told the seconds of the recording that are done, and ends the work by returning anything but 0. It may be called
/// from any thread, but by one at a time, and must not call functions on the same stream.
pub type alphamf_watch = Option<unsafe extern "C" fn(seconds: c_double, user: *mut c_void) -> c_int>;

/// Settings of streams.
pub struct alphamf_settings {
    options: Map<String, Value>,
    threads: usize,
    dictionary: Option<Dictionary>,
    /// What they make, once it is asked for: streams of the same settings share it.
    made: OnceLock<Made>,
}

#[derive(Clone)]
struct Made {
    denoiser: Denoiser,
    session: SessionSettings,
    /// Threads of its own, if their number was given.
    pool: Option<Arc<ThreadPool>>,
}

/// A recording on its way through the denoiser.
pub struct alphamf_stream {
    session: Session,
    made: Made,
    /// Samples that are done and were not pulled yet: of the voice, then of what was taken out.
    done: [Vec<VecDeque<f32>>; 2],
    sample_rate: u32,
    watch: Guard,
    statistics: CString,
}

/// Sound on its way through the denoiser as it comes, in calls and streams.
pub struct alphamf_live(LiveDenoiser);

/// A watch, as C gives it.
struct Guard {
    watch: alphamf_watch,
    user: *mut c_void,
}

// SAFETY: whoever sets a watch promises that it and what `user` points to may be used from any thread, one at a time.
unsafe impl Send for Guard {}

impl ProgressCallback for Guard {
    fn report(&mut self, seconds: f64) -> ControlFlow<()> {
        // SAFETY: the function is one of C's with these parameters, and `user` is what it was set with.
        let ended = self.watch.is_some_and(|watch| unsafe { watch(seconds, self.user) } != 0);
        if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A failure: its code and its text.
struct Failure(alphamf_status, String);

impl From<DenoiseError> for Failure {
    fn from(error: DenoiseError) -> Self {
        let status = match error.kind() {
            ErrorKind::Setting => ALPHAMF_SETTING,
            ErrorKind::Input => ALPHAMF_INPUT,
            ErrorKind::Model => ALPHAMF_MODEL,
            ErrorKind::Cancelled => ALPHAMF_CANCELLED,
            _ if matches!(error, DenoiseError::Finished) => ALPHAMF_INPUT,
            _ => ALPHAMF_FAILED,
        };
        Self(status, error.to_string())
    }
}

fn setting(error: impl ToString) -> Failure {
    Failure(ALPHAMF_SETTING, error.to_string())
}

fn model(error: impl ToString) -> Failure {
    Failure(ALPHAMF_MODEL, error.to_string())
}

fn null(what: &str) -> Failure {
    Failure(ALPHAMF_INPUT, format!("{what} is a null pointer"))
}

thread_local! {
    /// What was wrong the last time on this thread.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Text for C, which ends at a zero.
fn text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Runs what a function of the interface does: no panic crosses into C.
fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> alphamf_status {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    match outcome
        .unwrap_or_else(|_| Err(Failure(ALPHAMF_FAILED, "an error of the library itself".to_owned())))
    {
        Ok(()) => ALPHAMF_OK,
        Err(Failure(status, message)) => {
            ERROR.with(|error| *error.borrow_mut() = text(&message));
            status
        }
    }
}

/// What a pointer of C's points to.
///
/// # Safety
/// It is null, or points to a value that nobody else uses as long as the reference lives.
unsafe fn reference<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// A text of C's.
///
/// # Safety
/// It is null, or ends with a zero and does not change as long as the reference lives.
unsafe fn string<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: as the caller promises, and it is not null.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| setting(format!("{what} is no UTF-8")))
}

/// The samples of every channel.
///
/// # Safety
/// `channels` is null, or points to `count` pointers, each null or to `samples` numbers that do not change as long as
/// the slices live.
unsafe fn blocks<'a>(
    channels: *const *const f32,
    count: usize,
    samples: usize,
) -> Result<Vec<&'a [f32]>, Failure> {
    if samples == 0 {
        return Ok(vec![&[]; count]);
    }
    if channels.is_null() {
        return Err(null("channels"));
    }
    if samples > isize::MAX as usize / size_of::<f32>() {
        return Err(Failure(ALPHAMF_INPUT, format!("{samples} samples: more than any memory holds")));
    }
    let channel = |index| {
        // SAFETY: there are `count` pointers.
        let pointer = unsafe { *channels.add(index) };
        if pointer.is_null() {
            return Err(null("a channel"));
        }
        // SAFETY: it points to so many numbers, and is not null.
        Ok(unsafe { std::slice::from_raw_parts(pointer, samples) })
    };
    (0..count).map(channel).collect()
}

impl alphamf_settings {
    fn new() -> Self {
        Self { options: Map::new(), threads: 0, dictionary: None, made: OnceLock::new() }
    }

    fn options(&self) -> Result<Options, Failure> {
        serde_json::from_value(Value::Object(self.options.clone())).map_err(setting)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        if name == "threads" {
            self.threads = value
                .parse()
                .ok()
                .filter(|threads| (1..=1024).contains(threads))
                .ok_or_else(|| setting(format!("threads is {value}; expected 1 to 1024")))?;
        } else {
            // Numbers and truth values are what they are in JSON; all else is a word.
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            let before = self.options.insert(name.to_owned(), value);
            if let Err(Failure(status, message)) = self.options() {
                match before {
                    Some(before) => self.options.insert(name.to_owned(), before),
                    None => self.options.remove(name),
                };
                return Err(Failure(status, format!("{name}: {message}")));
            }
        }
        self.made = OnceLock::new();
        Ok(())
    }

    fn made(&self) -> Result<Made, Failure> {
        if let Some(made) = self.made.get() {
            return Ok(made.clone());
        }
        let options = self.options()?;
        let dictionary = self.dictionary.clone().map_or_else(Dictionary::built_in, Ok).map_err(model)?;
        let denoiser = Denoiser::new(dictionary, options.settings().map_err(setting)?)?;
        let pool = match self.threads {
            0 => None,
            threads => {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build();
                Some(Arc::new(pool.map_err(|error| Failure(ALPHAMF_FAILED, error.to_string()))?))
            }
        };
        Ok(self.made.get_or_init(|| Made { denoiser, session: options.session(), pool }).clone())
    }
}

impl Made {
    fn stream(&self, sample_rate: u32, channels: u32) -> Result<alphamf_stream, Failure> {
        let channels = channels as usize;
        let settings = SessionSettings { residual: true, ..self.session.clone() };
        Ok(alphamf_stream {
            session: self.denoiser.session(sample_rate, channels, settings)?,
            made: self.clone(),
            done: [vec![VecDeque::new(); channels], vec![VecDeque::new(); channels]],
            sample_rate,
            watch: Guard { watch: None, user: std::ptr::null_mut() },
            statistics: CString::default(),
        })
    }
}

impl alphamf_stream {
    fn channels(&self) -> usize {
        self.done[0].len()
    }

    /// Lets the session work, on its threads, and keeps what comes.
    fn work(
        &mut self,
        work: impl FnOnce(&mut Session, &mut dyn ProgressCallback) -> Result<SessionOutput, DenoiseError> + Send,
    ) -> Result<(), Failure> {
        let Self { session, watch, made, .. } = self;
        let SessionOutput { speech: voice, residual } = match &made.pool {
            Some(pool) => pool.install(|| work(session, watch))?,
            None => work(session, watch)?,
        };
        for (queues, samples) in self.done.iter_mut().zip([voice, residual]) {
            queues.iter_mut().zip(samples).for_each(|(queue, samples)| queue.extend(samples));
        }
        Ok(())
    }
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn alphamf_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What was wrong with the last call on this thread that failed, in words; valid until the next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn alphamf_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}

/// New settings, all at their defaults; to be freed by alphamf_settings_free.
#[unsafe(no_mangle)]
pub extern "C" fn alphamf_settings_new() -> *mut alphamf_settings {
    Box::into_raw(Box::new(alphamf_settings::new()))
}

/// Changes a setting: those of the program `denoise` by the names of its options, with _ for -, such as
/// ("strength", "gentle"), ("mix", "0.8"), ("channels", "separate"), ("no_neural", "true") or
/// ("threads", "2"). SeedTree that exist are not changed.
///
/// Returns ALPHAMF_SETTING for a name that is unknown or a value that is none; what goes with what, and most ranges, are
/// checked by alphamf_create.
///
/// # Safety
/// `settings` are those of `alphamf_settings_new`; the texts end with a zero.
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

/// Takes a dictionary, in place of the one that is built in, from the bytes of a file that `denoise train` made.
///
/// # Safety
/// `settings` are those of `alphamf_settings_new`; `bytes` points to `length` bytes.
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
        settings.made = OnceLock::new();
        Ok(())
    })
}

/// Bytes of C's.
///
/// # Safety
/// `bytes` is null, or points to `length` bytes that do not change as long as the slice lives.
unsafe fn memory<'a>(bytes: *const u8, length: usize) -> Result<&'a [u8], Failure> {
    if bytes.is_null() {
        return Err(null("bytes"));
    }
    if length > isize::MAX as usize {
        return Err(Failure(ALPHAMF_INPUT, format!("{length} bytes: more than any memory holds")));
    }
    // SAFETY: as the caller promises, and it is not null.
    Ok(unsafe { std::slice::from_raw_parts(bytes, length) })
}

/// Frees settings; nothing happens for NULL. SeedTree that were created with them live on.
///
/// # Safety
/// They are those of `alphamf_settings_new`, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_settings_free(settings: *mut alphamf_settings) {
    if !settings.is_null() {
        // SAFETY: as the caller promises, and it is not null.
        drop(unsafe { Box::from_raw(settings) });
    }
}

/// What is made of settings, or of the defaults if they are NULL, once the sample rate is known to be one: tables are not
/// filled for another.
///
/// # Safety
/// `settings` is null or of `alphamf_settings_new`.
unsafe fn made_for(sample_rate: u32, settings: *const alphamf_settings) -> Result<Made, Failure> {
    check_sample_rate(sample_rate).map_err(|error| Failure(ALPHAMF_INPUT, error.to_string()))?;
    // SAFETY: as the caller promises.
    match unsafe { settings.as_ref() } {
        Some(settings) => settings.made(),
        None => alphamf_settings::new().made(),
    }
}

/// Begins a recording of so many samples per second (8000 to 192000) and channels (1 to 256, and no more than 64 x 48000
/// samples per second together), with these settings or, if they are NULL, the defaults. The stream is to be freed by
/// alphamf_free. The first stream of some settings takes a moment longer: it fills tables that others share.
///
/// # Safety
/// `settings` is null or of `alphamf_settings_new`; `stream` points to a place for a pointer, which is set to NULL on
/// failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_create(
    sample_rate: u32,
    channels: u32,
    settings: *const alphamf_settings,
    stream: *mut *mut alphamf_stream,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let place = unsafe { reference(stream, "stream")? };
        *place = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let made = unsafe { made_for(sample_rate, settings)? };
        *place = Box::into_raw(Box::new(made.stream(sample_rate, channels)?));
        Ok(())
    })
}

/// Lets the noise start from a stretch that holds nothing else, of the same sample rate and channels. Before the first
/// push.
///
/// # Safety
/// `stream` is that of `alphamf_create`; `channels` points to a pointer for each channel, each to so many samples.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_set_noise_profile(
    stream: *mut alphamf_stream,
    channels: *const *const f32,
    samples: usize,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let stream = unsafe { reference(stream, "stream")? };
        // SAFETY: as the caller promises.
        let block = unsafe { blocks(channels, stream.channels(), samples)? };
        let mut noise = stream.made.denoiser.noise_profile(stream.sample_rate, stream.channels())?;
        noise.push(&block)?;
        Ok(stream.session.set_noise_profile(&noise)?)
    })
}

/// Lets a function watch the work of a stream, and end it; none if `watch` is NULL. What was ended can only be freed.
///
/// # Safety
/// `stream` is that of `alphamf_create`; `user` may be used by `watch` from any thread, as long as the stream lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_set_watch(
    stream: *mut alphamf_stream,
    watch: alphamf_watch,
    user: *mut c_void,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { reference(stream, "stream")? }.watch = Guard { watch, user };
        Ok(())
    })
}

/// The most samples per channel that may have gone in and not come out yet after a push; 0 for NULL.
///
/// # Safety
/// `stream` is NULL or that of `alphamf_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_latency(stream: *const alphamf_stream) -> usize {
    // SAFETY: as the caller promises.
    unsafe { stream.as_ref() }.map_or(0, |stream| stream.session.latency())
}

/// Takes the next samples of every channel. Most calls return at once; one in about four seconds of the recording works
/// on a block. The result does not depend on how samples are divided into calls. What is refused leaves nothing behind.
///
/// # Safety
/// `stream` is that of `alphamf_create`; `channels` points to a pointer for each channel, each to so many samples.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_push(
    stream: *mut alphamf_stream,
    channels: *const *const f32,
    samples: usize,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let stream = unsafe { reference(stream, "stream")? };
        // SAFETY: as the caller promises.
        let block = unsafe { blocks(channels, stream.channels(), samples)? };
        stream.work(|session, watch| session.push_with_progress(&block, watch))
    })
}

/// Ends the recording: what is still to come can be pulled. As many samples come out as went in.
///
/// # Safety
/// `stream` is that of `alphamf_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_finish(stream: *mut alphamf_stream) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { reference(stream, "stream")? }.work(|session, watch| session.finish_with_progress(watch))
    })
}

/// How many samples per channel can be pulled; 0 for NULL.
///
/// # Safety
/// `stream` is NULL or that of `alphamf_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_available(stream: *const alphamf_stream) -> usize {
    // SAFETY: as the caller promises.
    let first = unsafe { stream.as_ref() }.and_then(|stream| stream.done[0].first());
    first.map_or(0, VecDeque::len)
}

/// Writes the next samples of every channel that are done, at most so many: of the voice, and of what was taken out.
/// Either may be NULL and is left out. Returns how many were written for each channel.
///
/// # Safety
/// `stream` is NULL or that of `alphamf_create`; `voice` and `residual` are NULL or point to a pointer for each channel,
/// each to room for so many samples, which do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_pull(
    stream: *mut alphamf_stream,
    voice: *const *mut f32,
    residual: *const *mut f32,
    samples: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let count = samples.min(unsafe { alphamf_available(stream) });
    // SAFETY: as the caller promises.
    let Some(stream) = (unsafe { stream.as_mut() }) else { return 0 };
    for (queues, places) in stream.done.iter_mut().zip([voice, residual]) {
        for (channel, queue) in queues.iter_mut().enumerate() {
            let taken = queue.drain(..count.min(queue.len()));
            if places.is_null() {
                continue;
            }
            // SAFETY: there is a pointer for each channel.
            let place = unsafe { *places.add(channel) };
            if place.is_null() {
                continue;
            }
            for (index, sample) in taken.enumerate() {
                // SAFETY: there is room for `samples` numbers, and `index` is below that.
                unsafe { place.add(index).write(sample) };
            }
        }
    }
    count
}

/// What was found so far, as JSON: what `denoise --stats` tells of a file's samples. Valid until the next call on the
/// stream; an empty text for NULL.
///
/// # Safety
/// `stream` is NULL or that of `alphamf_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_statistics(stream: *mut alphamf_stream) -> *const c_char {
    // SAFETY: as the caller promises.
    let Some(stream) = (unsafe { stream.as_mut() }) else { return c"".as_ptr() };
    let statistics = catch_unwind(AssertUnwindSafe(|| serde_json::to_string(&stream.session.statistics())));
    stream.statistics = text(&statistics.unwrap_or(Ok(String::new())).unwrap_or_default());
    stream.statistics.as_ptr()
}

/// Frees a stream, finished or not; nothing happens for NULL.
///
/// # Safety
/// It is that of `alphamf_create`, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_free(stream: *mut alphamf_stream) {
    if !stream.is_null() {
        // SAFETY: as the caller promises, and it is not null.
        drop(unsafe { Box::from_raw(stream) });
    }
}

/// Denoises a recording that is in memory as a whole, with these settings or, if they are NULL, the defaults. What it
/// writes may be where it reads.
///
/// # Safety
/// As for `alphamf_create`, `alphamf_push` and `alphamf_pull`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_denoise(
    sample_rate: u32,
    channels: u32,
    settings: *const alphamf_settings,
    noisy: *const *const f32,
    voice: *const *mut f32,
    samples: usize,
) -> alphamf_status {
    if voice.is_null() {
        return guarded(|| Err(null("voice")));
    }
    let mut stream = std::ptr::null_mut();
    // SAFETY: as the caller promises.
    let mut status = unsafe { alphamf_create(sample_rate, channels, settings, &mut stream) };
    if status == ALPHAMF_OK {
        // SAFETY: the stream has just been created.
        status = unsafe { alphamf_push(stream, noisy, samples) };
    }
    if status == ALPHAMF_OK {
        // SAFETY: the stream has just been created.
        status = unsafe { alphamf_finish(stream) };
    }
    if status == ALPHAMF_OK {
        // SAFETY: as the caller promises; the stream has just been created.
        unsafe { alphamf_pull(stream, voice, std::ptr::null(), samples) };
    }
    // SAFETY: the stream has just been created, or is null.
    unsafe { alphamf_free(stream) };
    status
}

/// Begins sound that is denoised as it comes: what goes in comes out `latency` milliseconds (4 to 32) later. Of the
/// settings, which may be NULL for the defaults, the dictionary, the listener, floor_db, mix and the exponents count. To
/// be freed by alphamf_live_free.
///
/// # Safety
/// `settings` is null or of `alphamf_settings_new`; `live` points to a place for a pointer, which is set to NULL on
/// failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_create(
    sample_rate: u32,
    channels: u32,
    settings: *const alphamf_settings,
    latency: f64,
    live: *mut *mut alphamf_live,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let place = unsafe { reference(live, "live")? };
        *place = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let made = unsafe { made_for(sample_rate, settings)? };
        let floor_db = made.denoiser.settings().gain.floor_db as f32;
        let controls = LiveControls { floor_db, mix: made.session.mix, ..LiveControls::default() };
        let settings = LiveSettings { latency_seconds: latency / 1000.0, controls };
        let live = made.denoiser.live(sample_rate, channels as usize, settings)?;
        *place = Box::into_raw(Box::new(alphamf_live(live)));
        Ok(())
    })
}

/// Takes so many samples of every channel, interleaved, and gives as many. It allocates nothing and never waits: made to
/// be called from an audio callback. The result does not depend on the size of the blocks.
///
/// # Safety
/// `live` is that of `alphamf_live_create`; `input` points to samples x channels numbers, `output` to room for as many,
/// and the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_process(
    live: *mut alphamf_live,
    input: *const f32,
    output: *mut f32,
    samples: usize,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        let live = unsafe { reference(live, "live")? };
        if input.is_null() || output.is_null() {
            return Err(null("input or output"));
        }
        let count = samples.saturating_mul(live.0.channels());
        if count > isize::MAX as usize / size_of::<f32>() {
            return Err(Failure(ALPHAMF_INPUT, format!("{samples} samples: more than any memory holds")));
        }
        // SAFETY: as the caller promises, and neither is null.
        let (input, output) = unsafe {
            (std::slice::from_raw_parts(input, count), std::slice::from_raw_parts_mut(output, count))
        };
        live.0.process(input, output);
        Ok(())
    })
}

/// Changes what may change meanwhile, smoothly: the power that gains are raised to (0 to 2; 1 at first), the least gain
/// (-100 to 0 dB), how much of the result is the voice (0 to 1), and whether the sound passes as it came. What is out of
/// its range is taken for the nearest in it. Between two calls of alphamf_live_process, never during one.
///
/// # Safety
/// `live` is that of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_set(
    live: *mut alphamf_live,
    gain_exponent: f32,
    floor_db: f32,
    mix: f32,
    bypass: bool,
) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { reference(live, "live")? }.0.set_controls(LiveControls {
            gain_exponent,
            floor_db,
            mix,
            bypass,
        });
        Ok(())
    })
}

/// Samples from what comes in to what goes out; 0 for NULL.
///
/// # Safety
/// `live` is NULL or that of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_latency(live: *const alphamf_live) -> usize {
    // SAFETY: as the caller promises.
    unsafe { live.as_ref() }.map_or(0, |live| live.0.latency())
}

/// Forgets all that has come.
///
/// # Safety
/// `live` is that of `alphamf_live_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_reset(live: *mut alphamf_live) -> alphamf_status {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { reference(live, "live")? }.0.reset();
        Ok(())
    })
}

/// Frees it; nothing happens for NULL.
///
/// # Safety
/// It is that of `alphamf_live_create`, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alphamf_live_free(live: *mut alphamf_live) {
    if !live.is_null() {
        // SAFETY: as the caller promises, and it is not null.
        drop(unsafe { Box::from_raw(live) });
    }
}
