//! Recordings in which the speech-presence network finds no speech and the model alone does.
//!
//! The network takes some cries and shouts for noise, and a removed voice is worse than noise that stays. A recording that would
//! be silent keeps a part of what the model alone takes for speech, if it is a single block. In a longer one the model would leave
//! the noise before the first word: it takes nearly half of all noises for speech.

use crate::decibels::amplitude;
use crate::wiener::sparing::kept_db;

/// Below this ratio of speech to the rest a block has no speech, dB.
const NO_SPEECH_DB: f64 = -30.0;
/// Above this ratio by the model alone it may have some, dB. Four cries that the network missed have -2 to 1 dB, half of 415 noises
/// alone less than -3 dB.
const DOUBT_DB: f64 = -3.0;
/// Attenuation of what the model alone takes for speech, dB.
const ATTENUATION_DB: f64 = 12.0;

/// Whether the gain (bins x frames) removes nearly all of these powers.
pub(super) fn is_without_speech(gain: &[f32], power: &[f32]) -> bool {
    kept_db(gain.iter().zip(power)) < NO_SPEECH_DB
}

/// Raises the gain to a part of that of the model alone, if that finds speech in these powers (bins x frames).
pub(super) fn keep_a_part(gain: &mut [f32], alone: &[f32], power: &[f32]) {
    if kept_db(alone.iter().zip(power)) > DOUBT_DB {
        let part = amplitude(-ATTENUATION_DB);
        gain.iter_mut().zip(alone).for_each(|(gain, alone)| *gain = gain.max(part * alone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_kept_where_the_model_alone_finds_speech() {
        let power = [1.0, 1.0, 1.0, 1.0];
        assert!(is_without_speech(&[0.0, 0.0, 1e-4, 0.0], &power));
        assert!(!is_without_speech(&[0.0, 0.0, 0.1, 0.0], &power));
        let mut gain = [0.0, 0.0, 1e-4, 0.0];
        keep_a_part(&mut gain, &[0.0, 0.2, 0.9, 0.0], &power);
        assert_eq!(gain, [0.0, 0.0, 1e-4, 0.0], "less than a third is speech");
        keep_a_part(&mut gain, &[0.0, 0.8, 0.9, 0.0], &power);
        let part = libm::powf(10.0, -0.6);
        for (gain, expected) in gain.into_iter().zip([0.0, 0.8 * part, 0.9 * part, 0.0]) {
            assert!((gain - expected).abs() < 1e-6, "{gain} {expected}");
        }
    }
}
