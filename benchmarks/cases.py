"""What is timed: each case gives contestants that compute the same thing, the first of which is the peer.

A contestant is a function without arguments. `error` compares with float64 where that says something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import regard

Contestants = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Case:
    """One comparison: `make(device)` gives the peer first, then ours."""

    name: str
    make: Callable[[torch.device], Contestants]


def normal(device: torch.device, *shape: int, grad: bool = False) -> Tensor:
    return torch.randn(*shape, device=device).requires_grad_(grad)


def eager_additive(query: Tensor, key: Tensor, value: Tensor, weight: Tensor) -> Tensor:
    """As every library that we found writes it: a number for every feature of every pair."""
    return (torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ weight).softmax(-1) @ value


def backward(function: Callable[[], Tensor], inputs: list[Tensor]) -> Callable[[], object]:
    """The function and its gradients, from an upstream gradient that is the same for every contestant."""
    sample = function()
    upstream = torch.linspace(-1, 1, sample.numel(), device=sample.device).reshape(sample.shape)
    return lambda: torch.autograd.grad(function(), inputs, upstream)


def quietly(function: Callable[[], object]) -> Callable[[], object]:
    """The function without a graph."""

    def call() -> object:
        with torch.no_grad():
            return function()

    return call


def additive(batch: tuple[int, ...], queries: int, keys: int, width: int, *, train: bool, spread: float = 1.0) -> Case:
    def make(device: torch.device) -> Contestants:
        query, key, value = (normal(device, *batch, n, width, grad=True) for n in (queries, keys, keys))
        weight = (torch.randn(width, device=device) / 8).requires_grad_()
        with torch.no_grad():
            query.mul_(spread)
            key.mul_(spread)
        score = regard.additive(weight)
        functions = {
            "eager": lambda: eager_additive(query, key, value, weight),
            "regard": lambda: regard.attend(query, key, value, score=score),
        }
        if not train:
            return {label: quietly(function) for label, function in functions.items()}
        inputs = [query, key, value, weight]
        return {label: backward(function, inputs) for label, function in functions.items()}

    size = "x".join(str(n) for n in (*batch, queries, keys, width))
    wide = "" if spread == 1.0 else f" spread {spread:g}"
    return Case(f"additive {'forward+backward' if train else 'forward'} {size}{wide}", make)


def decoding(batch: int, keys: int, width: int) -> Case:
    """One query, keys projected once and kept: what a recurrent decoder does at every step."""

    def make(device: torch.device) -> Contestants:
        query, key, value = (normal(device, batch, n, width) for n in (1, keys, keys))
        query_weight, key_weight = (normal(device, width, width) / width**0.5 for _ in range(2))
        weight = torch.randn(width, device=device) / 8
        score = regard.additive(weight, query_weight, key_weight)
        kept = score.key_side(key)

        def eager() -> Tensor:
            return eager_additive(query @ query_weight.mT, kept, value, weight)

        def ours() -> Tensor:
            return regard.attend(score.query_side(query), kept, value, score=score.pair)

        return {"eager": quietly(eager), "regard": quietly(ours)}

    return Case(f"additive decoding step {batch}x1x{keys}x{width}", make)


def dot(batch: int, heads: int, length: int, width: int, mask: str) -> Case:
    """attend over PyTorch's own kernel: what the promise about NaN and empty rows costs."""

    def make(device: torch.device) -> Contestants:
        query, key, value = (normal(device, batch, heads, length, width) for _ in range(3))
        count = torch.full((batch,), length - length // 4, device=device)
        dense = torch.arange(length, device=device) < count[:, None, None, None]

        def peer() -> Tensor:
            if mask == "lengths":
                return scaled_dot_product_attention(query, key, value, attn_mask=dense)
            return scaled_dot_product_attention(query, key, value, is_causal=mask == "causal")

        masks = {"none": None, "causal": regard.causal(), "lengths": regard.lengths(count)}
        known = masks[mask]
        return {"sdpa": quietly(peer), "regard": quietly(lambda: regard.attend(query, key, value, mask=known))}

    return Case(f"scaled dot, mask {mask} {batch}x{heads}x{length}x{width}", make)


def entmax(length: int, width: int, alpha: float, *, train: bool) -> Case:
    """Sparse weights, beside the entmax package: by sorting for 1.5 and 2, by its 50 bisections for other orders."""

    def make(device: torch.device) -> Contestants:
        query, key, value = (normal(device, length, width, grad=True) for _ in range(3))
        normaliser = regard.entmax(alpha)

        def package() -> Tensor:
            import entmax

            scores = query @ key.mT * width**-0.5
            known = {1.5: entmax.entmax15, 2.0: entmax.sparsemax}.get(alpha)
            weights = entmax.entmax_bisect(scores, alpha, -1) if known is None else known(scores, -1)
            return weights @ value

        def ours() -> Tensor:
            return regard.attend(query, key, value, normalise=normaliser)

        if not train:
            return {"entmax package": quietly(package), "regard": quietly(ours)}
        inputs = [query, key, value]
        return {"entmax package": backward(package, inputs), "regard": backward(ours, inputs)}

    return Case(f"entmax {alpha:g} {'forward+backward' if train else 'forward'} {length}x{width}", make)


def statistics(heads: int, length: int, width: int) -> Case:
    """Entropy, received and the best eight, beside the whole matrix in memory."""

    def make(device: torch.device) -> Contestants:
        query, key, value = (normal(device, heads, length, width) for _ in range(3))
        see = [regard.Entropy(), regard.Received(), regard.Top(8)]
        hidden = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)

        def dense() -> object:
            scores = (query @ key.mT * width**-0.5).masked_fill(hidden, -torch.inf)
            weights = scores.softmax(-1)
            entropy = -torch.xlogy(weights, weights).sum(-1)
            return weights @ value, entropy, weights.sum(-2), weights.topk(8)

        return {
            "eager": quietly(dense),
            "regard": quietly(lambda: regard.attend(query, key, value, mask=regard.causal(), see=see)),
        }

    return Case(f"causal statistics {heads}x{length}x{width}", make)


