//! Transforms in little code, for who loads all of it with a page: a hundredth of rustfft's.

use std::fmt::Debug;

use realfft::num_complex::Complex;
use realfft::num_traits::Zero;
use realfft::{ComplexToReal, FftError, FftNum, RealToComplex};

/// A length with a prime factor above this is transformed by a convolution of a power of two.
const LARGEST_RADIX: usize = 50;

/// `exp(-2 pi i numerator / denominator)`.
fn root<T: FftNum>(numerator: usize, denominator: usize) -> Complex<T> {
    let angle = -2.0 * std::f64::consts::PI * numerator as f64 / denominator as f64;
    let convert = |x: f64| T::from_f64(x).unwrap_or_else(|| unreachable!("a sine is a number of any kind"));
    Complex::new(convert(angle.cos()), convert(angle.sin()))
}

fn halved<T: FftNum>() -> T {
    T::one() / (T::one() + T::one())
}

/// The product with the imaginary unit.
fn turned<T: FftNum>(x: Complex<T>) -> Complex<T> {
    Complex::new(-x.im, x.re)
}

/// The transform of complex numbers, not scaled.
struct Transform<T> {
    length: usize,
    kind: Kind<T>,
}

enum Kind<T> {
    /// Stockham's: a pass over all numbers for each radix, which leaves them in order.
    Passes { radices: Vec<usize>, roots: Vec<Complex<T>> },
    /// Bluestein's: a convolution with a chirp, by a transform of a power of two.
    Convolution { chirp: Vec<Complex<T>>, response: Vec<Complex<T>>, inner: Box<Transform<T>> },
}

impl<T: FftNum> Transform<T> {
    fn new(length: usize) -> Self {
        let mut radices = Vec::new();
        let mut left = length;
        let mut radix = 4;
        while left > 1 {
            while left.is_multiple_of(radix) {
                radices.push(radix);
                left /= radix;
            }
            radix = match radix {
                4 => 2,
                2 => 3,
                odd => odd + 2,
            };
        }
        let kind = if radices.iter().all(|&radix| radix <= LARGEST_RADIX) {
            Kind::Passes { radices, roots: (0..length).map(|k| root(k, length)).collect() }
        } else {
            let chirp: Vec<Complex<T>> =
                (0..length).map(|n| root(n * n % (2 * length), 2 * length)).collect();
            let inner = Self::new((2 * length - 1).next_power_of_two());
            let mut response = vec![Complex::zero(); inner.length];
            let scale = root::<T>(0, 1).re / T::from_usize(inner.length).unwrap_or_else(T::one);
            for (n, value) in chirp.iter().enumerate() {
                response[n] = value.conj() * scale;
                response[(inner.length - n) % inner.length] = response[n];
            }
            inner.process(&mut response, &mut vec![Complex::zero(); inner.scratch()]);
            Kind::Convolution { chirp, response, inner: Box::new(inner) }
        };
        Self { length, kind }
    }

    fn scratch(&self) -> usize {
        match &self.kind {
            Kind::Passes { .. } => self.length,
            Kind::Convolution { inner, .. } => inner.length + inner.scratch(),
        }
    }

    /// In place; `scratch` is as long as [`Transform::scratch`] says, or longer.
    fn process(&self, data: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        match &self.kind {
            Kind::Passes { radices, roots } => {
                let scratch = &mut scratch[..self.length];
                let (mut rest, mut done) = (self.length, 1);
                for (index, &radix) in radices.iter().enumerate() {
                    rest /= radix;
                    if index % 2 == 0 {
                        pass(radix, rest, done, data, scratch, roots);
                    } else {
                        pass(radix, rest, done, scratch, data, roots);
                    }
                    done *= radix;
                }
                if radices.len() % 2 == 1 {
                    data.copy_from_slice(scratch);
                }
            }
            Kind::Convolution { chirp, response, inner } => {
                let (padded, scratch) = scratch.split_at_mut(inner.length);
                padded.fill(Complex::zero());
                for ((y, x), c) in padded.iter_mut().zip(&*data).zip(chirp) {
                    *y = x * c;
                }
                inner.process(padded, scratch);
                // The inverse is the transform of conjugates.
                padded.iter_mut().zip(response).for_each(|(x, response)| *x = (*x * response).conj());
                inner.process(padded, scratch);
                for ((x, y), c) in data.iter_mut().zip(padded).zip(chirp) {
                    *x = y.conj() * c;
                }
            }
        }
    }
}

