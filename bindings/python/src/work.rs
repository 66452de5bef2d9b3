//! Long work beside Python: on threads of its own, told of on the way, ended by Ctrl-C.

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

/// How often signals are asked for, and how often progress is told at most.
const INTERVAL: Duration = Duration::from_millis(50);

/// The threads of a process: a forked child has none of its parent's, and would wait for them forever.
struct Pools {
    process: u32,
    by_size: HashMap<usize, Arc<ThreadPool>>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// The pool of so many threads, as many as there are cores if `None`.
fn pool(threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(of_parent) = pools.take_if(|pools| pools.process != process) {
        // Dropping it would ask threads to end that are not here.
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

/// Does `work` on `threads` threads, the interpreter set free. The function `progress` is called with the share that is
/// done, which `work` tells its watch. What it or a handler of signals raises ends the work and is raised.
pub fn run<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut dyn ProgressCallback) -> T + Send,
) -> PyResult<T> {
    // A function of Python's that is called by such work is on its threads already, and must not wait for them.
    if rayon::current_thread_index().is_some() {
        return Ok(py.detach(|| work(&mut ())));
    }
    let pool = pool(threads)?;
    let progress = progress.map(|progress| progress.clone().unbind());
    let ended = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    let (result, heard) = py.detach(move || {
        let mut result = None;
        let heard = pool.in_place_scope(|scope| {
            let (result, ended) = (&mut result, &ended);
            scope.spawn(move |_| {
                let mut watch = |done: f64| {
                    // Nobody listens any more once it is ended.
                    let _ = sender.send(done);
                    if ended.load(Ordering::Relaxed) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                };
                *result = Some(work(&mut watch));
            });
            let heard = listen(&receiver, progress.as_ref());
            ended.store(heard.is_err(), Ordering::Relaxed);
            heard
        });
        (result, heard)
    });
    heard?;
    result.ok_or_else(|| PyRuntimeError::new_err("the work was given up"))
}

/// Listens until the work is done, or something is raised.
fn listen(receiver: &Receiver<f64>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    let (mut asked, mut last) = (Instant::now(), None);
    loop {
        let is_done = match receiver.recv_timeout(INTERVAL) {
            Ok(done) => {
                last = Some(done);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        // Taking the interpreter for every sweep of short work would cost more than the work.
        if is_done && progress.is_none() {
            return Ok(());
        }
        if !is_done && asked.elapsed() < INTERVAL {
            continue;
        }
        asked = Instant::now();
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
