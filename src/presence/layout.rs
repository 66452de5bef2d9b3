//! Where the parameters of layers lie.

use crate::kernels::convolution::Convolution;

/// Assigns offsets among the parameters.
pub(super) struct Layout(usize);

impl Layout {
    pub(super) fn new() -> Self {
        Self(0)
    }

    pub(super) fn take(&mut self, size: usize) -> usize {
        let offset = self.0;
        self.0 += size;
        offset
    }

    pub(super) fn convolution(
        &mut self,
        [inputs, outputs]: [usize; 2],
        reach: (usize, usize),
        dilation: usize,
    ) -> Convolution {
        let mut layer = Convolution { inputs, outputs, reach, dilation: (dilation, 1), offset: 0 };
        layer.offset = self.take(layer.size());
        layer
    }

    pub(super) fn convolutions(
        &mut self,
        width: usize,
        reach: (usize, usize),
        dilations: &[usize],
    ) -> Vec<Convolution> {
        dilations.iter().map(|&dilation| self.convolution([width, width], reach, dilation)).collect()
    }
}
