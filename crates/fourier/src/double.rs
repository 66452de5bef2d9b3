//! Transforms in double precision, by the portable kernels alone.

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, FftError, RealToComplex};
use rustfft::{Fft, FftDirection, FftPlannerScalar};
use std::sync::Arc;

/// A transform of real signals, by a complex one of the same length.
pub(crate) struct Double {
    complex: Arc<dyn Fft<f64>>,
}

impl Double {
    pub(crate) fn new(length: usize, direction: FftDirection) -> Self {
        Self { complex: FftPlannerScalar::new().plan_fft(length, direction) }
    }

    fn bins(&self) -> usize {
        self.complex.len() / 2 + 1
    }

    fn scratch(&self) -> usize {
        self.complex.len() + self.complex.get_inplace_scratch_len()
    }

    /// Transforms what `fill` writes; `scratch` begins with the result.
    fn transform(
        &self,
        scratch: &mut [Complex<f64>],
        fill: impl FnOnce(&mut [Complex<f64>]),
    ) -> Result<(), FftError> {
        if scratch.len() < self.scratch() {
            return Err(FftError::ScratchBuffer(self.scratch(), scratch.len()));
        }
        let (buffer, rest) = scratch.split_at_mut(self.complex.len());
        fill(buffer);
        self.complex.process_with_scratch(buffer, rest);
        Ok(())
    }
}

/// Checks the lengths of input and output, each as expected and as found.
fn check(input: [usize; 2], output: [usize; 2]) -> Result<(), FftError> {
    if input[0] != input[1] {
        return Err(FftError::InputBuffer(input[0], input[1]));
    }
    if output[0] != output[1] {
        return Err(FftError::OutputBuffer(output[0], output[1]));
    }
    Ok(())
}

impl RealToComplex<f64> for Double {
    fn process(&self, input: &mut [f64], output: &mut [Complex<f64>]) -> Result<(), FftError> {
        let mut scratch = RealToComplex::make_scratch_vec(self);
        RealToComplex::process_with_scratch(self, input, output, &mut scratch)
    }

    fn process_with_scratch(
        &self,
        input: &mut [f64],
        output: &mut [Complex<f64>],
        scratch: &mut [Complex<f64>],
    ) -> Result<(), FftError> {
        check([self.complex.len(), input.len()], [self.bins(), output.len()])?;
        self.transform(scratch, |buffer| {
            buffer.iter_mut().zip(&*input).for_each(|(to, &sample)| *to = sample.into());
        })?;
        output.copy_from_slice(&scratch[..output.len()]);
        Ok(())
    }

    fn get_scratch_len(&self) -> usize {
        self.scratch()
    }

    fn len(&self) -> usize {
        self.complex.len()
    }

    fn make_input_vec(&self) -> Vec<f64> {
        vec![0.0; self.complex.len()]
    }

    fn make_output_vec(&self) -> Vec<Complex<f64>> {
        vec![Complex::ZERO; self.bins()]
    }

    fn make_scratch_vec(&self) -> Vec<Complex<f64>> {
        vec![Complex::ZERO; self.scratch()]
    }
}

impl ComplexToReal<f64> for Double {
    fn process(&self, input: &mut [Complex<f64>], output: &mut [f64]) -> Result<(), FftError> {
        let mut scratch = ComplexToReal::make_scratch_vec(self);
        ComplexToReal::process_with_scratch(self, input, output, &mut scratch)
    }

    /// The imaginary parts of the first bin and, of an even length, of the last one do not count.
    fn process_with_scratch(
        &self,
        input: &mut [Complex<f64>],
        output: &mut [f64],
        scratch: &mut [Complex<f64>],
    ) -> Result<(), FftError> {
        check([self.bins(), input.len()], [self.complex.len(), output.len()])?;
        self.transform(scratch, |buffer| {
            buffer[..input.len()].copy_from_slice(input);
            // The upper half is the lower one, mirrored and conjugate.
            let mirrored = buffer.iter_mut().rev().zip(&input[1..]);
            mirrored.for_each(|(to, bin)| *to = bin.conj());
        })?;
        output.iter_mut().zip(&*scratch).for_each(|(sample, from)| *sample = from.re);
        Ok(())
    }

    fn get_scratch_len(&self) -> usize {
        self.scratch()
    }

    fn len(&self) -> usize {
        self.complex.len()
    }

    fn make_input_vec(&self) -> Vec<Complex<f64>> {
        vec![Complex::ZERO; self.bins()]
    }

    fn make_output_vec(&self) -> Vec<f64> {
        vec![0.0; self.complex.len()]
    }

    fn make_scratch_vec(&self) -> Vec<Complex<f64>> {
        vec![Complex::ZERO; self.scratch()]
    }
}