def distance(length: int, width: int) -> Case:
    def make(device: torch.device) -> Contestants:
        query, key, value = (normal(device, length, width) for _ in range(3))

        def eager() -> Tensor:
            return (-(query[:, None] - key[None]).square().sum(-1)).softmax(-1) @ value

        score = regard.squared_distance()
        return {
            "eager": quietly(eager),
            "regard": quietly(lambda: regard.attend(query, key, value, score=score, backend="tiled")),
        }

    return Case(f"squared distance forward {length}x{width}", make)


CASES = [
    additive((), 2048, 2048, 64, train=False),
    additive((), 2048, 2048, 64, train=True),
    additive((), 2048, 2048, 64, train=False, spread=50.0),
    additive((512,), 32, 32, 64, train=False),
    additive((512,), 32, 32, 64, train=True),
    decoding(1, 2048, 64),
    decoding(64, 40, 64),
    dot(1, 1, 8, 16, "none"),
    dot(2, 8, 64, 64, "none"),
    dot(2, 8, 512, 64, "none"),
    dot(2, 8, 64, 64, "causal"),
    dot(2, 8, 512, 64, "causal"),
    dot(2, 8, 64, 64, "lengths"),
    dot(2, 8, 512, 64, "lengths"),
    entmax(1024, 64, 1.5, train=False),
    entmax(1024, 64, 1.5, train=True),
    entmax(1024, 64, 2.0, train=False),
    entmax(1024, 64, 1.3, train=False),
    statistics(4, 1024, 64),
    distance(1024, 64),
]

GPU_CASES = [
    additive((8,), 1024, 1024, 128, train=False),
    additive((8,), 1024, 1024, 128, train=True),
    dot(1, 16, 4096, 128, "none"),
    dot(1, 16, 4096, 128, "causal"),
    statistics(16, 4096, 128),
]
