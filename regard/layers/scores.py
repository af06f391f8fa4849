"""Scores that are learned: each module owns the parameters and gives the frozen score of one call.

`module()` is the score; layers ask for it at every call, so what is learned is always what is used. Where there are
heads, each has parameters of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from regard.core.additive import Additive, additive
from regard.core.importance import Importance, importance
from regard.core.scores import (
    Bilinear,
    Cosine,
    LearnedDot,
    Location,
    Score,
    as_score,
    bilinear,
    cosine,
    location,
)

Sizes = tuple[int, ...]


class ScoreLayer(nn.Module, ABC):
    """A module whose call gives the frozen score."""

    @abstractmethod
    def forward(self) -> Score:
        """The score with the parameters of now."""


def score_of(score: object) -> Score:
    """A layer's score of now, a score as it is, and a user's own function or module as `Own`."""
    return score.forward() if isinstance(score, ScoreLayer) else as_score(score)


def sized(*sizes: tuple[str, int | None]) -> None:
    """Every size that is given is a positive whole number."""
    for name, size in sizes:
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(f"{name}: came {size!r}, wanted a positive whole number. Remedy: how many there are.")


def per_head(heads: int | None) -> Sizes:
    """The leading dimensions of a parameter."""
    return () if heads is None else (heads,)


def glorot(shape: Sizes, generator: torch.Generator | None) -> nn.Parameter:
    """Uniform numbers of variance 2/(rows + columns) (Glorot and Bengio, 2010), for each head by itself."""
    bound = math.sqrt(6 / (shape[-1] + shape[-2]))
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


def vectors(shape: Sizes, generator: torch.Generator | None) -> nn.Parameter:
    """Uniform numbers up to 1/sqrt(width), so that a sum over the width is of the order of its terms."""
    bound = 1 / math.sqrt(shape[-1])
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


def listed(*parts: tuple[str, object]) -> str:
    """What a printed module says of itself; what is None goes unsaid."""
    return ", ".join(f"{name}={value}" for name, value in parts if value is not None)


class AdditiveScore(ScoreLayer):
    """w . tanh(W_q q + W_k k + b) (Bahdanau et al., 2015).

    Terms inside the tanh are given per call: `module(query_term=…, key_term=…)`. With grouped heads there are
    `key_heads` matrices on the key side.
    """

    def __init__(
        self,
        query_width: int,
        key_width: int,
        width: int,
        heads: int | None = None,
        *,
        key_heads: int | None = None,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sized(
            ("query_width", query_width), ("key_width", key_width), ("width", width), ("heads", heads),
            ("key_heads", key_heads),
        )  # fmt: skip
        key_heads = heads if key_heads is None else key_heads
        self.weight = vectors((*per_head(heads), width), generator)
        self.query_weight = glorot((*per_head(heads), width, query_width), generator)
        self.key_weight = glorot((*per_head(key_heads), width, key_width), generator)
        self.bias = nn.Parameter(torch.zeros(*per_head(heads), width)) if bias else None

    def forward(self, query_term: Tensor | None = None, key_term: Tensor | None = None) -> Additive:
        return additive(
            self.weight, self.query_weight, self.key_weight, self.bias, query_term=query_term, key_term=key_term
        )

    def extra_repr(self) -> str:
        heads = self.weight.shape[0] if self.weight.dim() > 1 else None
        key_heads = self.key_weight.shape[0] if self.key_weight.dim() > 2 else None
        return listed(
            ("query_width", self.query_weight.shape[-1]),
            ("key_width", self.key_weight.shape[-1]),
            ("width", self.weight.shape[-1]),
            ("heads", heads),
            ("key_heads", None if key_heads == heads else key_heads),
            ("bias", None if self.bias is not None else False),
        )


class BilinearScore(ScoreLayer):
    """q W k (Luong et al., 2015, "general")"""

    def __init__(
        self,
        query_width: int,
        key_width: int,
        heads: int | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sized(("query_width", query_width), ("key_width", key_width), ("heads", heads))
        self.weight = glorot((*per_head(heads), query_width, key_width), generator)

    def forward(self) -> Bilinear:
        return bilinear(self.weight)

    def extra_repr(self) -> str:
        return listed(
            ("query_width", self.weight.shape[-2]),
            ("key_width", self.weight.shape[-1]),
            ("heads", self.weight.shape[0] if self.weight.dim() > 2 else None),
        )


class CosineScore(ScoreLayer):
    """scale * cos(q, k), with a scale that is learned and stays above zero (after Henry et al., 2020)"""

    def __init__(self, heads: int | None = None, *, scale: float = 10.0, epsilon: float = 1e-6) -> None:
        super().__init__()
        sized(("heads", heads))
        if not scale > 0:
            raise ValueError(f"scale: came {scale}, wanted a positive number. Remedy: 10, its start.")
        self.log_scale = nn.Parameter(torch.full(per_head(heads), math.log(scale)))
        self.epsilon = cosine(epsilon=epsilon).epsilon

    def forward(self) -> Cosine:
        return cosine(self.log_scale.exp(), epsilon=self.epsilon)

    def extra_repr(self) -> str:
        return listed(("heads", self.log_scale.numel() if self.log_scale.dim() else None))


class ScaledDotScore(ScoreLayer):
    """scale * q . k, with a scale that is learned and starts at 1/sqrt(width)"""

    def __init__(self, width: int, heads: int | None = None) -> None:
        super().__init__()
        sized(("width", width), ("heads", heads))
        self.scale = nn.Parameter(torch.full(per_head(heads), 1 / math.sqrt(width)))

    def forward(self) -> LearnedDot:
        return LearnedDot(self.scale)

    def extra_repr(self) -> str:
        return listed(("heads", self.scale.numel() if self.scale.dim() else None))


class LocationScore(ScoreLayer):
    """W q at the key's index (Luong et al., 2015, "location"): where to look, whatever is there"""

    def __init__(self, query_width: int, places: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        sized(("query_width", query_width), ("places", places))
        self.weight = glorot((places, query_width), generator)

    def forward(self) -> Location:
        return location(self.weight)

    def extra_repr(self) -> str:
        return listed(("query_width", self.weight.shape[-1]), ("places", self.weight.shape[-2]))


class ImportanceScore(ScoreLayer):
    """u . tanh(W k + b), without a query (Yang et al., 2016); with several rows, several contexts (Lin et al., 2017)"""

    def __init__(
        self,
        key_width: int,
        width: int,
        rows: int | None = None,
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sized(("key_width", key_width), ("width", width), ("rows", rows))
        self.vector = vectors((*per_head(rows), width), generator)
        self.weight = glorot((width, key_width), generator)
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self) -> Importance:
        return importance(self.vector, self.weight, self.bias)

    def extra_repr(self) -> str:
        return listed(
            ("key_width", self.weight.shape[-1]),
            ("width", self.weight.shape[-2]),
            ("rows", self.vector.shape[0] if self.vector.dim() > 1 else None),
            ("bias", None if self.bias is not None else False),
        )
