//! The positive stable law of the impulse variables.

#[cfg(test)]
mod tests;

use super::{ParameterError, checked};
use crate::kernels::vector::{Philox, exp, fill, ln, sin_pi, uniform};
use rand::Rng;
use rand_distr::Distribution;

/// The positive stable law with Laplace transform `E exp(-s A) = exp(-s^a)`, `0 < a <= 1`.
///
/// These are the impulse variables of the model, with `a = alpha / 2`. Draws follow Kanter's form
/// of the method of Chambers, Mallows and Stuck (Kanter, "Stable densities under change of scale
/// and total variation inequalities", Ann. Probab. 1975): with U uniform on (0, pi) and E unit
/// exponential,
///
/// `A = sin(aU) / sin(U)^(1/a) * (sin((1-a)U) / E)^((1-a)/a)`,
///
/// computed as the exponential of
/// `ln(sin(aU) / sin(U)) + (1-a)/a ln(sin((1-a)U) / (E sin(U)))` and clamped to the positive
/// normal numbers. At a = 1/2 this is Lévy's law, 1 / (4 Gamma(1/2, 1)); at a = 1 it is the
/// constant 1.
///
/// ```
/// use alphamf::{random::SeedTree, stable::PositiveStable};
/// use rand_distr::Distribution;
/// # fn main() -> Result<(), alphamf::stable::ParameterError> {
/// let law = PositiveStable::new(0.6)?;
/// let mut rng = SeedTree::new(7).rng(0);
/// let one: f64 = law.sample(&mut rng);
/// let mut many = [0.0_f32; 1000];
/// law.fill(&mut rng, &mut many);
/// assert!(one > 0.0 && many.iter().all(|&a| a > 0.0 && a.is_finite()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositiveStable {
    a: f64,
    form: Form,
}

/// Algorithm of a draw in single precision.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// Kanter's form with index `a` and `r = (1 - a) / a`.
    General { a: f32, r: f32 },
    /// a = 1/2.
    Levy,
    /// a = 1.
    One,
}

impl PositiveStable {
    /// The law of index `alpha_half`, half the characteristic exponent of the stable law whose
    /// variance it modulates.
    ///
    /// # Errors
    /// If `alpha_half` is not in (0, 1].
    pub fn new(alpha_half: f64) -> Result<Self, ParameterError> {
        let a =
            checked("alpha / 2", alpha_half, alpha_half > 0.0 && alpha_half <= 1.0, "0 < alpha / 2 <= 1")?;
        let form = if a as f32 == 1.0 {
            Form::One
        } else if a == 0.5 {
            Form::Levy
        } else {
            Form::General { a: a as f32, r: ((1.0 - a) / a) as f32 }
        };
        Ok(Self { a, form })
    }

    /// The index a, half the characteristic exponent alpha.
    #[must_use]
    pub fn alpha_half(&self) -> f64 {
        self.a
    }

    /// Fills `out` with independent draws, many times faster than single draws.
    ///
    /// The draws depend on the next 128 bits of `rng` and are identical on every CPU.
    pub fn fill<R: Rng + ?Sized>(&self, rng: &mut R, out: &mut [f32]) {
        fill_form(self.form, Philox::from_rng(rng), out);
    }
}

impl Distribution<f32> for PositiveStable {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f32 {
        match self.form {
            Form::General { a, r } => kanter(a, r, rng.next_u32(), rng.next_u32()),
            Form::Levy => levy(rng.next_u32(), rng.next_u32()),
            Form::One => 1.0,
        }
    }
}

impl Distribution<f64> for PositiveStable {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        if self.a == 1.0 {
            return 1.0;
        }
        // An offset of half a step excludes 0 and 1.
        let mut uniform = || ((rng.next_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
        // As in single precision (see [`kanter`]): U = pi e and d = 1 - e.
        let d = uniform();
        let e = 1.0 - d;
        let (a, b) = (self.a, 1.0 - self.a);
        let sin_pi = |x: f64, one_minus_x: f64| libm::sin(std::f64::consts::PI * x.min(one_minus_x));
        let sin_u = sin_pi(e, d);
        let sin_au = sin_pi(a * e, b + a * d);
        let sin_bu = sin_pi(b * e, a + b * d);
        let exponential = -libm::log(uniform());
        let ln = libm::log(sin_au / sin_u) + b / a * libm::log(sin_bu / (sin_u * exponential));
        libm::exp(ln).clamp(f64::MIN_POSITIVE, f64::MAX)
    }
}

/// Fills `out` with draws of the law `form`; draw i depends only on the sequence and on i.
fn fill_form(form: Form, bits: Philox, out: &mut [f32]) {
    match form {
        Form::General { a, r } => fill(
            bits,
            out,
            #[inline(always)]
            |u, v| kanter(a, r, u, v),
        ),
        Form::Levy => fill(bits, out, levy),
        Form::One => out.fill(1.0),
    }
}

/// Kanter's draw (see [`PositiveStable`]) from two words of random bits, `r = (1 - a) / a`.
#[inline(always)]
fn kanter(a: f32, r: f32, u: u32, v: u32) -> f32 {
    // The angle is U = pi e. d = 1 - e has full relative precision where the draw is largest. The sine's argument
    // is the smaller, more accurate one of x and 1 - x, as sin(pi x) = sin(pi (1 - x)).
    let d = uniform(u);
    let e = 1.0 - d;
    let b = 1.0 - a;
    let smaller = |x: f32, y: f32| if x < y { x } else { y };
    let sin_u = sin_pi(smaller(e, d));
    let sin_au = sin_pi(smaller(a * e, b + a * d));
    let sin_bu = sin_pi(smaller(b * e, a + b * d));
    exp(ln(sin_au / sin_u) + r * ln(sin_bu / (sin_u * exponential(v))))
}

/// The closed form at a = 1/2: `1 / (4 E cos^2(U/2))`, one over twice a squared normal.
#[inline(always)]
fn levy(u: u32, v: u32) -> f32 {
    // cos(U/2) = sin(pi d / 2) with U = pi (1 - d).
    let s = sin_pi(0.5 * uniform(u));
    0.25 / (exponential(v) * (s * s))
}

/// A unit exponential variable, at most 22.2.
#[inline(always)]
fn exponential(bits: u32) -> f32 {
    -ln(uniform(bits))
}
