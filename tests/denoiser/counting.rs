//! An allocator that counts: what must not allocate must not change the count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts what this thread asks of it.
struct Counting;

fn count() {
    COUNT.set(COUNT.get() + 1);
}

// SAFETY: all is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as of the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: as of the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as of the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// How often this thread has allocated or freed so far.
pub fn allocations() -> u64 {
    COUNT.get()
}

#[global_allocator]
static COUNTING: Counting = Counting;
