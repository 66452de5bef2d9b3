//! Coordinates of a factor other than its logarithm.

use super::super::counters::SamplerCounters;
use super::super::settings::{Positivity, SamplingSettings};
use crate::samplers::{Mirrored, Sampler, SamplerKind, Scaled, Step, Target};

/// Coordinates in which a sampler moves a factor.
pub(in crate::inference) enum Coordinates {
    /// Signed multiples of these units, mirrored at zero (`hamcmc-2016`, section 4.2).
    Mirrored(Vec<f32>),
    /// The factor itself, for a sampler that respects the half line.
    Plain,
}

impl Coordinates {
    /// The coordinates that the settings select for a factor (dimension x blocks), whose rows below `split` are speech
    /// and the others noise; `None` for logarithms.
    pub(in crate::inference) fn new(
        settings: &SamplingSettings,
        factor: &[f32],
        dimension: usize,
        split: usize,
    ) -> Option<Self> {
        match (settings.sampler, settings.positivity) {
            (SamplerKind::Newtonian, _) => Some(Self::Plain),
            (_, Positivity::Log) => None,
            (_, Positivity::Mirrored) => Some(Self::Mirrored(units(factor, dimension, split))),
        }
    }

    /// Maps the factor to these coordinates.
    pub(in crate::inference) fn map(&self, factor: &mut [f32]) {
        match self {
            Self::Mirrored(units) => factor.iter_mut().zip(units).for_each(|(x, unit)| *x /= unit),
            Self::Plain => (),
        }
    }

    /// Maps these coordinates to the factor.
    pub(in crate::inference) fn unmap(&self, theta: &mut [f32]) {
        match self {
            Self::Mirrored(units) => {
                Mirrored::<(), f32>::fold(theta);
                theta.iter_mut().zip(units).for_each(|(x, unit)| *x *= unit);
            }
            Self::Plain => (),
        }
    }

    /// Runs one step of the sampler.
    pub(in crate::inference) fn step(
        &self,
        sampler: &mut dyn Sampler<f32>,
        mut target: impl Target<f32>,
        theta: &mut [f32],
        moves: &mut SamplerCounters,
    ) -> Step {
        match self {
            Self::Mirrored(units) => {
                let before = sampler.next_start(theta).to_vec();
                let step = sampler.step(&mut Mirrored::new(Scaled::new(target, units)), theta);
                moves.count_mirrored(&before, theta);
                step
            }
            Self::Plain => sampler.step(&mut target, theta),
        }
    }
}

/// The units of a factor (dimension x blocks): per block the mean of the start over the rows below `split`, and over the
/// others. Levels differ by orders of magnitude between frames and between bins.
fn units(start: &[f32], dimension: usize, split: usize) -> Vec<f32> {
    let mut units = start.to_vec();
    for column in units.chunks_exact_mut(dimension) {
        let (speech, noise) = column.split_at_mut(split);
        for rows in [speech, noise] {
            let mean = rows.iter().sum::<f32>() / rows.len() as f32;
            rows.fill(mean.max(1e-9));
        }
    }
    units
}
