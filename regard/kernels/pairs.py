"""Pair forms a tile at a time: set up once per token, then scores of a tile, and backward from their gradients.

Each holds its sides flat over the batch and, for backward, buffers in which the gradients gather. Nothing here is
larger than the inputs or one tile.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.distances import DictionaryPair, DistancePair
from regard.core.problem import Problem
from regard.core.scores import Dot
from regard.core.shapes import wide
from regard.kernels.spread import flatten, spread_of

Run = tuple[int, int]
"""Batch elements, from and to."""


class Tiles(ABC):
    """A pair form for one call."""

    features = 1
    """How many numbers a pair needs at once."""
    to_query: Tensor
    to_key: Tensor
    gathers: tuple[str, ...] = ("to_query", "to_key")
    """The names of the buffers in which gradients gather."""

    def __init__(self, problem: Problem) -> None:
        self.batch = problem.batch
        self.query = flatten(wide(problem.query), 2)
        self.key = flatten(wide(problem.key), 2)
        self.of_query = spread_of(problem.query, 2, problem.batch)
        self.of_key = spread_of(problem.key, 2, problem.batch)
        self.shapes = problem.query.shape, problem.key.shape
        self.buffers: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}
        self.kept: tuple[Run, range, range] | None = None

    def twin(self) -> Tiles:
        """The same tiles for another worker: what was set up is shared, what is worked in is not."""
        other = copy.copy(self)
        other.buffers, other.kept = {}, None
        return other

    def join(self, others: Sequence[Tiles]) -> None:
        """Add the gradients that gathered elsewhere."""
        for name in self.gathers:
            for other in others:
                getattr(self, name).add_(getattr(other, name))

    @abstractmethod
    def scores(self, run: Run, rows: range, columns: range, out: Tensor) -> None:
        """Write the scores of a tile into out [run rows columns]."""

    @abstractmethod
    def start_backward(self) -> None:
        """Make the buffers for the gradients."""

    @abstractmethod
    def backward(self, run: Run, rows: range, columns: range, gradient: Tensor) -> None:
        """Add what a tile's score gradients [run rows columns] (which may be overwritten) give to the sides."""

    @abstractmethod
    def gradients(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Of the query side, the key side and the tensors of the pair form, in the order of `mapped`."""

    def rows_of(self, flat: Tensor, rows: range, run: Run) -> Tensor:
        return self.of_query.take(flat, *run)[:, rows.start : rows.stop]

    def columns_of(self, flat: Tensor, columns: range, run: Run) -> Tensor:
        return self.of_key.take(flat, *run)[:, columns.start : columns.stop]


def products(left: Tensor, right: Tensor, out: Tensor) -> None:
    """left @ right^T into out [run rows columns]; a shared side is not repeated."""
    run = out.shape[0]
    torch.bmm(left.expand(run, -1, -1), right.expand(run, -1, -1).mT, out=out)


class DotTiles(Tiles):
    """scale * q . k"""

    def __init__(self, problem: Problem, pair: Dot) -> None:
        super().__init__(problem)
        self.scale = pair.factor(problem.query.shape[-1])
        if self.scale != 1.0:
            self.query = self.query * self.scale

    def scores(self, run: Run, rows: range, columns: range, out: Tensor) -> None:
        products(self.rows_of(self.query, rows, run), self.columns_of(self.key, columns, run), out)

    def start_backward(self) -> None:
        self.to_query = torch.zeros_like(self.query)
        self.to_key = torch.zeros_like(self.key)

    def backward(self, run: Run, rows: range, columns: range, gradient: Tensor) -> None:
        count = gradient.shape[0]
        query = self.rows_of(self.query, rows, run).expand(count, -1, -1)
        key = self.columns_of(self.key, columns, run).expand(count, -1, -1)
        self.of_query.add(self.to_query[:, rows.start : rows.stop], torch.bmm(gradient, key), *run)
        one = self.of_key.single(*run)
        if one is not None and count == 1:
            self.to_key[one, columns.start : columns.stop].addmm_(gradient[0].mT, query[0])
        else:
            self.of_key.add(self.to_key[:, columns.start : columns.stop], torch.bmm(gradient.mT, query), *run)

    def gradients(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        to_query = self.to_query * self.scale if self.scale != 1.0 else self.to_query
        return to_query.reshape(self.shapes[0]), self.to_key.reshape(self.shapes[1]), ()


class DistanceTiles(DotTiles):
    """-scale |q - k|^2 = scale (2 (q-m) . (k-m) - |q-m|^2 - |k-m|^2), m the mean key.

    The distance does not change with m, and without it the squares of far-away points cancel to nothing in float32.
    """

    def __init__(self, problem: Problem, pair: DistancePair) -> None:
        super().__init__(problem, Dot())
        self.factor = pair.scale
        middle = wide(problem.key).mean(-2, keepdim=True)
        query = wide(problem.query) - middle  # over the batch of both
        self.of_query = spread_of(query, 2, problem.batch)
        self.wide_query = query.shape
        self.query, self.key = flatten(query, 2), flatten(wide(problem.key) - middle, 2)
        self.of_queries = self.query.square().sum(-1, keepdim=True)
        self.of_keys = self.key.square().sum(-1)

    def scores(self, run: Run, rows: range, columns: range, out: Tensor) -> None:
        super().scores(run, rows, columns, out)
        out.mul_(2).sub_(self.rows_of(self.of_queries, rows, run))
        out.sub_(self.columns_of(self.of_keys, columns, run)[:, None]).clamp_max_(0.0).mul_(self.factor)

    def backward(self, run: Run, rows: range, columns: range, gradient: Tensor) -> None:
        super().backward(run, rows, columns, gradient)
        query, key = self.rows_of(self.query, rows, run), self.columns_of(self.key, columns, run)
        down, across = gradient.sum(-1)[..., None], gradient.sum(-2)[..., None]
        self.of_query.add(self.to_query[:, rows.start : rows.stop], -down * query, *run)
        self.of_key.add(self.to_key[:, columns.start : columns.stop], -across * key, *run)

    def gradients(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        to_query = (2 * self.factor * self.to_query).reshape(self.wide_query).sum_to_size(self.shapes[0])
        return to_query, (2 * self.factor * self.to_key).reshape(self.shapes[1]), ()


class DictionaryTiles(Tiles):
    """-power log(epsilon + |q - k|^2), by differences: near an exact match an expanded square would be all rounding."""

    def __init__(self, problem: Problem, pair: DictionaryPair) -> None:
        super().__init__(problem)
        self.power, self.epsilon = pair.power, pair.epsilon

    def squares(self, run: Run, rows: range, columns: range) -> Tensor:
        query, key = self.rows_of(self.query, rows, run), self.columns_of(self.key, columns, run)
        distance = torch.cdist(query.contiguous(), key.contiguous(), compute_mode="donot_use_mm_for_euclid_dist")
        return distance.square_()

    def scores(self, run: Run, rows: range, columns: range, out: Tensor) -> None:
        out.copy_(self.squares(run, rows, columns).add_(self.epsilon).log_().mul_(-self.power))

    def start_backward(self) -> None:
        self.to_query = torch.zeros_like(self.query)
        self.to_key = torch.zeros_like(self.key)

    def backward(self, run: Run, rows: range, columns: range, gradient: Tensor) -> None:
        count = gradient.shape[0]
        query = self.rows_of(self.query, rows, run).expand(count, -1, -1)
        key = self.columns_of(self.key, columns, run).expand(count, -1, -1)
        middle = key.mean(1, keepdim=True)
        query, key = query - middle, key - middle
        share = gradient / self.squares(run, rows, columns).add_(self.epsilon) * (-2 * self.power)
        to_query = share.sum(-1)[..., None] * query - torch.bmm(share, key)
        to_key = share.sum(-2)[..., None] * key - torch.bmm(share.mT, query)
        self.of_query.add(self.to_query[:, rows.start : rows.stop], to_query, *run)
        self.of_key.add(self.to_key[:, columns.start : columns.stop], to_key, *run)

    def gradients(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        return self.to_query.reshape(self.shapes[0]), self.to_key.reshape(self.shapes[1]), ()
