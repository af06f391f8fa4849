"""Pair forms a tile at a time: set up once per token, then scores of a tile, and backward from their gradients.

Each holds its sides flat over the batch and, for backward, buffers in which the gradients gather. Nothing here is
larger than the inputs or one tile.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regard.core.distances import DictionaryPair, DistancePair
from regard.core.problem import Problem
from regard.core.scores import Dot
from regard.core.shapes import wide
from regard.kernels.spread import flatten, spread_of

Run = tuple[int, int]
"""Batch elements, from and to."""

WIDTH = 128  # keys in a strip of a tile whose pairs need several numbers


def parts_of(span: range, width: int) -> Iterator[range]:
    """The span in parts of this width."""
    for start in range(span.start, span.stop, width):
        yield range(start, min(start + width, span.stop))


def strips(columns: range, tile: Tensor) -> Iterator[tuple[range, Tensor]]:
    """Parts of the columns, each with its part of a tile [run rows columns]."""
    for strip in parts_of(columns, WIDTH):
        yield strip, tile[:, :, strip.start - columns.start : strip.stop - columns.start]


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
        self.buffers: dict[tuple[int, ...], Tensor] = {}
        self.kept: tuple[Run, range, range] | None = None

    def twin(self) -> Tiles:
        """The same tiles for another worker: what was set up is shared, what is worked in is not."""
        other = copy.copy(self)
        other.buffers, other.kept = {}, None
        return other

    def buffer(self, *size: int) -> Tensor:
        """Room to work in, made once per size."""
        if size not in self.buffers:
            self.buffers[size] = self.key.new_empty(size)
        return self.buffers[size]

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


class SquareTiles(Tiles):
    """What depends on |q - k|^2 alone, by differences: an expanded square would be all rounding where the points are
    far from the origin, or near each other.

    Backward, with x = |q - k|^2 and t = 2 dx,  dq = q sum t - t k  and  dk = k sum t - t^T q,  where q and k are taken
    from a common centre, which changes neither.
    """

    def squares(self, run: Run, rows: range, columns: range) -> Tensor:
        """|q - k|^2 of a tile, [run or 1, rows, columns]."""
        query, key = self.rows_of(self.query, rows, run), self.columns_of(self.key, columns, run)
        distance = torch.cdist(query.contiguous(), key.contiguous(), compute_mode="donot_use_mm_for_euclid_dist")
        return distance.square_()

    @abstractmethod
    def score(self, squares: Tensor) -> Tensor:
        """The score of a squared distance, which may be overwritten."""

    @abstractmethod
    def slope(self, gradient: Tensor, run: Run, rows: range, columns: range) -> Tensor:
        """Twice the gradient of the squared distances, from that of the scores."""

    def scores(self, run: Run, rows: range, columns: range, out: Tensor) -> None:
        out.copy_(self.score(self.squares(run, rows, columns)))

    def start_backward(self) -> None:
        self.to_query = torch.zeros_like(self.query)
        self.to_key = torch.zeros_like(self.key)

    def backward(self, run: Run, rows: range, columns: range, gradient: Tensor) -> None:
        if not len(columns):  # no keys have no centre
            return
        count = gradient.shape[0]
        query = self.rows_of(self.query, rows, run).expand(count, -1, -1)
        key = self.columns_of(self.key, columns, run).expand(count, -1, -1)
        middle = key.mean(1, keepdim=True)
        query, key = query - middle, key - middle
        twice = self.slope(gradient, run, rows, columns)
        to_query = twice.sum(-1)[..., None] * query - torch.bmm(twice, key)
        to_key = twice.sum(-2)[..., None] * key - torch.bmm(twice.mT, query)
        self.of_query.add(self.to_query[:, rows.start : rows.stop], to_query, *run)
        self.of_key.add(self.to_key[:, columns.start : columns.stop], to_key, *run)

    def gradients(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        return self.to_query.reshape(self.shapes[0]), self.to_key.reshape(self.shapes[1]), ()


class DistanceTiles(SquareTiles):
    """-scale |q - k|^2"""

    def __init__(self, problem: Problem, pair: DistancePair) -> None:
        super().__init__(problem)
        self.factor = -pair.scale

    def score(self, squares: Tensor) -> Tensor:
        return squares.mul_(self.factor)

    def slope(self, gradient: Tensor, run: Run, rows: range, columns: range) -> Tensor:
        return gradient * (2 * self.factor)


class DictionaryTiles(SquareTiles):
    """-power log(epsilon + |q - k|^2)"""

    def __init__(self, problem: Problem, pair: DictionaryPair) -> None:
        super().__init__(problem)
        self.power, self.epsilon = pair.power, pair.epsilon

    def score(self, squares: Tensor) -> Tensor:
        return squares.add_(self.epsilon).log_().mul_(-self.power)

    def slope(self, gradient: Tensor, run: Run, rows: range, columns: range) -> Tensor:
        return gradient / self.squares(run, rows, columns).add_(self.epsilon) * (-2 * self.power)
