//! A counting allocator, for tests of code that must not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count of each thread's calls.
struct Counting;

fn count() {
    COUNT.set(COUNT.get() + 1);
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller meets the preconditions.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller meets the preconditions.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller meets the preconditions.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Number of allocations, reallocations and deallocations of this thread so far.
pub fn allocations() -> u64 {
    COUNT.get()
}

#[global_allocator]
static COUNTING: Counting = Counting;
