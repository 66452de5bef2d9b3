"""Logistic regression with the gradients of PyTorch, by minibatches and whole."""

import torch

from alphamf import samplers

torch.manual_seed(1)
torch.set_num_threads(1)  # The work of one call is too little for more.
torch.set_default_dtype(torch.float64)
TRUE = torch.tensor([1.0, -2.0, 0.5])
POINTS = torch.randn(1000, 3)
LABELS = torch.bernoulli(torch.sigmoid(POINTS @ TRUE))


def logistic(theta, indices):
    weights = torch.tensor(theta, requires_grad=True)
    points, labels = (POINTS, LABELS) if indices is None else (POINTS[indices], LABELS[indices])
    misfit = torch.nn.functional.binary_cross_entropy_with_logits(points @ weights, labels, reduction="sum")
    potential = len(POINTS) / len(points) * misfit + 0.5 * (weights**2).sum() / 100
    potential.backward()
    return potential.item(), weights.grad.numpy()


STARTS = torch.randn(4, 3).numpy()
for sampler, settings in {"hmc": {"draws": 300}, "sgld": {"minibatch": 500, "step_size": 3e-4, "draws": 3000}}.items():
    result = samplers.sample(logistic, STARTS, sampler=sampler, terms=1000, burn_in=200, seed=1, **settings)
    print(sampler, *(f"{mean:.2f} +- {deviation:.2f}" for mean, deviation in zip(result.mean, result.deviation)))
