"""What is asked of the weights, each by its definition in terms of dense weights.

A thing to see looks at some rows at a time and says how the parts of several blocks of rows come together: one after
the other ("rows"), or added up ("sum"). So it is exact on every road, and no road holds the whole matrix. Statistics
are of the weights before dropout. What a row could not see has weight zero; a row without anything to see counts in
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from regard.core.normalisers import INFINITY
from regard.core.scores import Change
from regard.core.shapes import describe, may_look

Parts = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Rows:
    """Some whole rows, as a thing to see gets them."""

    weights: Tensor  # [*batch rows keys]
    scores: Tensor  # the same, as the normaliser got them: biased, -infinity where hidden
    start: int  # of these rows among all
    queries: int  # in all
    normalise: Callable[[Tensor, Tensor | None], Tensor]

    @property
    def stop(self) -> int:
        return self.start + self.weights.shape[-2]

    @property
    def alive(self) -> Tensor:
        """[*batch rows], False where there was nothing to see."""
        return (self.scores != -INFINITY).any(-1)


class Thing(ABC):
    """Something to see."""

    name: str
    merge: Literal["rows", "sum"]
    dimension: int = -1
    """Along which the rows of several blocks follow each other."""
    pieces: int = 1
    """How many tensors a part has."""

    @abstractmethod
    def part(self, rows: Rows) -> Parts:
        """What these rows contribute."""

    @abstractmethod
    def finish(self, parts: Parts, queries: int) -> object:
        """The value, from the contributions of all rows; `queries` is how many there are."""


def only(parts: Parts) -> Tensor:
    (part,) = parts
    return part


@dataclass(frozen=True)
class Weights(Thing):
    """The weights of all queries, or of chosen ones: [*batch, queries, keys]."""

    queries: Sequence[int] | None = None
    name = "weights"
    merge = "rows"
    dimension = -2

    def chosen(self, count: int) -> list[int]:
        chosen = range(count) if self.queries is None else self.queries
        for index in chosen:
            if not -count <= index < count:
                raise IndexError(
                    f"Weights: query {index} of {count} was asked for; wanted -{count} to {count - 1}. "
                    f"Remedy: Weights(queries=[…]) within the queries, or Weights() for all."
                )
        return [index % count for index in chosen]

    def part(self, rows: Rows) -> Parts:
        if self.queries is None:
            return (rows.weights,)
        here = [
            index - rows.start for index in sorted(set(self.chosen(rows.queries))) if rows.start <= index < rows.stop
        ]
        return (rows.weights.index_select(-2, torch.tensor(here, dtype=torch.long, device=rows.weights.device)),)

    def finish(self, parts: Parts, queries: int) -> Tensor:
        rows = only(parts)
        if self.queries is None:
            return rows
        chosen = self.chosen(queries)
        place = {index: place for place, index in enumerate(sorted(set(chosen)))}
        order = [place[index] for index in chosen]
        return (
            rows if order == list(range(len(place))) else rows.index_select(-2, torch.tensor(order, device=rows.device))
        )


@dataclass(frozen=True)
class Entropy(Thing):
    """-sum p log p of every query's weights, in nats: [*batch, queries]; 0 where there is nothing to see."""

    name = "entropy"
    merge = "rows"

    def part(self, rows: Rows) -> Parts:
        if not (torch.is_grad_enabled() and rows.weights.requires_grad):
            return (torch.special.entr(rows.weights).sum(-1),)
        safe = rows.weights.where(rows.weights != 0, 1.0)  # so that the gradient at zero is zero, not infinite
        return (0.0 - (safe * safe.log()).sum(-1),)

    def finish(self, parts: Parts, queries: int) -> Tensor:
        return only(parts)


@dataclass(frozen=True, eq=False)
class Received(Thing):
    """How much attention each key gets: the sum over queries [*batch, keys], weighted [*batch, queries] if asked."""

    weights: Tensor | None = None
    name = "received"
    merge = "sum"

    def mapped(self, change: Change) -> Received:
        return self if self.weights is None else Received(change(self.weights, 1))

    def part(self, rows: Rows) -> Parts:
        if self.weights is None:
            return (rows.weights.sum(-2),)
        if self.weights.shape[-1] != rows.queries:
            raise ValueError(
                f"Received: weights came {describe(self.weights)} for {rows.queries} queries; wanted [..., "
                f"{rows.queries}]. Remedy: one number for every query."
            )
        share = self.weights[..., rows.start : rows.stop, None].to(rows.weights.dtype)
        return ((rows.weights * share).sum(-2),)

    def finish(self, parts: Parts, queries: int) -> Tensor:
        return only(parts)


class Best(NamedTuple):
    """The largest weights of every query and the keys that have them."""

    values: Tensor
    indices: Tensor


