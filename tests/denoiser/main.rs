//! Guarantees of the library, tested in one program: a program per file would compile and link the library each time.

mod array;
mod channels;
mod counting;
mod cries;
mod gaps;
mod golden;
mod impulses;
mod levels;
mod live;
mod live_allocation;
mod properties;
mod samplers;
mod shared;
mod short;
mod steady_noise;
mod tones;
mod transcription;
mod turns;
mod wide_band;
