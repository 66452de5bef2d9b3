//! Factors in other coordinates than their logarithms.

use super::super::counters::SamplerCounters;
use super::super::settings::{Positivity, SamplingSettings};
use crate::samplers::{Mirrored, Sampler, SamplerKind, Scaled, Step, Target};

/// What a sampler sees of a factor.
pub(in crate::inference) enum Coordinates {
    /// Signed multiples of these units, mirrored at zero (`hamcmc-2016`, section 4.2).
    Mirrored(Vec<f32>),
    /// The factor as it is, for a sampler that knows the half line.
    Plain,
}

impl Coordinates {
    /// Those that the settings ask for, for a factor (dimension x blocks) whose rows below `split` are of one kind and
    /// the others of another; none for logarithms.
    pub(in crate::inference) fn new(
        settings: &SamplingSettings,
        factor: &[f32],
        dimension: usize,
        split: usize,
    ) -> Option<Self> {
        match (settings.sampler, settings.positivity) {
            (SamplerKind::Newtonian, _) => Some(Self::Plain),
            (_, Positivity::Log) => None,
            (_, Positivity::Mirrored) if settings.literal.one_unit => {
                Some(Self::Mirrored(vec![1.0; factor.len()]))
            }
            (_, Positivity::Mirrored) => Some(Self::Mirrored(units(factor, dimension, split))),
        }
    }

    /// Turns the factor into these coordinates.
    pub(in crate::inference) fn map(&self, factor: &mut [f32]) {
        match self {
            Self::Mirrored(units) => factor.iter_mut().zip(units).for_each(|(x, unit)| *x /= unit),
            Self::Plain => (),
        }
    }

    /// Turns these coordinates into the factor.
    pub(in crate::inference) fn unmap(&self, theta: &mut [f32]) {
        match self {
            Self::Mirrored(units) => {
                Mirrored::<(), f32>::fold(theta);
                theta.iter_mut().zip(units).for_each(|(x, unit)| *x *= unit);
            }
            Self::Plain => (),
        }
    }

    /// One step of the sampler.
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

/// The units of a factor (dimension x blocks): in every block the mean of the start over the rows below `split`,
/// and over the others. Levels differ by orders of magnitude from frame to frame and from bin to bin.
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