/// One radix of Stockham's: `rest` is what is left of the length without it, `done` the product of those before.
fn pass<T: FftNum>(
    radix: usize,
    rest: usize,
    done: usize,
    from: &[Complex<T>],
    to: &mut [Complex<T>],
    roots: &[Complex<T>],
) {
    let part = |p: usize, j: usize| &from[done * (p + rest * j)..][..done];
    for (p, to) in to.chunks_exact_mut(done * radix).enumerate() {
        let twiddle = |k: usize| roots[p * k * done];
        match radix {
            2 => {
                let (y0, y1) = to.split_at_mut(done);
                let w = twiddle(1);
                let parts = part(p, 0).iter().zip(part(p, 1));
                for ((a, b), (y0, y1)) in parts.zip(y0.iter_mut().zip(y1)) {
                    *y0 = a + b;
                    *y1 = (a - b) * w;
                }
            }
            4 => {
                let (low, high) = to.split_at_mut(2 * done);
                let ((y0, y1), (y2, y3)) = (low.split_at_mut(done), high.split_at_mut(done));
                let (w1, w2, w3) = (twiddle(1), twiddle(2), twiddle(3));
                let parts = part(p, 0).iter().zip(part(p, 1)).zip(part(p, 2).iter().zip(part(p, 3)));
                let places = y0.iter_mut().zip(y1).zip(y2.iter_mut().zip(y3));
                for (((a, b), (c, d)), ((y0, y1), (y2, y3))) in parts.zip(places) {
                    let (even, odd) = (a + c, b + d);
                    let (difference, side) = (a - c, turned(b - d));
                    *y0 = even + odd;
                    *y1 = (difference - side) * w1;
                    *y2 = (even - odd) * w2;
                    *y3 = (difference + side) * w3;
                }
            }
            _ => {
                let step = roots.len() / radix;
                for (k, y) in to.chunks_exact_mut(done).enumerate() {
                    y.copy_from_slice(part(p, 0));
                    for j in 1..radix {
                        let w = roots[j * k % radix * step];
                        y.iter_mut().zip(part(p, j)).for_each(|(y, x)| *y = *y + x * w);
                    }
                    let w = twiddle(k);
                    y.iter_mut().for_each(|y| *y = *y * w);
                }
            }
        }
    }
}

/// The transform of real numbers: of an even length by that of half as many complex numbers.
pub(crate) struct Real<T> {
    length: usize,
    inner: Transform<T>,
    /// The first quarter of the roots of unity, for an even length.
    roots: Vec<Complex<T>>,
}

impl<T: FftNum> Real<T> {
    pub(crate) fn new(length: usize) -> Self {
        let even = length.is_multiple_of(2);
        let quarter = if even { length / 4 + 1 } else { 0 };
        Self {
            length,
            inner: Transform::new(if even { length / 2 } else { length }),
            roots: (0..quarter).map(|k| root(k, length)).collect(),
        }
    }

    fn bins(&self) -> usize {
        self.length / 2 + 1
    }

    fn scratch_len(&self) -> usize {
        self.inner.scratch() + if self.length.is_multiple_of(2) { 0 } else { self.length }
    }

    fn check(&self, input: (usize, usize), output: (usize, usize), scratch: usize) -> Result<(), FftError> {
        match (input, output) {
            ((expected, found), _) if expected != found => Err(FftError::InputBuffer(expected, found)),
            (_, (expected, found)) if expected != found => Err(FftError::OutputBuffer(expected, found)),
            _ if scratch < self.scratch_len() => Err(FftError::ScratchBuffer(self.scratch_len(), scratch)),
            _ => Ok(()),
        }
    }

    fn forward(&self, input: &[T], output: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        if self.length % 2 == 1 {
            let (data, scratch) = scratch.split_at_mut(self.length);
            data.iter_mut().zip(input).for_each(|(y, &x)| *y = Complex::new(x, T::zero()));
            self.inner.process(data, scratch);
            output.copy_from_slice(&data[..output.len()]);
            return;
        }
        let half = self.length / 2;
        for (y, x) in output.iter_mut().zip(input.chunks_exact(2)) {
            *y = Complex::new(x[0], x[1]);
        }
        self.inner.process(&mut output[..half], scratch);
        // Even and odd samples apart, by the symmetry of their spectra.
        output[half] = output[0];
        for (k, root) in self.roots.iter().enumerate() {
            let (a, b) = (output[k], output[half - k].conj());
            let even = (a + b) * halved::<T>();
            let odd = turned((b - a) * root) * halved::<T>();
            output[k] = even + odd;
            output[half - k] = (even - odd).conj();
        }
        output[0].im = T::zero();
        output[half].im = T::zero();
    }

    fn inverse(&self, input: &mut [Complex<T>], output: &mut [T], scratch: &mut [Complex<T>]) {
        // The inverse is the transform of conjugates.
        if self.length % 2 == 1 {
            let (data, scratch) = scratch.split_at_mut(self.length);
            data[0] = input[0];
            for (k, x) in input.iter().enumerate().skip(1) {
                data[k] = x.conj();
                data[self.length - k] = *x;
            }
            self.inner.process(data, scratch);
            output.iter_mut().zip(data).for_each(|(y, x)| *y = x.re);
            return;
        }
        let half = self.length / 2;
        for (k, root) in self.roots.iter().enumerate() {
            let (a, b) = (input[k], input[half - k].conj());
            let (sum, difference) = (a + b, turned((a - b) * root.conj()));
            input[half - k] = sum - difference;
            input[k] = (sum + difference).conj();
        }
        self.inner.process(&mut input[..half], scratch);
        for (y, x) in output.chunks_exact_mut(2).zip(input) {
            (y[0], y[1]) = (x.re, -x.im);
        }
    }
}

