//! Dot products and sums of short vectors, and the loop over blocks.

use super::Real;

/// The dot product, summed in eight lanes: fast without reassociation, and bit-identical on every platform.
pub(super) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 8;
    let mut lanes = [T::zero(); LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    let tail: T = rest.map(|(&a, &b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().copied().sum::<T>() + tail
}

/// `to += factor * of`.
pub(super) fn add_scaled<T: Real>(to: &mut [T], factor: T, of: &[T]) {
    for (to, &of) in to.iter_mut().zip(of) {
        *to += factor * of;
    }
}

/// Calls `each(block, state, column)` for every block, in parallel if there is enough work.
///
/// Each block accesses only its own state (random stream, memory), so results do not depend on the threads.
pub(super) fn for_blocks<T: Real, S: Send>(
    states: &mut [S],
    theta: &mut [T],
    each: impl Fn(usize, &mut S, &mut [T]) + Sync,
) {
    let dimension = theta.len() / states.len();
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        // Below this number of values, the work takes less time than waking a thread.
        const WORTHWHILE: usize = 1 << 13;
        if states.len() > 1 && theta.len() >= WORTHWHILE {
            let shortest = (WORTHWHILE / 4 / dimension).max(1);
            let blocks = states.par_iter_mut().zip_eq(theta.par_chunks_exact_mut(dimension));
            blocks
                .with_min_len(shortest)
                .enumerate()
                .for_each(|(block, (state, column))| each(block, state, column));
            return;
        }
    }
    for (block, (state, column)) in states.iter_mut().zip(theta.chunks_exact_mut(dimension)).enumerate() {
        each(block, state, column);
    }
}

/// Bound on the magnitude of a coordinate; beyond it a state has diverged even if finite.
const MAX_STATE: f64 = 1e12;
/// The bound for tested moves, in single and double precision. Preconditioned states far from their target are large in
/// double precision; their squares must be finite.
const MAX_TESTED_STATE: [f64; 2] = [1e12, 1e150];

/// Whether every coordinate is finite and within bounds.
pub(super) fn is_sound<T: Real>(theta: &[T]) -> bool {
    theta.iter().all(|value| value.abs() < T::narrow(MAX_STATE))
}

/// Like [`is_sound`], for moves that an acceptance test follows.
pub(super) fn is_sound_for_test<T: Real>(theta: &[T]) -> bool {
    let is_double = T::max_value().widen() > MAX_TESTED_STATE[1];
    let limit = T::narrow(MAX_TESTED_STATE[usize::from(is_double)]);
    theta.iter().all(|value| value.abs() < limit)
}
