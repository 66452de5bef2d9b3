//! Reproducible random numbers.
//!
//! One seed serves a whole run. Every consumer (a frame, a chain, a block of audio) derives its own generator from the seed
//! and its place in the work, never from the order of threads: output is bit-identical for any number of threads.

use rand::SeedableRng;
pub use rand_xoshiro::Xoshiro256PlusPlus as SeededRng;

/// Node in the tree of random generators below one seed.
///
/// ```
/// use alphamf_samplers::random::SeedTree;
/// use rand::Rng;
/// let channel = SeedTree::new(42).child(1);
/// let mut first = channel.rng(0);
/// let mut again = SeedTree::new(42).child(1).rng(0);
/// assert_eq!(first.next_u64(), again.next_u64());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedTree {
    key: u64,
}

impl SeedTree {
    /// The root of the tree for `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { key: mix(seed ^ 0x6a09_e667_f3bc_c909) }
    }

    /// The subtree for consumer number `index` below this node.
    #[must_use]
    pub fn child(&self, index: u64) -> Self {
        Self { key: mix(self.key.wrapping_add(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ mix(index)) }
    }

    /// The generator for consumer number `index` below this node.
    #[must_use]
    pub fn rng(&self, index: u64) -> SeededRng {
        SeededRng::seed_from_u64(self.child(index).key)
    }
}

/// The finaliser of SplitMix64: a bijection that spreads every input bit over the output.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use std::collections::HashSet;

    #[test]
    fn places_in_the_tree_have_distinct_streams() {
        let root = SeedTree::new(0);
        let mut seen = HashSet::new();
        for i in 0..100 {
            for j in 0..100 {
                assert!(seen.insert(root.child(i).rng(j).next_u64()));
            }
        }
        assert!(!seen.contains(&SeedTree::new(1).child(0).rng(0).next_u64()));
    }
}
