"""How well each query matches each key.

A score is two sides and a pair form: `query_side` and `key_side` are done once per token, `pair` is what is done for
every (query, key). `score(query, key)` is the definition, written without the split; that the two agree is a law.

    score(query, key) == score.pair(score.query_side(query), score.key_side(key))        [*batch q k]

Parameters have leading dimensions of their own ([heads, width], say), which line up with the last batch dimensions.
Scores are float32 or wider, whatever came in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.shapes import check_called, check_part, check_tensor, check_width, describe, wide

Change = Callable[[Tensor, int], Tensor]
"""What `mapped` applies to each tensor that an object holds; the number says how many last dimensions are its own."""


class Score(ABC):
    """Two sides and a pair form."""

    @abstractmethod
    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        """[*batch q d], [*batch k d] -> [*batch q k], by the definition."""

    @abstractmethod
    def query_side(self, query: Tensor | None) -> Tensor:
        """What of the score depends on the query alone."""

    @abstractmethod
    def key_side(self, key: Tensor) -> Tensor:
        """What of the score depends on the key alone; a decoder does this once and keeps it."""

    @property
    @abstractmethod
    def pair(self) -> Pair:
        """What is left for every pair, itself a score whose sides change nothing."""


class Pair(Score):
    """A score whose sides are done already."""

    many: bool = False
    """Whether the definition holds a number for every feature of every pair."""

    def query_side(self, query: Tensor | None) -> Tensor:
        return needed(query)

    def key_side(self, key: Tensor) -> Tensor:
        return key

    @property
    def pair(self) -> Pair:
        return self

    @abstractmethod
    def mapped(self, change: Change) -> Pair:
        """The same pair with every tensor that it holds changed."""


def needed(query: Tensor | None) -> Tensor:
    """Every score but learned importance has a query."""
    if query is None:
        raise ValueError(
            "query: came None, wanted a tensor [..., queries, width]: only regard.importance asks without "
            "a query. Remedy: pass the query, or score=regard.importance(vector)."
        )
    return query


def per_pair(parameter: float | Tensor) -> float | Tensor:
    """A parameter [*batch] so that it broadcasts against scores [*batch q k]."""
    return parameter[..., None, None] if isinstance(parameter, Tensor) else parameter


@dataclass(frozen=True, eq=False)
class Dot(Pair):
    """scale * q . k, with scale = 1/sqrt(width) where it is None."""

    scale: float | None = 1.0

    def factor(self, width: int) -> float:
        return float(max(width, 1)) ** -0.5 if self.scale is None else self.scale

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        query = needed(query)
        check_width("query", query, key.shape[-1], f"as the key's is: key {describe(key)}")
        return wide(query) @ wide(key).mT * self.factor(key.shape[-1])

    def mapped(self, change: Change) -> Dot:
        return self


@dataclass(frozen=True, eq=False)
class LearnedDot(Score):
    """scale * q . k, with a scale [*batch] that is learned."""

    scale: Tensor

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        return Dot()(query, key) * per_pair(self.scale)

    def query_side(self, query: Tensor | None) -> Tensor:
        query = needed(query)
        check_part("scale", self.scale, (), "query", query)
        return wide(query) * per_pair(self.scale)

    def key_side(self, key: Tensor) -> Tensor:
        return key

    @property
    def pair(self) -> Dot:
        return Dot()


def dot(scale: float | Tensor = 1.0) -> Dot | LearnedDot:
    """q . k (Luong et al., 2015), times a scale if one is given: a number, or a learned tensor [*batch]."""
    return LearnedDot(scale) if isinstance(scale, Tensor) else Dot(float(scale))


def scaled_dot() -> Dot:
    """q . k / sqrt(width) (Vaswani et al., 2017)."""
    return Dot(None)


@dataclass(frozen=True, eq=False)
class Cosine(Score):
    """scale * cos(q, k); a vector shorter than epsilon is taken as that long."""

    scale: float | Tensor = 1.0
    epsilon: float = 1e-6

    def unit(self, side: Tensor) -> Tensor:
        # Divided by the largest entry first, so that squares neither overflow nor vanish.
        side = wide(side)
        largest = side.detach().abs().amax(-1, keepdim=True).clamp_min(self.epsilon) if side.shape[-1] else 1.0
        length = torch.linalg.vector_norm(side / largest, dim=-1, keepdim=True) * largest
        unit: Tensor = side / length.clamp_min(self.epsilon)
        return unit

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        return Dot()(self.unit(needed(query)), self.unit(key)) * per_pair(self.scale)

    def query_side(self, query: Tensor | None) -> Tensor:
        unit = self.unit(needed(query))
        if not isinstance(self.scale, Tensor):
            return unit
        check_part("scale", self.scale, (), "query", unit)
        return unit * per_pair(self.scale)

    def key_side(self, key: Tensor) -> Tensor:
        return self.unit(key)

    @property
    def pair(self) -> Dot:
        return Dot() if isinstance(self.scale, Tensor) else Dot(float(self.scale))


def cosine(scale: float | Tensor = 1.0, *, epsilon: float = 1e-6) -> Cosine:
    """The cosine of query and key, times a scale: a number, or a learned tensor [*batch]."""
    if not epsilon > 0:
        raise ValueError(f"epsilon: came {epsilon}, wanted a positive length. Remedy: leave it at 1e-6.")
    return Cosine(scale, epsilon)


@dataclass(frozen=True, eq=False)
class Bilinear(Score):
    """q W k, with W [*batch q_width k_width]."""

    weight: Tensor

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        query = needed(query)
        check_width("query", query, self.weight.shape[-2], f"by weight {describe(self.weight)}")
        check_width("key", key, self.weight.shape[-1], f"by weight {describe(self.weight)}")
        return wide(query) @ wide(self.weight) @ wide(key).mT

    def query_side(self, query: Tensor | None) -> Tensor:
        query = needed(query)
        check_width("query", query, self.weight.shape[-2], f"by weight {describe(self.weight)}")
        check_part("weight", self.weight, self.weight.shape[-2:], "query", query)
        return query @ self.weight.to(query.dtype)

    def key_side(self, key: Tensor) -> Tensor:
        check_width("key", key, self.weight.shape[-1], f"by weight {describe(self.weight)}")
        return key

    @property
    def pair(self) -> Dot:
        return Dot()


def bilinear(weight: Tensor) -> Bilinear:
    """q W k (Luong et al., 2015, "general"); weight is [*batch, query width, key width]."""
    check_tensor("weight", weight, 2)
    return Bilinear(weight)


@dataclass(frozen=True, eq=False)
class Location(Score):
    """W q at the key's index: the key itself is not looked at, only how many there are."""

    weight: Tensor

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        return Dot()(needed(query), self.key_side(key))

    def query_side(self, query: Tensor | None) -> Tensor:
        return needed(query)

    def key_side(self, key: Tensor) -> Tensor:
        most = self.weight.shape[-2]
        if key.shape[-2] > most:
            raise ValueError(
                f"key: came {describe(key)}, {key.shape[-2]} keys; the location weight {describe(self.weight)} knows "
                f"{most} places. Remedy: a weight with a row for every place, or shorter sources."
            )
        row = self.weight[..., : key.shape[-2], :]
        lead = torch.broadcast_shapes(row.shape[:-2], key.shape[:-2])  # as many sequences and heads as there are keys
        return row.expand(*lead, *row.shape[-2:])

    @property
    def pair(self) -> Dot:
        return Dot()