impl<T: FftNum + Debug> RealToComplex<T> for Real<T> {
    fn process(&self, input: &mut [T], output: &mut [Complex<T>]) -> Result<(), FftError> {
        RealToComplex::process_with_scratch(self, input, output, &mut RealToComplex::make_scratch_vec(self))
    }

    fn process_with_scratch(
        &self,
        input: &mut [T],
        output: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) -> Result<(), FftError> {
        self.check((self.length, input.len()), (self.bins(), output.len()), scratch.len())?;
        self.forward(input, output, scratch);
        Ok(())
    }

    fn get_scratch_len(&self) -> usize {
        self.scratch_len()
    }

    fn len(&self) -> usize {
        self.length
    }

    fn make_input_vec(&self) -> Vec<T> {
        vec![T::zero(); self.length]
    }

    fn make_output_vec(&self) -> Vec<Complex<T>> {
        vec![Complex::zero(); self.bins()]
    }

    fn make_scratch_vec(&self) -> Vec<Complex<T>> {
        vec![Complex::zero(); self.scratch_len()]
    }
}

impl<T: FftNum + Debug> ComplexToReal<T> for Real<T> {
    fn process(&self, input: &mut [Complex<T>], output: &mut [T]) -> Result<(), FftError> {
        ComplexToReal::process_with_scratch(self, input, output, &mut ComplexToReal::make_scratch_vec(self))
    }

    fn process_with_scratch(
        &self,
        input: &mut [Complex<T>],
        output: &mut [T],
        scratch: &mut [Complex<T>],
    ) -> Result<(), FftError> {
        self.check((self.bins(), input.len()), (self.length, output.len()), scratch.len())?;
        // As realfft: what has to be real counts as that, and is told.
        let last = if self.length.is_multiple_of(2) { self.bins() - 1 } else { 0 };
        let invalid = (!input[0].im.is_zero(), last > 0 && !input[last].im.is_zero());
        (input[0].im, input[last].im) = (T::zero(), T::zero());
        self.inverse(input, output, scratch);
        if invalid.0 || invalid.1 { Err(FftError::InputValues(invalid.0, invalid.1)) } else { Ok(()) }
    }

    fn get_scratch_len(&self) -> usize {
        self.scratch_len()
    }

    fn len(&self) -> usize {
        self.length
    }

    fn make_input_vec(&self) -> Vec<Complex<T>> {
        vec![Complex::zero(); self.bins()]
    }

    fn make_output_vec(&self) -> Vec<T> {
        vec![T::zero(); self.length]
    }

    fn make_scratch_vec(&self) -> Vec<Complex<T>> {
        vec![Complex::zero(); self.scratch_len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;

    /// The largest difference from realfft, there and back, against the largest value.
    fn difference<T: Sample + Into<f64>>(length: usize) -> f64 {
        let signal: Vec<T> = (0..length)
            .map(|n| T::from_f64(((n * n * 7 + n) % 31) as f64 / 31.0 - 0.4).unwrap_or_else(T::zero))
            .collect();
        let small = Real::<T>::new(length);
        let (forward, inverse) = (T::plan_forward(length), T::plan_inverse(length));
        let mut spectra = [forward.make_output_vec(), forward.make_output_vec()];
        forward.process(&mut signal.clone(), &mut spectra[0]).unwrap();
        RealToComplex::process(&small, &mut signal.clone(), &mut spectra[1]).unwrap();
        let largest = spectra[0].iter().map(|x| x.norm_sqr().into()).fold(0.0, f64::max).sqrt();
        let apart = spectra[0].iter().zip(&spectra[1]).map(|(a, b)| (a - b).norm_sqr().into());
        let there = apart.fold(0.0, f64::max).sqrt() / largest;

        let mut samples = [inverse.make_output_vec(), inverse.make_output_vec()];
        inverse.process(&mut spectra[0].clone(), &mut samples[0]).unwrap();
        ComplexToReal::process(&small, &mut spectra[0], &mut samples[1]).unwrap();
        let apart = samples[0].iter().zip(&samples[1]).map(|(a, b)| f64::abs((*a - *b).into()));
        there.max(apart.fold(0.0, f64::max) / length as f64)
    }

    #[test]
    fn little_code_computes_the_same() {
        for length in (1..200).chain([353, 706, 1024, 1411, 2822, 3072, 5645, 6144, 11_290, 12_288]) {
            let (single, double) = (difference::<f32>(length), difference::<f64>(length));
            assert!(single < 1e-6 && double < 1e-14, "{length}: {single:e} {double:e}");
        }
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let small = Real::<f32>::new(8);
        let mut spectrum = [Complex::new(1.0, 1.0); 5];
        assert!(RealToComplex::process(&small, &mut [0.0; 7], &mut spectrum).is_err());
        assert!(ComplexToReal::process(&small, &mut spectrum[..4], &mut [0.0; 8]).is_err());
        let told = ComplexToReal::process(&small, &mut spectrum, &mut [0.0; 8]);
        assert!(matches!(told, Err(FftError::InputValues(true, true))));
    }
}
