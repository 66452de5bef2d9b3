//! Sizes of the network's input.
//!
//! The convolutions run over places: a place is a group of [`GROUP`] neighbouring bands in a pair of successive frames.

/// Number of bands up to 8 kHz.
pub(crate) const BANDS: usize = 160;
/// Features of a band in a frame.
pub(super) const FEATURES: usize = 3;
/// Bands of a place.
pub(super) const GROUP: usize = 5;
/// Frames of a place.
pub(super) const PAIR: usize = 2;
/// Places over all bands.
pub(super) const PLACES: usize = BANDS / GROUP;
