//! Forward differentiation: numbers that carry their gradient.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// Numbers that models compute with.
pub trait Scalar:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    fn constant(value: f64) -> Self;
    fn value(self) -> f64;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;

    fn square(self) -> Self {
        self * self
    }

    fn scale(self, factor: f64) -> Self {
        self * Self::constant(factor)
    }

    /// `ln(1 + exp(x))`.
    fn softplus(self) -> Self {
        if self.value() > 0.0 {
            self + ((-self).exp() + Self::constant(1.0)).ln()
        } else {
            (self.exp() + Self::constant(1.0)).ln()
        }
    }
}

impl Scalar for f64 {
    fn constant(value: f64) -> Self {
        value
    }
    fn value(self) -> f64 {
        self
    }
    fn exp(self) -> Self {
        self.exp()
    }
    fn ln(self) -> Self {
        self.ln()
    }
    fn sqrt(self) -> Self {
        self.sqrt()
    }
}

/// A value and its derivatives by `N` coordinates.
#[derive(Clone, Copy)]
pub struct Dual<const N: usize> {
    value: f64,
    slope: [f64; N],
}

impl<const N: usize> Dual<N> {
    pub fn coordinate(value: f64, index: usize) -> Self {
        let mut slope = [0.0; N];
        slope[index] = 1.0;
        Self { value, slope }
    }

    pub fn slope(&self) -> &[f64; N] {
        &self.slope
    }

    fn chain(self, value: f64, slope: f64) -> Self {
        Self { value, slope: self.slope.map(|s| s * slope) }
    }

    fn join(self, other: Self, value: f64, [a, b]: [f64; 2]) -> Self {
        let mut slope = [0.0; N];
        for i in 0..N {
            slope[i] = a * self.slope[i] + b * other.slope[i];
        }
        Self { value, slope }
    }
}

impl<const N: usize> Scalar for Dual<N> {
    fn constant(value: f64) -> Self {
        Self { value, slope: [0.0; N] }
    }
    fn value(self) -> f64 {
        self.value
    }
    fn exp(self) -> Self {
        let value = self.value.exp();
        self.chain(value, value)
    }
    fn ln(self) -> Self {
        self.chain(self.value.ln(), 1.0 / self.value)
    }
    fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        self.chain(value, 0.5 / value)
    }
    fn scale(self, factor: f64) -> Self {
        self.chain(self.value * factor, factor)
    }
}

impl<const N: usize> Add for Dual<N> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.join(other, self.value + other.value, [1.0, 1.0])
    }
}

impl<const N: usize> Sub for Dual<N> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.join(other, self.value - other.value, [1.0, -1.0])
    }
}

impl<const N: usize> Mul for Dual<N> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        self.join(other, self.value * other.value, [other.value, self.value])
    }
}

impl<const N: usize> Div for Dual<N> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        self.join(other, value, [1.0 / other.value, -value / other.value])
    }
}

impl<const N: usize> Neg for Dual<N> {
    type Output = Self;
    fn neg(self) -> Self {
        self.chain(-self.value, -1.0)
    }
}
