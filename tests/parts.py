"""A part of a case as plain data (its name, numbers and tensors), and the object of regard that it stands for.

`tests/plain.py` reads the same data and never imports regard, so the two meet only in their results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

import regard
from regard.core.biases import Bias, as_bias
from regard.core.masks import Mask, as_mask


@dataclass(frozen=True, eq=False)
class Part:
    """A score, normaliser, mask or bias, by name."""

    name: str
    options: dict[str, object] = field(default_factory=dict)  # numbers and names
    tensors: dict[str, Tensor] = field(default_factory=dict)  # parameters, which have gradients
    fixed: dict[str, Tensor] = field(default_factory=dict)  # booleans and integers, which have none
    parts: tuple[Part, ...] = ()  # what it is made of

    def leaves(self, path: str) -> Iterator[tuple[str, Tensor]]:
        """Its parameters and those of its parts, by a name that says where they are."""
        yield from ((f"{path}.{name}", tensor) for name, tensor in self.tensors.items())
        for place, part in enumerate(self.parts):
            yield from part.leaves(f"{path}.{place}")

    def with_leaves(self, path: str, leaves: dict[str, Tensor]) -> Part:
        tensors = {name: leaves[f"{path}.{name}"] for name in self.tensors}
        parts = tuple(part.with_leaves(f"{path}.{place}", leaves) for place, part in enumerate(self.parts))
        return replace(self, tensors=tensors, parts=parts)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Part:
        """The same part with every tensor changed, those without a gradient too."""
        return replace(
            self,
            tensors={name: change(tensor) for name, tensor in self.tensors.items()},
            fixed={name: change(tensor) for name, tensor in self.fixed.items()},
            parts=tuple(part.mapped(change) for part in self.parts),
        )

    def __repr__(self) -> str:
        tensors = {name: list(tensor.shape) for name, tensor in (self.tensors | self.fixed).items()}
        words = [f"{name}={value}" for name, value in (self.options | tensors).items()]
        return f"{self.name}({', '.join([*words, *map(repr, self.parts)])})"


# Functions of a user's own, as regard gets them.


def taxicab(query: Tensor, key: Tensor) -> Tensor:
    """A score: minus the sum of the absolute differences, in a type that holds them."""
    query, key = (side.to(torch.promote_types(side.dtype, torch.float32)) for side in (query, key))
    return -(query.unsqueeze(-2) - key.unsqueeze(-3)).abs().sum(-1)


def nearness_share(scores: Tensor, mask: Tensor | None) -> Tensor:
    """A normaliser: weights in proportion to 1 / (1 + how far the score is from the best)^2."""
    seen = scores != -torch.inf if mask is None else mask & (scores != -torch.inf)
    alive = seen.any(-1, keepdim=True)
    hidden = scores.masked_fill(~seen, -torch.inf).masked_fill(~alive, 0.0)
    if not scores.shape[-1]:
        return scores
    lag = (hidden.amax(-1, keepdim=True) - scores.masked_fill(~seen, 0.0)).masked_fill(~seen, 0.0)
    share = (1 / (1 + lag) ** 2).masked_fill(~seen, 0.0)
    return share / share.sum(-1, keepdim=True).masked_fill(~alive, 1.0)


def squared_share(weights: Tensor) -> Tensor:
    """An edit of weights: squared, and made to sum to one again."""
    squared = weights * weights
    total = squared.sum(-1, keepdim=True)
    return squared / total.masked_fill(total == 0, 1.0)


def parity(i: Tensor, j: Tensor) -> Tensor:
    """A rule for masks: three times the query plus the key is not a multiple of four."""
    return (3 * i + j) % 4 != 0


def wave(i: Tensor, j: Tensor, amplitude: Tensor) -> Tensor:
    """A rule for biases, with a learned amplitude [*heads]."""
    angle = (i - 2 * j).to(torch.promote_types(amplitude.dtype, torch.float32))  # half types know no large numbers
    return amplitude[..., None, None] * torch.cos(angle).to(amplitude.dtype)


SCORES: dict[str, Callable[[Part], object]] = {
    "dot": lambda p: regard.dot(),
    "dot times a number": lambda p: regard.dot(p.options["scale"]),
    "learned scale": lambda p: regard.dot(p.tensors["scale"]),
    "scaled dot": lambda p: regard.scaled_dot(),
    "cosine": lambda p: regard.cosine(p.options["scale"]),
    "cosine with a learned scale": lambda p: regard.cosine(p.tensors["scale"]),
    "bilinear": lambda p: regard.bilinear(p.tensors["weight"]),
    "additive": lambda p: regard.additive(
        p.tensors["weight"], p.tensors["query_weight"], p.tensors["key_weight"], p.tensors["bias"]
    ),
    "additive of sides": lambda p: regard.additive(p.tensors["weight"]),
    "additive with terms": lambda p: regard.additive(
        p.tensors["weight"],
        p.tensors["query_weight"],
        p.tensors["key_weight"],
        query_term=p.tensors["query_term"],
        key_term=p.tensors["key_term"],
    ),
    "concatenated": lambda p: regard.concatenated(
        p.tensors["weight"], p.tensors["matrix"], p.options["query_width"], p.tensors["bias"]
    ),
    "squared distance": lambda p: regard.squared_distance(p.options["scale"]),
    "soft dictionary": lambda p: regard.soft_dictionary(p.options["power"], epsilon=p.options["epsilon"]),
    "importance": lambda p: regard.importance(p.tensors["vector"], p.tensors["weight"], p.tensors["bias"]),
    "importance of several": lambda p: regard.importance(p.tensors["vector"]),
    "location": lambda p: regard.location(p.tensors["weight"]),
    "own": lambda p: taxicab,
}

NORMALISERS: dict[str, Callable[[Part], object]] = {
    "softmax": lambda p: regard.softmax(),
    "softmax at a temperature": lambda p: regard.softmax(p.options["temperature"]),
    "softmax at a learned temperature": lambda p: regard.softmax(p.tensors["temperature"]),
    "sparsemax": lambda p: regard.sparsemax(),
    "entmax": lambda p: regard.entmax(p.options["alpha"]),
    "entmax of a learned order": lambda p: regard.entmax(p.tensors["alpha"]),
    "hard": lambda p: regard.hard(),
    "hard, drawn": lambda p: regard.hard(sampled=True),
    "hard, straight through": lambda p: regard.hard(sampled=True, estimate="straight-through"),
    "gumbel": lambda p: regard.gumbel(p.options["temperature"]),
    "gumbel, straight through": lambda p: regard.gumbel(p.options["temperature"], straight_through=True),
    "given": lambda p: regard.given(p.tensors["weights"]),
    "edited": lambda p: regard.edited(regard.softmax(), squared_share),
    "own": lambda p: nearness_share,
}

MASKS: dict[str, Callable[[Part], object]] = {
    "causal": lambda p: regard.causal(p.options["align"]),
    "window": lambda p: regard.window(p.options["left"], right=p.options["right"], align=p.options["align"]),
    "prefix": lambda p: regard.prefix(p.options["length"]),
    "lengths": lambda p: regard.lengths(keys=p.fixed.get("keys"), queries=p.fixed.get("queries")),
    "documents": lambda p: regard.documents(p.fixed["keys"], p.fixed.get("queries")),
    "tensor": lambda p: p.fixed["seen"],
    "rule": lambda p: regard.allow(parity),
    "both": lambda p: mask(p.parts[0]) & mask(p.parts[1]),
    "either": lambda p: mask(p.parts[0]) | mask(p.parts[1]),
    "not": lambda p: ~mask(p.parts[0]),
}

BIASES: dict[str, Callable[[Part], object]] = {
    "tensor": lambda p: p.tensors["bias"],
    "tensor with holes": lambda p: p.tensors["bias"].masked_fill(p.fixed["holes"], -torch.inf),
    "relative": lambda p: regard.relative(p.tensors["table"], align=p.options["align"]),
    "alibi": lambda p: regard.alibi(p.tensors["slopes"], align=p.options["align"]),
    "t5 buckets": lambda p: regard.t5_buckets(
        p.tensors["table"],
        bidirectional=p.options["bidirectional"],
        farthest=p.options["farthest"],
        align=p.options["align"],
    ),
    "rule": lambda p: regard.rule(wave, p.tensors["amplitude"]),
    "sum": lambda p: bias(p.parts[0]) + bias(p.parts[1]),
}


def mask(part: Part) -> Mask:
    """A mask that combines, also where a plain tensor would do."""
    return as_mask(MASKS[part.name](part))


def bias(part: Part) -> Bias:
    """A bias that adds up, also where a plain tensor would do."""
    return as_bias(BIASES[part.name](part))
