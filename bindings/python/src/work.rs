//! Long-running work: without the interpreter lock, on worker threads, with progress, cancelled by Ctrl-C.

use alphamf::ProgressCallback;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval of signal checks, and minimum interval of progress reports.
const INTERVAL: Duration = Duration::from_millis(50);

/// Thread pools of a process. A forked child has none of its parent's threads, and would wait for them forever.
struct Pools {
    process: u32,
    by_size: HashMap<usize, Arc<ThreadPool>>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// Pool of `threads` threads, or of as many as there are cores.
fn pool(threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(of_parent) = pools.take_if(|pools| pools.process != process) {
        // Dropping it would wait for threads that do not exist in this process.
        std::mem::forget(of_parent);
    }
    let pools = pools.get_or_insert_with(|| Pools { process, by_size: HashMap::new() });
    let size = threads.unwrap_or(0);
    if let Some(pool) = pools.by_size.get(&size) {
        return Ok(Arc::clone(pool));
    }
    let built = ThreadPoolBuilder::new().num_threads(size).build();
    let pool = Arc::new(built.map_err(|error| PyRuntimeError::new_err(error.to_string()))?);
    pools.by_size.insert(size, Arc::clone(&pool));
    Ok(pool)
}

/// Runs `work` on `threads` threads without the interpreter lock. `progress` is called with the values that `work` reports.
/// An exception of `progress` or of a signal handler cancels the work and is raised.
pub fn run<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut dyn ProgressCallback) -> T + Send,
) -> PyResult<T> {
    // A Python function called by such work runs on its threads already, and must not wait for them.
    if rayon::current_thread_index().is_some() {
        return Ok(py.detach(|| work(&mut ())));
    }
    let pool = pool(threads)?;
    let progress = progress.map(|progress| progress.clone().unbind());
    let cancelled = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    let (result, outcome) = py.detach(move || {
        let mut result = None;
        let outcome = pool.in_place_scope(|scope| {
            let (result, cancelled) = (&mut result, &cancelled);
            scope.spawn(move |_| {
                let mut report = |done: f64| {
                    // There is no receiver after cancellation.
                    let _ = sender.send(done);
                    if cancelled.load(Ordering::Relaxed) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                };
                *result = Some(work(&mut report));
            });
            let outcome = forward(&receiver, progress.as_ref());
            cancelled.store(outcome.is_err(), Ordering::Relaxed);
            outcome
        });
        (result, outcome)
    });
    outcome?;
    result.ok_or_else(|| PyRuntimeError::new_err("internal error: the work did not finish"))
}

/// Forwards progress until the work is done or an exception is raised.
fn forward(receiver: &Receiver<f64>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    let (mut checked, mut last) = (Instant::now(), None);
    loop {
        let is_done = match receiver.recv_timeout(INTERVAL) {
            Ok(done) => {
                last = Some(done);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        // Taking the interpreter lock for every report would cost more than short work does.
        if is_done && progress.is_none() {
            return Ok(());
        }
        if !is_done && checked.elapsed() < INTERVAL {
            continue;
        }
        checked = Instant::now();
        Python::attach(|py| {
            py.check_signals()?;
            if let (Some(progress), Some(done)) = (progress, last.take()) {
                progress.call1(py, (done,))?;
            }
            Ok::<_, PyErr>(())
        })?;
        if is_done {
            return Ok(());
        }
    }
}
