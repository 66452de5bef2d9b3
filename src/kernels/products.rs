//! Matrix products on borrowed column-major slices.

use ndarray::NdFloat;
#[cfg(not(target_family = "wasm"))]
use ndarray::{ArrayView2, ArrayViewMut2, Axis, ShapeBuilder, linalg::general_mat_mul};

#[cfg(any(target_family = "wasm", test))]
use super::small_products::{Strided, multiply};

/// A borrowed column-major matrix, or a band of its rows.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a, T> {
    data: &'a [T],
    stride: usize,
    first_row: usize,
    rows: usize,
}

impl<'a, T> Columns<'a, T> {
    /// All rows of a matrix whose columns have `rows` entries.
    pub(crate) fn new(data: &'a [T], rows: usize) -> Self {
        Self { data, stride: rows, first_row: 0, rows }
    }

    /// The rows `first_row .. first_row + rows` of this matrix.
    pub(crate) fn band(self, first_row: usize, rows: usize) -> Self {
        Self { first_row: self.first_row + first_row, rows, ..self }
    }

    #[cfg(any(target_family = "wasm", test))]
    fn strided(self) -> Strided<'a, T> {
        Strided { data: &self.data[self.first_row..], row: 1, column: self.stride }
    }

    #[cfg(any(target_family = "wasm", test))]
    fn columns(&self) -> usize {
        self.data.len() / self.stride
    }

    #[cfg(not(target_family = "wasm"))]
    fn view(&self) -> ArrayView2<'a, T> {
        let columns = self.data.len() / self.stride;
        let mut view = ArrayView2::from_shape((self.stride, columns).f(), self.data)
            .unwrap_or_else(|_| unreachable!("a column-major slice holds whole columns"));
        view.slice_axis_inplace(Axis(0), (self.first_row..self.first_row + self.rows).into());
        view
    }
}

#[cfg(not(target_family = "wasm"))]
fn view_mut<T>(data: &mut [T], rows: usize) -> ArrayViewMut2<'_, T> {
    let columns = data.len() / rows;
    ArrayViewMut2::from_shape((rows, columns).f(), data)
        .unwrap_or_else(|_| unreachable!("a column-major slice holds whole columns"))
}

/// Computes `out = a b`.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn product<T: NdFloat>(a: Columns<T>, b: Columns<T>, out: &mut [T]) {
    let rows = a.rows;
    general_mat_mul(T::one(), &a.view(), &b.view(), T::zero(), &mut view_mut(out, rows));
}

/// Computes `out = a' b`, written into the rows `first_row ..` of `out`, whose columns have `out_rows` entries.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn product_with_transpose<T: NdFloat>(
    a: Columns<T>,
    b: Columns<T>,
    out: &mut [T],
    out_rows: usize,
    first_row: usize,
) {
    let at = a.view().reversed_axes();
    let mut out = view_mut(out, out_rows);
    out.slice_axis_inplace(Axis(0), (first_row..first_row + at.nrows()).into());
    general_mat_mul(T::one(), &at, &b.view(), T::zero(), &mut out);
}

/// Computes `out += a b'`.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn accumulate_outer<T: NdFloat>(a: Columns<T>, b: Columns<T>, out: &mut [T]) {
    let rows = a.rows;
    general_mat_mul(T::one(), &a.view(), &b.view().reversed_axes(), T::one(), &mut view_mut(out, rows));
}

#[cfg(target_family = "wasm")]
pub(crate) use small::{accumulate_outer, product, product_with_transpose};

/// Compact products, for WebAssembly.
#[cfg(any(target_family = "wasm", test))]
mod small {
    use super::{Columns, NdFloat, multiply};

    pub(crate) fn product<T: NdFloat>(a: Columns<T>, b: Columns<T>, out: &mut [T]) {
        let sizes = (a.rows, b.rows, b.columns());
        multiply(a.strided(), b.strided(), sizes, out, a.rows, false);
    }

    pub(crate) fn product_with_transpose<T: NdFloat>(
        a: Columns<T>,
        b: Columns<T>,
        out: &mut [T],
        out_rows: usize,
        first_row: usize,
    ) {
        let sizes = (a.columns(), b.rows, b.columns());
        multiply(a.strided().transposed(), b.strided(), sizes, &mut out[first_row..], out_rows, false);
    }

    pub(crate) fn accumulate_outer<T: NdFloat>(a: Columns<T>, b: Columns<T>, out: &mut [T]) {
        let sizes = (a.rows, a.columns(), b.rows);
        multiply(a.strided(), b.strided().transposed(), sizes, out, a.rows, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|n| ((n * n * 7 + n * seed) % 101) as f64 / 50.0 - 1.0).collect()
    }

    fn assert_near(a: &[f64], b: &[f64]) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-11), "{a:?} {b:?}");
    }

    #[test]
    fn little_code_computes_the_same() {
        for (rows, depth, columns) in
            [(1, 1, 1), (8, 3, 4), (9, 300, 5), (17, 257, 3), (5, 600, 11), (64, 7, 30)]
        {
            let (a, b) = (entries(rows * depth, 3), entries(depth * columns, 5));
            let mut outs = [vec![0.0; rows * columns], vec![0.0; rows * columns]];
            product(Columns::new(&a, rows), Columns::new(&b, depth), &mut outs[0]);
            small::product(Columns::new(&a, rows), Columns::new(&b, depth), &mut outs[1]);
            assert_near(&outs[0], &outs[1]);

            // A band of rows, into a band of rows.
            let (a, b) = (entries((depth + 2) * rows, 3), entries((depth + 2) * columns, 5));
            let mut outs = [vec![1.0; (rows + 3) * columns], vec![1.0; (rows + 3) * columns]];
            let [a_band, b_band] = [&a, &b].map(|x| Columns::new(x, depth + 2).band(1, depth));
            product_with_transpose(a_band, b_band, &mut outs[0], rows + 3, 2);
            small::product_with_transpose(a_band, b_band, &mut outs[1], rows + 3, 2);
            assert_near(&outs[0], &outs[1]);

            let (a, b) = (entries(rows * depth, 3), entries(columns * depth, 5));
            let mut outs = [entries(rows * columns, 1), entries(rows * columns, 1)];
            accumulate_outer(Columns::new(&a, rows), Columns::new(&b, columns), &mut outs[0]);
            small::accumulate_outer(Columns::new(&a, rows), Columns::new(&b, columns), &mut outs[1]);
            assert_near(&outs[0], &outs[1]);
        }
    }
}
