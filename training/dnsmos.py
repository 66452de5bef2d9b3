"""Differentiable DNSMOS P.835 (Reddy, Gopal and Cutler 2022): overall quality (OVRL), with the weights of the package speechmos."""

import torch
import torch.nn.functional as F

WINDOW, HOP = 320, 160  # of its spectra, samples at 16 kHz
LEVELS_DB = (-34.0, -20.0)  # range of levels of the mixtures, dBFS: the score depends on the level
POOLED = (3, 4, 5)  # layers followed by max pooling, 2 x 2
OVERALL = 2  # index of OVRL in the outputs SIG, BAK, OVRL
MAP = (-0.06766283, 1.11546468, 0.04602535)  # polynomial from output to score


def weights_in(path, device):
    """Tensors by name, of an ONNX file."""
    # Imported here, as training without DNSMOS does not need it.
    import onnx

    arrays = onnx.load(path).graph.initializer
    return {array.name: torch.tensor(onnx.numpy_helper.to_array(array), device=device) for array in arrays}


class Judge:
    """The network of `sig_bak_ovr.onnx` (package speechmos, MIT) on a device, with fixed weights."""

    def __init__(self, path, device):
        weights = weights_in(path, device)
        self.transform = torch.cat([weights[f"time2freq/stft-{part}/kernel:0"][:, :, 0] for part in ("real", "imag")]).T
        names = ["conv2d", *(f"conv2d_{i}" for i in range(1, 7))]
        self.layers = [(weights[f"{name}/kernel:0"], weights[f"{name}/bias:0"]) for name in names]
        dense = [f"mos_estimator_logpow/{name}/" for name in ("dense", "dense_1", "dense_3")]
        ends = [f"{part}/ReadVariableOp/resource:0" for part in ("MatMul", "BiasAdd")]
        self.dense = [tuple(weights[name + end] for end in ends) for name in dense]

    def overall(self, x):
        """OVRL of every signal (examples x samples, full scale 1)."""
        real, imaginary = (x.float().unfold(1, WINDOW, HOP) @ self.transform).chunk(2, 2)
        y = torch.log10((real.square() + imaginary.square()).clamp(min=1e-12))[:, None]
        # bf16 is several times faster on accelerators.
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
            y = y.contiguous(memory_format=torch.channels_last)
            for i, (kernel, bias) in enumerate(self.layers):
                y = F.relu(F.conv2d(y, kernel, bias, padding=1))
                y = F.max_pool2d(y, 2) if i in POOLED else y
        y = y.float().amax((2, 3))
        for i, (matrix, bias) in enumerate(self.dense):
            y = F.relu(y) if i else y
            y = y @ matrix + bias
        raw = y[:, OVERALL]
        return MAP[0] * raw**2 + MAP[1] * raw + MAP[2]

    def no_better_than(self, estimate, voice):
        """OVRL of every estimate (examples x samples), limited to that of its clean voice: a higher score is an error of DNSMOS. Inputs are
        of mixtures of mean square 1, and are scaled to LEVELS_DB."""
        levels = 10 ** (torch.linspace(*LEVELS_DB, len(voice), device=voice.device)[:, None] / 20)
        with torch.no_grad():
            best = self.overall(levels * voice)
        return torch.minimum(self.overall(levels * estimate), best)
