//! An allocator that counts the bytes that are in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static USED_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK_BYTES.fetch_max(USED_BYTES.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        PEAK_BYTES.fetch_max(USED_BYTES.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as of the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as of the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes in use, from which [`most_since`] counts.
pub fn start() -> usize {
    let used = USED_BYTES.load(Relaxed);
    PEAK_BYTES.store(used, Relaxed);
    used
}

/// The most bytes in use beyond those since the start.
pub fn most_since(start: usize) -> usize {
    PEAK_BYTES.load(Relaxed).saturating_sub(start)
}
