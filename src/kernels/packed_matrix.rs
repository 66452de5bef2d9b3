//! Products of one matrix with many short vectors, for networks.

use pulp::{Arch, Simd, WithSimd};

/// Number of outputs computed together.
const LANES: usize = 16;
/// Number of columns computed together.
const COLUMNS: usize = 4;
/// Maximum number of blocks of outputs computed together.
const BLOCKS: usize = 6;

/// Weights of an input for [`LANES`] outputs, within a cache line.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
struct Block([f32; LANES]);

/// A matrix of weights, outputs x inputs, laid out for products.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PackedMatrix {
    pub inputs: usize,
    pub outputs: usize,
    /// Number of blocks of [`LANES`] outputs per part (the last block padded with zeros); the last part may have fewer.
    part: usize,
    /// Per part and input, the weights of its blocks.
    weights: Vec<Block>,
}

impl PackedMatrix {
    /// Creates a matrix with rows of zeros after the outputs, up to a multiple of [`LANES`].
    pub(crate) fn padded(weights: &[f32], outputs: usize) -> Self {
        let packed = Self::new(weights, outputs);
        Self { outputs: outputs.next_multiple_of(LANES), ..packed }
    }

    /// Creates a matrix from weights (outputs x inputs, those of an input contiguous).
    pub(crate) fn new(weights: &[f32], outputs: usize) -> Self {
        let inputs = weights.len() / outputs;
        let blocks = outputs.div_ceil(LANES);
        let part = blocks.div_ceil(blocks.div_ceil(BLOCKS));
        let mut packed = Vec::with_capacity(blocks * inputs);
        for begin in (0..outputs).step_by(part * LANES) {
            for of_input in weights.chunks_exact(outputs) {
                let of_part = &of_input[begin..outputs.min(begin + part * LANES)];
                packed.extend(of_part.chunks(LANES).map(|values| Block(load(values))));
            }
        }
        Self { inputs, outputs, part, weights: packed }
    }

    /// Adds the products with columns of inputs, which begin `stride` values apart, to the contiguous columns of
    /// outputs `out`.
    pub(crate) fn add_products(&self, columns: &[f32], stride: usize, out: &mut [f32]) {
        Arch::new().dispatch(Products { matrix: self, columns, stride, added: None, out });
    }

    /// Like [`add_products`](Self::add_products), but adds to the column `added` and overwrites `out`.
    pub(crate) fn products(&self, columns: &[f32], stride: usize, added: &[f32], out: &mut [f32]) {
        Arch::new().dispatch(Products { matrix: self, columns, stride, added: Some(added), out });
    }

    /// Writes `added` plus the product with a single column. The caller must be compiled for the instructions of
    /// `simd`.
    #[inline(always)]
    pub(crate) fn product_by<S: Simd>(&self, simd: S, column: &[f32], added: &[f32], out: &mut [f32]) {
        let (column, added, out) = (&column[..self.inputs], &added[..self.outputs], &mut out[..self.outputs]);
        match S::F32_LANES {
            16 => self.column::<S, 1>(simd, column, Some(added), out),
            8 => self.column::<S, 2>(simd, column, Some(added), out),
            4 => self.column::<S, 4>(simd, column, Some(added), out),
            _ => self.column::<S, LANES>(simd, column, Some(added), out),
        }
    }

    /// Like [`Products::run`], for a single column.
    #[inline(always)]
    fn column<S: Simd, const R: usize>(&self, simd: S, seen: &[f32], added: Option<&[f32]>, out: &mut [f32]) {
        let (mut weights, mut first) = (&self.weights[..], 0);
        while !weights.is_empty() {
            let blocks = self.part.min((self.outputs - first).div_ceil(LANES));
            let (part, rest) = weights.split_at(blocks * self.inputs);
            match blocks {
                1 => add_blocks::<S, R, 1, 1>(simd, part.chunks_exact(1), [seen], added, out, first),
                2 => add_blocks::<S, R, 2, 1>(simd, part.chunks_exact(2), [seen], added, out, first),
                3 => add_blocks::<S, R, 3, 1>(simd, part.chunks_exact(3), [seen], added, out, first),
                4 => add_blocks::<S, R, 4, 1>(simd, part.chunks_exact(4), [seen], added, out, first),
                5 => add_blocks::<S, R, 5, 1>(simd, part.chunks_exact(5), [seen], added, out, first),
                _ => {
                    add_blocks::<S, R, BLOCKS, 1>(simd, part.chunks_exact(BLOCKS), [seen], added, out, first)
                }
            }
            (weights, first) = (rest, first + blocks * LANES);
        }
    }
}

struct Products<'a> {
    matrix: &'a PackedMatrix,
    columns: &'a [f32],
    stride: usize,
    /// Values to which the products are added; `None` for the values in `out`.
    added: Option<&'a [f32]>,
    out: &'a mut [f32],
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // The registers limit the number of blocks per pass.
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
        let Self { matrix, columns, stride, added, out } = self;
        let &PackedMatrix { inputs, outputs, part, ref weights } = matrix;
        let blocks = outputs.div_ceil(LANES);
        let column = |index: usize| &columns[index * stride..][..inputs];
        let whole = out.len() / outputs / COLUMNS * COLUMNS;
        let (together, single) = out.split_at_mut(whole * outputs);
        for begin in (0..blocks).step_by(part) {
            let of_part = part.min(blocks - begin);
            let weights = &weights[begin * inputs..][..of_part * inputs];
            for skip in (0..of_part).step_by(B) {
                let first = (begin + skip) * LANES;
                for (group, out) in together.chunks_exact_mut(COLUMNS * outputs).enumerate() {
                    let seen: [&[f32]; COLUMNS] =
                        std::array::from_fn(|index| column(COLUMNS * group + index));
                    let rows = weights.chunks_exact(of_part).map(|row| &row[skip..]);
                    if skip + B <= of_part {
                        add_blocks::<S, R, B, COLUMNS>(simd, rows, seen, added, out, first);
                    } else {
                        add_blocks::<S, R, 1, COLUMNS>(simd, rows, seen, added, out, first);
                    }
                }
            }
        }
        for (index, out) in single.chunks_exact_mut(outputs).enumerate() {
            matrix.column::<S, R>(simd, column(whole + index), added, out);
        }
    }
}

/// Loads up to [`LANES`] values, padded with zeros.
#[inline(always)]
fn load(values: &[f32]) -> [f32; LANES] {
    // A fixed number of values is copied without a call.
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

/// Adds the products of the first `B` blocks of each input's weights with `C` columns to the outputs from `first` on.
#[inline(always)]
fn add_blocks<'a, S: Simd, const R: usize, const B: usize, const C: usize>(
    simd: S,
    rows: impl ExactSizeIterator<Item = &'a [Block]>,
    seen: [&[f32]; C],
    added: Option<&[f32]>,
    out: &mut [f32],
    first: usize,
) {
    let (outputs, inputs) = (out.len() / C, rows.len());
    let lanes = |block: usize, column: usize| {
        let from = first + block * LANES;
        column * outputs + from..column * outputs + outputs.min(from + LANES)
    };
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
    for (input, row) in rows.enumerate() {
        // Not with `map`, which may not be inlined.
        let mut values = [simd.splat_f32s(0.0); C];
        for (value, seen) in values.iter_mut().zip(&seen) {
            *value = simd.splat_f32s(seen[input]);
        }
        for (sums, block) in sums.iter_mut().zip(&row[..B]) {
            let weights = S::as_simd_f32s(&block.0).0;
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
