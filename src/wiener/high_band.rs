//! Attenuation of the high band by the fraction of speech that fusion removed below it, without a network for the high
//! band.

/// Attenuates the gain above the dictionary's band (`high`, bins above x frames) by the fraction of speech power that
/// fusion removed in the octave below it. Transient noise is broadband, and above the dictionary's band the model
/// depends only on the activations of speech. `before`, `after` (gain before and after fusion) and `power` cover the
/// dictionary's band (`bins` x frames).
pub(crate) fn attenuate_high_band(
    high: &mut [f32],
    before: &[f32],
    after: &[f32],
    power: &[f32],
    bins: usize,
) {
    let octave = bins / 2..bins;
    let frames = power.chunks_exact(bins).zip(before.chunks_exact(bins).zip(after.chunks_exact(bins)));
    let rows = high.len() / (before.len() / bins);
    for ((power, (before, after)), high) in frames.zip(high.chunks_exact_mut(rows)) {
        let speech = |gain: &[f32]| -> f32 { octave.clone().map(|bin| gain[bin] * power[bin]).sum() };
        let kept = (speech(after) / speech(before).max(f32::MIN_POSITIVE)).min(1.0);
        high.iter_mut().for_each(|gain| *gain *= kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_band_loses_what_fusion_removed_below() {
        // The octave is the upper two of four bins; fusion keeps a quarter of the first frame and raises the second.
        let power = [9.0, 9.0, 1.0, 3.0, 9.0, 9.0, 1.0, 1.0];
        let before = [0.5; 8];
        let after = [0.9, 0.9, 0.5, 0.0, 0.1, 0.1, 1.0, 1.0];
        let mut high = [0.8, 0.4, 0.8, 0.4];
        attenuate_high_band(&mut high, &before, &after, &power, 4);
        assert_eq!(high, [0.2, 0.1, 0.8, 0.4]);
        let mut silent = [0.8];
        attenuate_high_band(&mut silent, &[0.0; 4], &[0.0; 4], &[1.0; 4], 4);
        assert_eq!(silent, [0.0]);
    }
}
