//! The program as users run it: input and output files, one-line errors and exit codes.

#[path = "../shared/mod.rs"]
mod shared;

mod denoising;
mod folders;
mod refusals;
mod reports;
mod streams;

/// Scale-invariant signal-to-distortion ratio, dB.
fn si_sdr(reference: &[f32], estimate: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let scale = dot(reference, estimate) / dot(reference, reference);
    let target = scale * scale * dot(reference, reference);
    10.0 * (target / (dot(estimate, estimate) - target)).log10()
}
