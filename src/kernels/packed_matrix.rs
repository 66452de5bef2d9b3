//! Products of one matrix with many short vectors, as networks need them.

use pulp::{Arch, Simd, WithSimd};

/// Outputs that are computed together.
const LANES: usize = 16;
/// Columns that are computed together.
const COLUMNS: usize = 4;
/// Blocks of outputs that are computed together for a single column.
const BLOCKS: usize = 6;

/// A matrix of weights, outputs x inputs, laid out for products.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PackedMatrix {
    pub inputs: usize,
    pub outputs: usize,
    /// Per block of [`LANES`] outputs (the last padded with zeros), the weights of each input.
    weights: Vec<[f32; LANES]>,
}

impl PackedMatrix {
    /// With rows of zeros after the outputs, up to a number that is computed without a remainder.
    pub(crate) fn padded(weights: &[f32], outputs: usize) -> Self {
        let packed = Self::new(weights, outputs);
        Self { outputs: outputs.next_multiple_of(LANES), ..packed }
    }

    /// From weights outputs x inputs, those of an input contiguous.
    pub(crate) fn new(weights: &[f32], outputs: usize) -> Self {
        let inputs = weights.len() / outputs;
        let mut packed = Vec::with_capacity(outputs.div_ceil(LANES) * inputs);
        for first in (0..outputs).step_by(LANES) {
            let end = outputs.min(first + LANES);
            packed.extend(weights.chunks_exact(outputs).map(|of_input| {
                let mut lanes = [0.0; LANES];
                lanes[..end - first].copy_from_slice(&of_input[first..end]);
                lanes
            }));
        }
        Self { inputs, outputs, weights: packed }
    }

    /// Adds the products with columns of inputs, which begin `stride` values apart, to as many columns of outputs, which lie end to
    /// end.
    pub(crate) fn add_products(&self, columns: &[f32], stride: usize, out: &mut [f32]) {
        Arch::new().dispatch(Products { matrix: self, columns, stride, added: None, out });
    }

    /// As [`add_products`](Self::add_products), to a column of values instead of what is in `out`.
    pub(crate) fn products(&self, columns: &[f32], stride: usize, added: &[f32], out: &mut [f32]) {
        Arch::new().dispatch(Products { matrix: self, columns, stride, added: Some(added), out });
    }

    /// As [`products`](Self::products), within what is compiled for the instructions of `simd` already.
    #[inline(always)]
    pub(crate) fn products_by<S: Simd>(
        &self,
        simd: S,
        columns: &[f32],
        stride: usize,
        added: &[f32],
        out: &mut [f32],
    ) {
        Products { matrix: self, columns, stride, added: Some(added), out }.with_simd(simd);
    }
}

struct Products<'a> {
    matrix: &'a PackedMatrix,
    columns: &'a [f32],
    stride: usize,
    /// What they are added to, if not to `out`.
    added: Option<&'a [f32]>,
    out: &'a mut [f32],
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // As many blocks at once as there are registers for.
        match S::F32_LANES {
            16 => self.run::<S, 1, 2>(simd),
            8 => self.run::<S, 2, 1>(simd),
            4 => self.run::<S, 4, 1>(simd),
            _ => self.run::<S, LANES, 1>(simd),
        }
    }
}

impl Products<'_> {
    /// `R` registers hold [`LANES`] values; `B` blocks are computed together for several columns.
    #[inline(always)]
    fn run<S: Simd, const R: usize, const B: usize>(self, simd: S) {
        let Self { matrix: &PackedMatrix { inputs, outputs, ref weights }, columns, stride, added, out } =
            self;
        if out.len() == outputs {
            return add_column::<S, R>(simd, weights, &columns[..inputs], added, out);
        }
        let whole = out.len() / outputs / COLUMNS * COLUMNS;
        let (together, single) = out.split_at_mut(whole * outputs);
        let column = |index: usize| &columns[index * stride..][..inputs];
        let mut first = 0;
        for weights in weights.chunks(B * inputs) {
            for (group, out) in together.chunks_exact_mut(COLUMNS * outputs).enumerate() {
                let seen = std::array::from_fn(|index| column(COLUMNS * group + index));
                if weights.len() == B * inputs {
                    add_blocks::<S, R, B, COLUMNS>(simd, weights, seen, added, out, first);
                } else {
                    add_blocks::<S, R, 1, COLUMNS>(simd, weights, seen, added, out, first);
                }
            }
            first += B * LANES;
        }
        for (index, out) in single.chunks_exact_mut(outputs).enumerate() {
            add_column::<S, R>(simd, weights, column(whole + index), added, out);
        }
    }
}

/// Adds the product with a single column.
#[inline(always)]
fn add_column<S: Simd, const R: usize>(
    simd: S,
    weights: &[[f32; LANES]],
    seen: &[f32],
    added: Option<&[f32]>,
    out: &mut [f32],
) {
    let (inputs, blocks) = (seen.len(), out.len().div_ceil(LANES));
    // In parts of equal size.
    let at_once = blocks.div_ceil(blocks.div_ceil(BLOCKS));
    for begin in (0..blocks).step_by(at_once) {
        let (weights, first) = (&weights[begin * inputs..], begin * LANES);
        match at_once.min(blocks - begin) {
            1 => add_blocks::<S, R, 1, 1>(simd, weights, [seen], added, out, first),
            2 => add_blocks::<S, R, 2, 1>(simd, weights, [seen], added, out, first),
            3 => add_blocks::<S, R, 3, 1>(simd, weights, [seen], added, out, first),
            4 => add_blocks::<S, R, 4, 1>(simd, weights, [seen], added, out, first),
            5 => add_blocks::<S, R, 5, 1>(simd, weights, [seen], added, out, first),
            _ => add_blocks::<S, R, BLOCKS, 1>(simd, weights, [seen], added, out, first),
        }
    }
}

