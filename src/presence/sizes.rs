//! Sizes that bands, network and file share.

/// Number of bands up to 8 kHz.
pub const BANDS: usize = 160;
/// Features of a band in a frame.
pub(super) const FEATURES: usize = 3;
/// Neighbouring bands that share a place.
pub(super) const GROUP: usize = 5;
/// Successive frames that share a place.
pub(super) const PAIR: usize = 2;
/// Places of a row.
pub(super) const PLACES: usize = BANDS / GROUP;
