//! Boundary to C: converts pointers to references, and errors and panics to status codes.

use crate::alphamf_status::{
    self, ALPHAMF_CANCELLED, ALPHAMF_FAILED, ALPHAMF_INPUT, ALPHAMF_MODEL, ALPHAMF_OK, ALPHAMF_SETTING,
};
use alphamf::{DenoiseError, ErrorKind};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Status code and message of a failure.
pub(crate) struct Failure(pub(crate) alphamf_status, pub(crate) String);

impl From<DenoiseError> for Failure {
    fn from(error: DenoiseError) -> Self {
        let status = match error.kind() {
            ErrorKind::Setting => ALPHAMF_SETTING,
            ErrorKind::Input => ALPHAMF_INPUT,
            ErrorKind::Model => ALPHAMF_MODEL,
            ErrorKind::Cancelled => ALPHAMF_CANCELLED,
            _ => ALPHAMF_FAILED,
        };
        Self(status, error.to_string())
    }
}

pub(crate) fn setting(error: impl ToString) -> Failure {
    Failure(ALPHAMF_SETTING, error.to_string())
}

pub(crate) fn model(error: impl ToString) -> Failure {
    Failure(ALPHAMF_MODEL, error.to_string())
}

pub(crate) fn null(what: &str) -> Failure {
    Failure(ALPHAMF_INPUT, format!("{what} is a null pointer"))
}

fn too_large(count: usize, unit: &str) -> Failure {
    Failure(ALPHAMF_INPUT, format!("{count} {unit} exceed the address space"))
}

/// Rejects a number of samples whose bytes exceed the address space.
pub(crate) fn check_samples(count: usize) -> Result<(), Failure> {
    if count > isize::MAX as usize / size_of::<f32>() { Err(too_large(count, "samples")) } else { Ok(()) }
}

thread_local! {
    /// Message of the last failure on this thread.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Message of the last failure on this thread; empty while the thread ends, when the message is gone.
pub(crate) fn last_error() -> *const c_char {
    ERROR.try_with(|error| error.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Converts text for C; zeros become spaces.
pub(crate) fn text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Runs the body of a function; a panic becomes a failure.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> alphamf_status {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    match outcome.unwrap_or_else(|_| Err(Failure(ALPHAMF_FAILED, "internal error".to_owned()))) {
        Ok(()) => ALPHAMF_OK,
        Err(Failure(status, message)) => {
            // A destructor of another library may call while the thread ends.
            let _ = ERROR.try_with(|error| *error.borrow_mut() = text(&message));
            status
        }
    }
}

/// Converts a pointer to a reference to its target.
///
/// # Safety
/// The pointer is null, or nothing else uses its target while the reference lives.
pub(crate) unsafe fn reference<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// Writes to the target of a pointer, which may be uninitialised.
///
/// # Safety
/// The pointer is null, or its target may be written.
pub(crate) unsafe fn write<T>(pointer: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: as the caller promises, and it is not null.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Reads UTF-8 text of C.
///
/// # Safety
/// The pointer is null, or to a zero-terminated text that does not change while the reference lives.
pub(crate) unsafe fn string<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: as the caller promises, and it is not null.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| setting(format!("{what} is not UTF-8")))
}

/// Converts bytes of C to a slice.
///
/// # Safety
/// `bytes` is null, or points to `length` bytes that do not change while the slice lives.
pub(crate) unsafe fn memory<'a>(bytes: *const u8, length: usize) -> Result<&'a [u8], Failure> {
    if bytes.is_null() {
        return Err(null("bytes"));
    }
    if length > isize::MAX as usize {
        return Err(too_large(length, "bytes"));
    }
    // SAFETY: as the caller promises, and it is not null.
    Ok(unsafe { std::slice::from_raw_parts(bytes, length) })
}

/// Converts the samples of every channel to slices.
///
/// # Safety
/// `channels` is null, or points to `count` pointers, each null or to `samples` numbers that do not change while the
/// slices live.
pub(crate) unsafe fn blocks<'a>(
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
    check_samples(samples)?;
    let channel = |index| {
        // SAFETY: there are `count` pointers.
        let pointer = unsafe { *channels.add(index) };
        if pointer.is_null() {
            return Err(null("a channel"));
        }
        // SAFETY: it points to `samples` numbers, and is not null.
        Ok(unsafe { std::slice::from_raw_parts(pointer, samples) })
    };
    (0..count).map(channel).collect()
}

/// Writes values one after another.
///
/// # Safety
/// `place` points to room for all of them.
pub(crate) unsafe fn write_all<T>(values: impl Iterator<Item = T>, place: *mut T) {
    for (index, value) in values.enumerate() {
        // SAFETY: as the caller promises.
        unsafe { place.add(index).write(value) };
    }
}
