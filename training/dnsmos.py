"""Differentiable DNSMOS P.835 (Reddy, Gopal and Cutler 2022): the overall quality that listeners would give, with the package's weights."""

import torch
import torch.nn.functional as F

WINDOW, HOP = 320, 160  # of its spectra, samples at 16 kHz
LEVELS_DB = (-34.0, -20.0)  # of the mixtures that it is given, against full scale: it depends on the level
POOLED = (3, 4, 5)  # layers that a maximum over squares of two follows
OVERALL = 2  # of its three numbers: signal, background, overall
MAP = (-0.06766283, 1.11546468, 0.04602535)  # from its number to the score


def weights_in(path, device):
    """Tensors by name, of an ONNX file."""
    # Learning without DNSMOS does not need it.
    import onnx

    arrays = onnx.load(path).graph.initializer
    return {array.name: torch.tensor(onnx.numpy_helper.to_array(array), device=device) for array in arrays}


class Judge:
    """The network of `sig_bak_ovr.onnx` (package speechmos, MIT) on a device; its weights stay as they are."""

    def __init__(self, path, device):
        weights = weights_in(path, device)
        self.transform = torch.cat([weights[f"time2freq/stft-{part}/kernel:0"][:, :, 0] for part in ("real", "imag")]).T
        names = ["conv2d", *(f"conv2d_{i}" for i in range(1, 7))]
        self.layers = [(weights[f"{name}/kernel:0"], weights[f"{name}/bias:0"]) for name in names]
        dense = [f"mos_estimator_logpow/{name}/" for name in ("dense", "dense_1", "dense_3")]
        ends = [f"{part}/ReadVariableOp/resource:0" for part in ("MatMul", "BiasAdd")]
        self.dense = [tuple(weights[name + end] for end in ends) for name in dense]

    def overall(self, x):
        """The score of every signal (examples x samples, full scale one)."""
        real, imaginary = (x.float().unfold(1, WINDOW, HOP) @ self.transform).chunk(2, 2)
        y = torch.log10((real.square() + imaginary.square()).clamp(min=1e-12))[:, None]
        # In bf16 an accelerator takes a fraction of the time.
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
        """The score of every estimate (examples x samples). None counts for more than its clean voice, as a better one is an error of
        the judge. Both come out of mixtures of level one, and are brought to LEVELS_DB."""
        levels = 10 ** (torch.linspace(*LEVELS_DB, len(voice), device=voice.device)[:, None] / 20)
        with torch.no_grad():
            best = self.overall(levels * voice)
        return torch.minimum(self.overall(levels * estimate), best)
