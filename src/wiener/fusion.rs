//! Fusion of the posterior-mean gain with the log odds of speech presence.

use crate::kernels::vector;

/// Weight of the network's log odds in the pool, 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolWeight {
    /// Where the posterior has the higher log odds.
    more: f32,
    /// Where the posterior has the lower log odds.
    less: f32,
}

/// Weight of the network's log odds in the pool; tuned on 30 held-out mixtures (eval/results).
pub(crate) const WEIGHT: PoolWeight = PoolWeight { more: 0.9, less: 0.9 };
/// The weight for non-stationary noise, whose estimate starts low, from the network's log odds. The model then
/// overestimates speech in pauses, so the network counts more there; between harmonics, which the network's bands do
/// not resolve, the model counts more.
pub(crate) const NONSTATIONARY_WEIGHT: PoolWeight = PoolWeight { more: 0.95, less: 0.9 };
/// The weight above the dictionary's band, where the network is small and misses fricatives that the model detects
/// (tuned on 90 mixtures, eval/results/full-band.md); and above the causal network's band, where the log odds of its
/// highest band apply.
pub(crate) const HIGH_BAND_WEIGHT: PoolWeight = PoolWeight { more: 0.8, less: 0.8 };

/// Logarithmic opinion pool (Genest and Zidek 1986, section 3) of the posterior and the network: the log odds of the
/// gain (bins x frames) become the weighted mean of its own and of `log_odds` (bins x frames). The pooled gain is
/// multiplied by the probability of speech near each frame (`presence`, frames), which removes peaks of steady noise
/// that the model attributes to speech.
pub(crate) fn pool_log_odds(gain: &mut [f32], log_odds: &[f32], presence: &[f32], weight: PoolWeight) {
    let bins = gain.len() / presence.len().max(1);
    vector::dispatch(
        #[inline(always)]
        || {
            let frames = gain.chunks_exact_mut(bins).zip(log_odds.chunks_exact(bins));
            for ((gain, log_odds), presence) in frames.zip(presence) {
                for (gain, log_odds) in gain.iter_mut().zip(log_odds) {
                    *gain = presence * pooled_gain(*gain, *log_odds, weight);
                }
            }
        },
    );
}

/// Like [`pool_log_odds`], with the network's weight changed by `more` in log odds, and `shift` added to the pooled log odds;
/// both bins x frames.
pub(crate) fn pool_changed(
    gain: &mut [f32],
    log_odds: &[f32],
    presence: &[f32],
    weight: PoolWeight,
    more: &[f32],
    shift: &[f32],
) {
    let bins = gain.len() / presence.len().max(1);
    let [more_than, less_than] = [weight.more, weight.less].map(vector::log_odds);
    vector::dispatch(
        #[inline(always)]
        || {
            let changes = more.chunks_exact(bins).zip(shift.chunks_exact(bins));
            let frames = gain.chunks_exact_mut(bins).zip(log_odds.chunks_exact(bins)).zip(changes);
            for (((gain, log_odds), (more, shift)), presence) in frames.zip(presence) {
                let values = log_odds.iter().zip(more).zip(shift);
                for (gain, ((log_odds, more), shift)) in gain.iter_mut().zip(values) {
                    let own = vector::log_odds(*gain);
                    let base = if own > *log_odds { more_than } else { less_than };
                    let weight = vector::logistic(base + more);
                    *gain = presence * vector::logistic(own + weight * (log_odds - own) + shift);
                }
            }
        },
    );
}

/// Pools the gain of one frame with log odds of speech, per bin, without the probability of speech near the frame.
pub(crate) fn pool_frame(gain: &mut [f32], log_odds: &[f32], weight: PoolWeight) {
    vector::dispatch(
        #[inline(always)]
        || {
            for (gain, log_odds) in gain.iter_mut().zip(log_odds) {
                *gain = pooled_gain(*gain, *log_odds, weight);
            }
        },
    );
}

/// The gain whose log odds are the weighted mean of those of `gain` and of `log_odds`.
#[inline(always)]
fn pooled_gain(gain: f32, log_odds: f32, weight: PoolWeight) -> f32 {
    let own = vector::log_odds(gain);
    let weight = if own > log_odds { weight.more } else { weight.less };
    vector::logistic(own + weight * (log_odds - own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_odds_are_averaged_by_the_weight_of_their_side() {
        let odds = |gain: f32| (gain / (1.0 - gain)).ln();
        for (gain, log_odds, weight) in [(0.5, 2.0, 0.9), (0.5, -2.0, 0.95), (0.2, 0.0, 0.9)] {
            let pooled = pooled_gain(gain, log_odds, NONSTATIONARY_WEIGHT);
            let expected = odds(gain) + weight * (log_odds - odds(gain));
            assert!((odds(pooled) - expected).abs() < 1e-3, "{pooled}");
        }
        let mut frame = [0.5, 0.5];
        pool_frame(&mut frame, &[0.0, 2.0], WEIGHT);
        assert!((frame[0] - 0.5).abs() < 1e-5 && (odds(frame[1]) - 1.8).abs() < 1e-3, "{frame:?}");
        // Zero changes have no effect; a larger weight moves the gain towards the network, a shift adds to the log
        // odds.
        let mut changed = [[0.5, 0.5]; 2];
        pool_log_odds(&mut changed[0], &[2.0, -2.0], &[1.0], NONSTATIONARY_WEIGHT);
        pool_changed(&mut changed[1], &[2.0, -2.0], &[1.0], NONSTATIONARY_WEIGHT, &[0.0; 2], &[0.0; 2]);
        assert!(changed[0].iter().zip(&changed[1]).all(|(a, b)| (a - b).abs() < 1e-5), "{changed:?}");
        let mut changed = [0.5, 0.5];
        pool_changed(&mut changed, &[2.0, 0.0], &[1.0], WEIGHT, &[20.0, 0.0], &[0.0, 1.0]);
        let expected = [2.0_f32, 1.0].map(vector::logistic);
        assert!(changed.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3), "{changed:?}");
        // Frames without speech nearby have no gain.
        let mut gain = [0.5, 0.5];
        pool_log_odds(&mut gain, &[0.0, 0.0], &[1.0, 0.0], WEIGHT);
        assert!((gain[0] - 0.5).abs() < 1e-5 && gain[1] == 0.0, "{gain:?}");
    }
}
