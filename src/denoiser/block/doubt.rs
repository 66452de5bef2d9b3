//! Fallback for recordings in which the speech-presence network finds no speech but the model alone does.
//!
//! The network classifies some cries and shouts as noise, and removing a voice is worse than keeping noise. If a
//! recording of a single block would become silent, a part of the model's speech estimate is kept. In a longer
//! recording this would keep the noise before the first word: the model classifies nearly half of all noises as speech.

use crate::decibels::amplitude;
use crate::wiener::sparing::kept_db;

/// Maximum ratio of speech to the remaining power in a block without speech, dB.
const NO_SPEECH_DB: f64 = -30.0;
/// Minimum ratio by the model alone at which a block may hold speech, dB. Four cries that the network missed have -2 to
/// 1 dB, half of 415 noises alone less than -3 dB.
const MIN_MODEL_SPEECH_DB: f64 = -3.0;
/// Attenuation of the speech estimate of the model alone, dB.
const ATTENUATION_DB: f64 = 12.0;

/// Whether the gain (bins x frames) removes nearly all of these powers.
pub(super) fn is_without_speech(gain: &[f32], power: &[f32]) -> bool {
    kept_db(gain.iter().zip(power)) < NO_SPEECH_DB
}

/// Raises the gain to a part of `alone`, the gain of the model alone, if that finds speech in these powers (bins x
/// frames).
pub(super) fn raise_to_model_gain(gain: &mut [f32], alone: &[f32], power: &[f32]) {
    if kept_db(alone.iter().zip(power)) > MIN_MODEL_SPEECH_DB {
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
        raise_to_model_gain(&mut gain, &[0.0, 0.2, 0.9, 0.0], &power);
        assert_eq!(gain, [0.0, 0.0, 1e-4, 0.0], "less than a third is speech");
        raise_to_model_gain(&mut gain, &[0.0, 0.8, 0.9, 0.0], &power);
        let part = libm::powf(10.0, -0.6);
        for (gain, expected) in gain.into_iter().zip([0.0, 0.8 * part, 0.9 * part, 0.0]) {
            assert!((gain - expected).abs() < 1e-6, "{gain} {expected}");
        }
    }
}
