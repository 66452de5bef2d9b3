"""The accelerator's kernels, interpreted on the processor, give what the framework's own layers give."""

import os
import subprocess
import sys

import pytest
from conftest import TRAINING

pytest.importorskip("triton")

PROGRAM = """
import torch
import recurrence

over_frames, both, units, channels = OF_CASE
torch.manual_seed(0)
norm, layer = torch.nn.LayerNorm(channels), torch.nn.GRU(channels, units, batch_first=True, bidirectional=both)
torch.nn.init.normal_(norm.weight, 1, 0.3)
torch.nn.init.normal_(norm.bias, 0, 0.3)
x = torch.randn(2, 5, 7, channels, requires_grad=True)
variables = [x, *norm.parameters(), *layer.parameters()]
y = norm(x).transpose(1, 2) if over_frames else norm(x)
y = layer(y.flatten(0, 1))[0].reshape(*y.shape[:3], -1)
expected = y.transpose(1, 2) if over_frames else y
found = recurrence.run(norm, layer, x, over_frames)
torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
factor = torch.randn_like(expected)
gradients = [torch.autograd.grad((out * factor).sum(), variables) for out in (found, expected)]
torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)
"""


@pytest.mark.parametrize("case", [(True, True, 24, 20), (True, False, 16, 10), (False, True, 40, 16)])
def test_the_kernels_agree_with_the_framework(case):
    program = PROGRAM.replace("OF_CASE", repr(case))
    environment = dict(os.environ, TRITON_INTERPRET="1")
    subprocess.run([sys.executable, "-c", program], check=True, cwd=TRAINING, env=environment)