@dataclass(frozen=True)
class Top(Thing):
    """The k largest weights of every query, [*batch, queries, k], the lowest index first on ties.

    Where fewer keys have any weight, the value is 0 and the index -1.
    """

    k: int
    name = "top"
    merge = "rows"
    dimension = -2
    pieces = 2

    def part(self, rows: Rows) -> Parts:
        if self.k < 1:
            raise ValueError(f"Top: came k={self.k}, wanted one or more. Remedy: Top(8).")
        order = largest(rows.weights.detach(), min(self.k, rows.weights.shape[-1]))
        values = rows.weights.gather(-1, order)
        indices = order.masked_fill(values == 0, -1)
        missing = self.k - order.shape[-1]
        if missing > 0:
            values = torch.nn.functional.pad(values, (0, missing))
            indices = torch.nn.functional.pad(indices, (0, missing), value=-1)
        return values, indices

    def finish(self, parts: Parts, queries: int) -> Best:
        return Best(*parts)


def largest(weights: Tensor, k: int) -> Tensor:
    """The indices of the k largest, the lowest first on ties: sorting is slow, and kept for rows that have ties."""
    if may_look(weights) and weights.numel():
        values, order = weights.topk(k, dim=-1)
        last = values[..., -1:]
        level = (values[..., 1:] == values[..., :-1]) & (values[..., 1:] != 0)
        more = ((weights == last).sum(-1, keepdim=True) > (values == last).sum(-1, keepdim=True)) & (last != 0)
        if not bool(level.any() | more.any() | values.isnan().any()):
            return order
    return weights.sort(dim=-1, descending=True, stable=True).indices[..., :k]


def bins(count: int, size: int, device: torch.device) -> Tensor:
    """Which of `size` bins each of `count` positions falls into; as even as whole numbers allow."""
    return torch.arange(count, device=device) * size // max(count, 1)


@dataclass(frozen=True)
class Map(Thing):
    """The whole matrix at a size that can be looked at: [*batch, rows, columns].

    A cell is the weight that a query of its row spends on the keys of its column, averaged over the queries that see
    anything: so a row of the map sums to one, as a row of weights does.
    """

    size: int | tuple[int, int] = 256
    name = "map"
    merge = "sum"
    pieces = 2

    def sizes(self, queries: int, keys: int) -> tuple[int, int]:
        size = (self.size, self.size) if isinstance(self.size, int) else self.size
        if len(size) != 2 or min(size) < 1:
            raise ValueError(f"Map: came size={self.size}, wanted one or two positive numbers. Remedy: Map(256).")
        return min(size[0], queries), min(size[1], keys)

    def part(self, rows: Rows) -> Parts:
        height, width = self.sizes(rows.queries, rows.weights.shape[-1])
        device = rows.weights.device
        down = bins(rows.queries, height, device)[rows.start : rows.stop]
        across = bins(rows.weights.shape[-1], width, device)
        batch = rows.weights.shape[:-2]
        narrow = rows.weights.new_zeros(*batch, rows.weights.shape[-2], width).index_add(-1, across, rows.weights)
        total = rows.weights.new_zeros(*batch, height, width).index_add(-2, down, narrow)
        count = rows.weights.new_zeros(*batch, height).index_add(-1, down, rows.alive.to(rows.weights.dtype))
        return total, count

    def finish(self, parts: Parts, queries: int) -> Tensor:
        total, count = parts
        return total / count.clamp_min(1)[..., None]


@dataclass(frozen=True)
class Tile(Thing):
    """Any part of the matrix: [*batch, rows, keys], given by two ranges."""

    rows: range
    keys: range
    name = "tile"
    merge = "rows"
    dimension = -2

    def part(self, rows: Rows) -> Parts:
        for name, asked, count in (("rows", self.rows, rows.queries), ("keys", self.keys, rows.weights.shape[-1])):
            if asked.step != 1 or asked.start < 0 or asked.stop > count:
                raise IndexError(
                    f"Tile: {name}={asked} of {count} was asked for; wanted a range of step one from 0 to {count}. "
                    f"Remedy: Tile(range(0, 64), range(0, 64))."
                )
        first = min(max(self.rows.start, rows.start), rows.stop) - rows.start
        last = max(min(self.rows.stop, rows.stop) - rows.start, first)
        return (rows.weights[..., first:last, self.keys.start : self.keys.stop],)

    def finish(self, parts: Parts, queries: int) -> Tensor:
        return only(parts)


def rows_before(thing: Thing, start: int, queries: int) -> int:
    """How many rows of what merges by rows come before query `start`."""
    if isinstance(thing, Weights) and thing.queries is not None:
        return sum(index < start for index in set(thing.chosen(queries)))
    if isinstance(thing, Tile):
        return min(max(start - thing.rows.start, 0), len(thing.rows))
    return start
