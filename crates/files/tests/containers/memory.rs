//! An allocator that counts the bytes in use and their peak.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static USED_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The system allocator, with counters.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK_BYTES.fetch_max(USED_BYTES.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        PEAK_BYTES.fetch_max(USED_BYTES.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Resets the peak, and returns the bytes in use: the baseline of [`most_since`].
pub fn start() -> usize {
    let used = USED_BYTES.load(Relaxed);
    PEAK_BYTES.store(used, Relaxed);
    used
}

/// Returns the peak of the bytes in use since [`start`], minus the baseline that it returned.
pub fn most_since(start: usize) -> usize {
    PEAK_BYTES.load(Relaxed).saturating_sub(start)
}
