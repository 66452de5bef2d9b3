//! Learned noise, which the audio thread learns and the main thread saves with the project.

use crate::parameters::ForeignState;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Bins at 192 kHz, the highest sample rate.
const MAX_BINS: usize = 6145;

const RATE_KEY: &str = "noise_rate";
const POWER_KEY: &str = "noise";

/// Mean power per bin, at a sample rate (Hz); empty if nothing was learned.
struct Learned {
    sample_rate: u32,
    power: Vec<f32>,
}

/// The last learned noise. Methods for the audio thread neither wait nor allocate.
pub struct Noise {
    learned: Mutex<Learned>,
    /// Whether noise was loaded that the audio thread has not taken yet.
    loaded: AtomicBool,
}

/// Validated noise of a saved state.
pub struct Saved(Learned);

impl Default for Noise {
    fn default() -> Self {
        let learned = Learned { sample_rate: 0, power: Vec::with_capacity(MAX_BINS) };
        Self { learned: Mutex::new(learned), loaded: AtomicBool::new(false) }
    }
}

impl Noise {
    /// Locks the noise on the main thread. Waits for the audio thread, which holds the lock only during a copy.
    fn lock(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the noise, on the main thread.
    pub fn store(&self, sample_rate: u32, power: Option<&[f32]>) {
        self.lock().replace(sample_rate, power);
    }

    /// Like [`store`](Self::store), on the audio thread; false if the main thread holds the lock.
    pub fn try_store(&self, sample_rate: u32, power: Option<&[f32]>) -> bool {
        self.try_with(|learned| learned.replace(sample_rate, power)).is_some()
    }

    /// Passes the noise of a sample rate to `take`, on the main thread; `None` if there is none.
    pub fn read_for(&self, sample_rate: u32, take: impl FnOnce(Option<&[f32]>)) {
        self.loaded.store(false, Ordering::Relaxed);
        take(self.lock().of(sample_rate));
    }

    /// Like [`read_for`](Self::read_for), on the audio thread, if noise was loaded meanwhile and the main thread does not hold
    /// the lock. Returns whether it was passed.
    pub fn take_if_loaded(&self, sample_rate: u32, take: impl FnOnce(Option<&[f32]>)) -> bool {
        if !self.loaded.swap(false, Ordering::Acquire) {
            return false;
        }
        let given = self.try_with(|learned| take(learned.of(sample_rate))).is_some();
        if !given {
            self.loaded.store(true, Ordering::Release);
        }
        given
    }

    fn try_with<T>(&self, work: impl FnOnce(&mut Learned) -> T) -> Option<T> {
        match self.learned.try_lock() {
            Ok(mut learned) => Some(work(&mut learned)),
            Err(TryLockError::Poisoned(learned)) => Some(work(&mut learned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Lines of the noise for a saved state: one per value, none without noise.
    pub fn state(&self) -> String {
        let learned = self.lock();
        let mut lines = String::new();
        if !learned.power.is_empty() {
            // Writing to a string cannot fail.
            writeln!(lines, "{RATE_KEY} {}", learned.sample_rate).ok();
            for power in &learned.power {
                writeln!(lines, "{POWER_KEY} {power:e}").ok();
            }
        }
        lines
    }

    /// Restores the noise of a saved state.
    pub fn restore(&self, Saved(saved): Saved) {
        self.lock().replace(saved.sample_rate, Some(&saved.power));
        self.loaded.store(true, Ordering::Release);
    }
}

impl Learned {
    fn of(&self, sample_rate: u32) -> Option<&[f32]> {
        (self.sample_rate == sample_rate && !self.power.is_empty()).then_some(&self.power)
    }

    fn replace(&mut self, sample_rate: u32, power: Option<&[f32]>) {
        self.sample_rate = sample_rate;
        self.power.clear();
        self.power.extend_from_slice(power.unwrap_or_default());
    }
}

impl Saved {
    /// Reads a saved state, without its first line.
    pub fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Self, ForeignState> {
        let mut learned = Learned { sample_rate: 0, power: Vec::new() };
        for line in lines {
            let Some((key, value)) = line.split_once(' ') else { continue };
            let foreign = || ForeignState::of(line);
            match key {
                RATE_KEY => learned.sample_rate = value.parse().map_err(|_| foreign())?,
                POWER_KEY if learned.power.len() < MAX_BINS => {
                    let power: f32 = value.parse().map_err(|_| foreign())?;
                    learned.power.push(if (0.0..=f32::MAX).contains(&power) {
                        power
                    } else {
                        return Err(foreign());
                    });
                }
                POWER_KEY => return Err(foreign()),
                _ => {}
            }
        }
        Ok(Self(learned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_as_it_was_saved() {
        let (noise, other) = (Noise::default(), Noise::default());
        assert_eq!(noise.state(), "");
        let power = [1.5e-7, 0.0, f32::MIN_POSITIVE, 0.1 + 0.2];
        noise.store(48_000, Some(&power));
        let state = noise.state();
        assert!(state.starts_with("noise_rate 48000\nnoise 1.5e-7\n"), "{state}");
        other.restore(Saved::read(state.lines()).unwrap());
        other.read_for(44_100, |learned| assert_eq!(learned, None));
        other.read_for(48_000, |learned| assert_eq!(learned, Some(&power[..])));
        for wrong in ["noise_rate x", "noise nan", "noise -1", "noise inf", "noise"] {
            assert_eq!(Saved::read([wrong].into_iter()).is_err(), wrong != "noise", "{wrong}");
        }
        assert!(Saved::read(std::iter::repeat_n("noise 1", MAX_BINS + 1)).is_err());
    }

    /// Loaded noise is taken once, and not while the main thread holds the lock.
    #[test]
    fn the_audio_thread_takes_what_was_loaded_without_waiting() {
        let noise = Noise::default();
        assert!(!noise.take_if_loaded(8_000, |_| panic!("nothing was loaded")));
        noise.restore(Saved::read("noise_rate 8000\nnoise 2".lines()).unwrap());
        {
            let _held = noise.lock();
            assert!(!noise.take_if_loaded(8_000, |_| panic!("it is held")));
            assert!(!noise.try_store(8_000, None));
        }
        assert!(noise.take_if_loaded(8_000, |power| assert_eq!(power, Some(&[2.0][..]))));
        assert!(!noise.take_if_loaded(8_000, |_| panic!("it was taken")));
        assert!(noise.try_store(8_000, None));
        noise.read_for(8_000, |power| assert_eq!(power, None));
    }
}