/// Up to [`LANES`] values, then zeros.
#[inline(always)]
fn load(values: &[f32]) -> [f32; LANES] {
    // Of a known number they are not copied by a call.
    values.try_into().unwrap_or_else(|_| {
        let mut lanes = [0.0; LANES];
        lanes[..values.len()].copy_from_slice(values);
        lanes
    })
}

#[inline(always)]
fn store(lanes: &[f32; LANES], values: &mut [f32]) {
    match values.as_chunks_mut::<LANES>().0 {
        [whole] => *whole = *lanes,
        _ => values.copy_from_slice(&lanes[..values.len()]),
    }
}

/// Adds the products of `B` blocks of weights with `C` columns to the outputs from `first` on.
#[inline(always)]
fn add_blocks<S: Simd, const R: usize, const B: usize, const C: usize>(
    simd: S,
    weights: &[[f32; LANES]],
    seen: [&[f32]; C],
    added: Option<&[f32]>,
    out: &mut [f32],
    first: usize,
) {
    let (outputs, inputs) = (out.len() / C, seen[0].len());
    let lanes = |block: usize, column: usize| {
        let from = first + block * LANES;
        column * outputs + from..column * outputs + outputs.min(from + LANES)
    };
    // Seen as registers once, not at every input.
    let blocks: [&[[S::f32s; R]]; B] = std::array::from_fn(|block| {
        let weights = weights[block * inputs..][..inputs].as_flattened();
        &S::as_simd_f32s(weights).0.as_chunks().0[..inputs]
    });
    let seen = seen.map(|seen| &seen[..inputs]);
    // Held in registers through the loop.
    let mut sums = [[[simd.splat_f32s(0.0); R]; C]; B];
    for (block, sums) in sums.iter_mut().enumerate() {
        for (column, sums) in sums.iter_mut().enumerate() {
            let values = match added {
                Some(added) => load(&added[lanes(block, 0)]),
                None => load(&out[lanes(block, column)]),
            };
            sums.copy_from_slice(S::as_simd_f32s(&values).0);
        }
    }
    for input in 0..inputs {
        let values = seen.map(|seen| simd.splat_f32s(seen[input]));
        for (sums, block) in sums.iter_mut().zip(blocks) {
            let weights = &block[input];
            for (sums, value) in sums.iter_mut().zip(values) {
                for register in 0..R {
                    sums[register] = simd.mul_add_e_f32s(weights[register], value, sums[register]);
                }
            }
        }
    }
    for (block, sums) in sums.iter().enumerate() {
        for (column, sums) in sums.iter().enumerate() {
            let mut values = [0.0; LANES];
            S::as_mut_simd_f32s(&mut values).0.copy_from_slice(sums);
            store(&values, &mut out[lanes(block, column)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        let value = |n: usize| ((n * n * 7 + n * 3) % 101) as f32 / 50.0 - 1.0;
        for (outputs, inputs, columns, stride) in [
            (1, 1, 1, 1),
            (16, 3, 4, 3),
            (72, 24, 1, 24),
            (100, 48, 9, 50),
            (5, 144, 32, 48),
            (192, 64, 7, 64),
        ] {
            let weights: Vec<f32> = (0..outputs * inputs).map(value).collect();
            let seen: Vec<f32> = (0..(columns - 1) * stride + inputs).map(|n| value(n + 5)).collect();
            let mut out: Vec<f32> = (0..outputs * columns).map(|n| value(n + 9)).collect();
            let added: Vec<f32> = (0..outputs).map(|n| value(n + 2)).collect();
            let check = |out: &[f32], before: &dyn Fn(usize) -> f32| {
                for (at, found) in out.iter().enumerate() {
                    let (column, output) = (at / outputs, at % outputs);
                    let terms = (0..inputs).map(|input| {
                        f64::from(weights[input * outputs + output])
                            * f64::from(seen[column * stride + input])
                    });
                    let error = f64::from(*found) - f64::from(before(at)) - terms.sum::<f64>();
                    assert!(error.abs() < 2e-5, "{outputs} x {inputs}, {columns} columns: {error:e}");
                }
            };
            let matrix = PackedMatrix::new(&weights, outputs);
            let before = out.clone();
            matrix.add_products(&seen, stride, &mut out);
            check(&out, &|at| before[at]);
            matrix.products(&seen, stride, &added, &mut out);
            check(&out, &|at| added[at % outputs]);
            // The padding of zeros.
            let padded = PackedMatrix::padded(&weights, outputs);
            let width = padded.outputs;
            let mut wide = vec![1.0; width * columns];
            padded.products(&seen, stride, &vec![0.0; width], &mut wide);
            assert!(wide.chunks_exact(width).all(|column| column[outputs..].iter().all(|&x| x == 0.0)));
            let narrow: Vec<f32> =
                wide.chunks_exact(width).flat_map(|column| &column[..outputs]).copied().collect();
            check(&narrow, &|_| 0.0);
        }
    }
}
