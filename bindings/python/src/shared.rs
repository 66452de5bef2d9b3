//! Values that several Python threads use in turn.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// Value for one thread at a time, with that thread's id. A signal handler or progress callback runs during the work of
/// its own thread, and would otherwise deadlock.
pub struct Shared<T> {
    value: Mutex<T>,
    owner: Mutex<Option<ThreadId>>,
}

/// Access to a shared value, until it is dropped.
pub struct Access<'a, T> {
    value: MutexGuard<'a, T>,
    owner: &'a Mutex<Option<ThreadId>>,
}

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), owner: Mutex::new(None) }
    }

    /// Locks the value, and releases the interpreter lock while another thread holds it. Jobs on the thread pool must
    /// not lock: a thread that waits for a part of its work may take up another job, which would wait for that thread.
    pub fn lock(&self, py: Python<'_>) -> PyResult<Access<'_, T>> {
        let this = std::thread::current().id();
        if *owned(&self.owner) == Some(this) {
            return Err(PyRuntimeError::new_err("the stream is at work on this thread"));
        }
        let value = self.value.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        *owned(&self.owner) = Some(this);
        Ok(Access { value, owner: &self.owner })
    }
}

fn owned(owner: &Mutex<Option<ThreadId>>) -> MutexGuard<'_, Option<ThreadId>> {
    owner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Deref for Access<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Access<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Access<'_, T> {
    fn drop(&mut self) {
        // The value itself is released after this.
        *owned(self.owner) = None;
    }
}
