//! Matrix products on borrowed column-major slices.

use ndarray::{ArrayView2, ArrayViewMut2, Axis, NdFloat, ShapeBuilder, linalg::general_mat_mul};

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

    fn view(&self) -> ArrayView2<'a, T> {
        let columns = self.data.len() / self.stride;
        let mut view = ArrayView2::from_shape((self.stride, columns).f(), self.data)
            .unwrap_or_else(|_| unreachable!("a column-major slice holds whole columns"));
        view.slice_axis_inplace(Axis(0), (self.first_row..self.first_row + self.rows).into());
        view
    }
}

fn view_mut<T>(data: &mut [T], rows: usize) -> ArrayViewMut2<'_, T> {
    let columns = data.len() / rows;
    ArrayViewMut2::from_shape((rows, columns).f(), data)
        .unwrap_or_else(|_| unreachable!("a column-major slice holds whole columns"))
}

/// `out = a b`.
pub(crate) fn product<T: NdFloat>(a: Columns<T>, b: Columns<T>, out: &mut [T]) {
    let rows = a.rows;
    general_mat_mul(T::one(), &a.view(), &b.view(), T::zero(), &mut view_mut(out, rows));
}

/// `out = a' b`, written into the rows `first_row ..` of `out`, whose columns have `out_rows` entries.
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

/// `out += a b'`.
pub(crate) fn accumulate_outer<T: NdFloat>(a: Columns<T>, b: Columns<T>, out: &mut [T]) {
    let rows = a.rows;
    general_mat_mul(T::one(), &a.view(), &b.view().reversed_axes(), T::one(), &mut view_mut(out, rows));
}
