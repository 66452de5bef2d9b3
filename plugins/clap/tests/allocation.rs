//! Nothing is allocated on the audio thread.

mod shared;

use clack_host::prelude::*;
use shared::{Change, activate, instance, sound};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting the allocations of this thread.
struct Counting;

// SAFETY: every call is forwarded unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn nothing_is_allocated_while_it_runs() {
    let entry = PluginEntry::load_from_clack::<alphamf_clap::DenoiserEntry>(c"").unwrap();
    for (id, width) in [(shared::MONO, 1), (shared::STEREO, 2)] {
        let mut plugin = instance(&entry, id);
        let mut processor = activate(&mut plugin, 48_000.0).unwrap();
        let channels: Vec<_> = (0..width).map(|n| sound(24_000, n + 1)).collect();
        let changes: Vec<_> = [
            (100, shared::GAIN_EXPONENT, 1.5),
            (5_000, shared::LEARN, 1.0),
            (9_000, shared::LEARN, 0.0),
            (9_001, shared::FLOOR, -40.0),
            (12_345, shared::MIX, 0.5),
            (20_000, shared::BYPASS, 1.0),
        ]
        .map(|(at, parameter, value)| Change { at, parameter, value })
        .into();
        let (mut before, mut count) = (0, 0);
        shared::process(&mut processor, &channels, &[1, 64, 1_000, 480], &changes, |processed| {
            if processed {
                count += COUNT.get() - before;
            }
            before = COUNT.get();
        });
        assert_eq!(count, 0, "{id}");
        plugin.deactivate(processor.stop_processing());
    }
}