def location(weight: Tensor) -> Location:
    """Scores from the query and the index of the key alone (Luong et al., 2015); weight is [*batch, places, width]."""
    check_tensor("weight", weight, 2)
    return Location(weight)


@dataclass(frozen=True, eq=False)
class Own(Pair):
    """A function of the user's: (query [*batch q d], key [*batch k d]) -> scores [*batch q k].

    It may use only its pair (q_i, k_j): what depends on position is a bias or a mask.
    """

    function: Callable[[Tensor, Tensor], Tensor]
    many = True

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        query = needed(query)
        scores = self.function(query, key)
        wanted = (query.shape[-2], key.shape[-2])
        if not isinstance(scores, Tensor) or scores.dim() < 2 or scores.shape[-2:] != torch.Size(wanted):
            raise ValueError(
                f"score: your function gave {describe(scores)} for query {describe(query)} and key {describe(key)}; "
                f"wanted [..., {wanted[0]}, {wanted[1]}]. Remedy: one number for every pair."
            )
        return wide(scores)

    def mapped(self, change: Change) -> Own:
        return self


def as_score(score: object) -> Score:
    """A score as it is, a callable as `Own`, and an error for anything else."""
    if isinstance(score, Score):
        return score
    check_called("score", score)
    if isinstance(score, type) or not callable(score):
        raise TypeError(
            f"score: came {describe(score) if not isinstance(score, type) else score.__name__}, wanted a score such as "
            f"regard.scaled_dot() or a function (query, key) -> scores. Remedy: call it, with its parameters."
        )
    return Own(score)
