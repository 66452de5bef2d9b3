//! Parallel loops: rayon's, or sequential without the feature `rayon`. No result depends on the order of execution.

#[cfg(not(feature = "rayon"))]
pub(crate) use alone::*;
#[cfg(feature = "rayon")]
pub(crate) use rayon::{join, prelude::*};

/// The part of rayon's interface used here, implemented by iterators of the standard library.
#[cfg(not(feature = "rayon"))]
mod alone {
    use std::slice::{Chunks, ChunksMut, Iter, IterMut};

    pub(crate) fn join<A, B>(first: impl FnOnce() -> A, second: impl FnOnce() -> B) -> (A, B) {
        (first(), second())
    }

    pub(crate) trait IntoParallel: IntoIterator + Sized {
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoParallel for I {}

    pub(crate) trait ParallelSlice<T> {
        fn par_iter(&self) -> Iter<'_, T>;
        fn par_iter_mut(&mut self) -> IterMut<'_, T>;
        fn par_chunks(&self, size: usize) -> Chunks<'_, T>;
        fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T>;
    }

    impl<T> ParallelSlice<T> for [T] {
        fn par_iter(&self) -> Iter<'_, T> {
            self.iter()
        }
        fn par_iter_mut(&mut self) -> IterMut<'_, T> {
            self.iter_mut()
        }
        fn par_chunks(&self, size: usize) -> Chunks<'_, T> {
            self.chunks(size)
        }
        fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T> {
            self.chunks_mut(size)
        }
    }

    pub(crate) trait ParallelIterator: Iterator + Sized {
        fn with_max_len(self, _: usize) -> Self {
            self
        }
        fn for_each_init<S>(self, init: impl Fn() -> S, each: impl Fn(&mut S, Self::Item)) {
            let mut state = init();
            self.for_each(|item| each(&mut state, item));
        }
        fn map_init<S, R>(
            self,
            init: impl Fn() -> S,
            each: impl Fn(&mut S, Self::Item) -> R,
        ) -> impl Iterator<Item = R> {
            let mut state = init();
            self.map(move |item| each(&mut state, item))
        }
        fn flat_map_iter<J: IntoIterator>(
            self,
            each: impl Fn(Self::Item) -> J,
        ) -> impl Iterator<Item = J::Item> {
            self.flat_map(each)
        }
    }

    impl<I: Iterator> ParallelIterator for I {}
}
