"""A problem as a walk over blocks: some rows of some batch elements at a time, with what their scores meet.

The walk flattens the batch, chooses how large a block may be, and gives for each block its scores (biased and masked),
its values, its dropout and its part of what is to be seen. Forward and backward take the same walk.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core import chance, normalisers
from regard.core.additive import TanhPair
from regard.core.distances import DictionaryPair, DistancePair
from regard.core.finite import poison
from regard.core.normalisers import INFINITY
from regard.core.problem import Problem
from regard.core.scores import Dot
from regard.core.see import Parts, Received, Rows, Thing
from regard.core.shapes import wide
from regard.kernels.pairs import WIDTH, DictionaryTiles, DistanceTiles, DotTiles, Run, Tiles, parts_of
from regard.kernels.rational import RationalTiles, group_size
from regard.kernels.spread import flatten, spread_of
from regard.kernels.tangents import TanhTiles
from regard.kernels.workers import worth

KNOWN = (Dot, DistancePair, DictionaryPair, TanhPair)
CACHE = 2**18  # numbers of a tile that stay in a core's cache
MANY = 2**21  # the same of a tile with several for each pair, where changing threads costs more than the cache saves
DEVICE = 2**24  # the same where launches, not caches, are what to save


def tiles_of(problem: Problem) -> Tiles:
    """The pair form of this problem, ready for tiles."""
    pair = problem.pair
    if isinstance(pair, Dot):
        return DotTiles(problem, pair)
    if isinstance(pair, DistancePair):
        return DistanceTiles(problem, pair)
    if isinstance(pair, DictionaryPair):
        return DictionaryTiles(problem, pair)
    if isinstance(pair, TanhPair):
        size = group_size(problem, pair)
        return RationalTiles(problem, pair, size) if size else TanhTiles(problem, pair)
    raise TypeError(f"tiled: {type(pair).__name__} is not among {', '.join(known.__name__ for known in KNOWN)}")


def block_sizes(problem: Problem, features: int, columns: int, workers: int = 1) -> tuple[int, int]:
    """How many batch elements and how many rows make a block whose tiles fit, with a block for every worker."""
    budget = DEVICE if problem.key.device.type != "cpu" else MANY if features > 1 else CACHE
    total, queries = max(problem.batch.numel(), 1), max(problem.queries, 1)
    across = max(min(columns, WIDTH) * features if features > 1 else columns, 1)
    rows = budget // across
    rows = max(1, min(rows - rows % 32 if rows > 32 else rows, queries))
    elements = max(1, min(budget // (across * rows), total))
    if total >= workers:
        return min(elements, -(-total // workers)), rows
    return elements, min(rows, -(-queries // workers))


@dataclass(frozen=True, eq=False)
class Block:
    """Where a block is, and what its scores meet."""

    run: Run
    rows: range
    columns: range
    hidden: Tensor | None  # [run or 1, rows or 1, columns or 1], True where nothing may be seen
    bias: Tensor | None  # [run or 1, rows or 1, columns or 1]

    @property
    def size(self) -> tuple[int, int, int]:
        return self.run[1] - self.run[0], len(self.rows), len(self.columns)

    @property
    def place(self) -> tuple[slice, slice]:
        """Of its rows, in a tensor over all elements and queries."""
        return slice(*self.run), slice(self.rows.start, self.rows.stop)


class Walk:
    """The blocks of one call, in order, and what is the same for forward and backward."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.workers, self.number = 1, 0
        self.total = problem.batch.numel()
        self.tiles = tiles_of(problem)
        self.value = flatten(wide(problem.value), 2)
        self.of_value = spread_of(problem.value, 2, problem.batch)
        self.normalise = normalisers.mapped(problem.normalise, self.over_batch)
        self.things = tuple(
            thing.mapped(self.over_batch) if isinstance(thing, Received) else thing for thing in problem.see
        )
        self.bad_query = None if problem.bad_query is None else self.over_batch(problem.bad_query, 1)
        self.bad_key = None if problem.bad_key is None else self.over_batch(problem.bad_key, 1)

    def shares(self, own: int) -> list[Walk]:
        """This walk for as many workers as are worth it, taking turns at the blocks; each has `own` bytes to itself."""
        problem = self.problem
        numbers = self.total * problem.queries * problem.keys * self.tiles.features
        self.workers = worth(numbers, own, problem.key.device)
        others = [copy.copy(self) for _ in range(1, self.workers)]
        for number, other in enumerate(others, 1):
            other.number, other.tiles = number, self.tiles.twin()
        return [self, *others]

    def over_batch(self, tensor: Tensor, own: int) -> Tensor:
        """[*lead ...own] -> [elements ...own], repeated as far as it must be: for what is small."""
        whole = tensor.shape[tensor.dim() - own :]
        return tensor.expand(torch.Size((*self.problem.batch, *whole))).reshape(self.total, *whole)

    def buffer(self, width: int) -> Tensor:
        """Room for the scores of any block of so many columns."""
        elements, height = block_sizes(self.problem, self.tiles.features, width, self.workers)
        return self.value.new_empty(elements * height * width)

    def blocks(self, width: int | None = None) -> Iterator[Block]:
        """This worker's blocks of whole rows; or, with a width, of parts of rows, without those that see nothing."""
        problem = self.problem
        elements, height = block_sizes(problem, self.tiles.features, width or problem.keys, self.workers)
        starts = range(0, self.total, elements)
        for turn, first in enumerate(range(0, problem.queries, height)):
            mine = starts[(self.number - turn * len(starts)) % self.workers :: self.workers]
            if not mine:
                continue
            rows = range(first, min(first + height, problem.queries))
            span = problem.span(rows)
            for columns in [span] if width is None else parts_of(span, width):
                mask, bias = problem.mask_tile(rows, columns), problem.bias_tile(rows, columns)
                if mask is False and width is not None:
                    continue
                hidden = ~mask if isinstance(mask, Tensor) else None
                if mask is False:
                    hidden = torch.ones(1, 1, dtype=torch.bool, device=problem.key.device)
                for start in mine:
                    run = start, min(start + elements, self.total)
                    yield Block(run, rows, columns, self.taken(hidden, run), self.taken(bias, run))

    def taken(self, tile: Tensor | None, run: Run) -> Tensor | None:
        """A run of a tile [*lead rows columns]."""
        return None if tile is None else spread_of(tile, 2, self.problem.batch).take(flatten(tile, 2), *run)

    def scores(self, block: Block, buffer: Tensor) -> Tensor:
        """Scores of a block, with bias, -infinity where hidden, in the buffer."""
        size = block.size
        out = buffer[: size[0] * size[1] * size[2]].view(size)
        self.tiles.scores(block.run, block.rows, block.columns, out)
        if block.bias is not None:
            out.add_(block.bias)
        if block.hidden is not None:
            out.masked_fill_(block.hidden, -INFINITY)
        return out

    def values(self, block: Block) -> Tensor:
        """[run columns v]"""
        taken = self.of_value.take(self.value, *block.run)[:, block.columns.start : block.columns.stop]
        return taken.expand(block.size[0], -1, -1)

    def kept(self, block: Block) -> Tensor | None:
        """What dropout multiplies the weights with."""
        problem = self.problem
        if not problem.dropout:
            return None
        device = problem.key.device
        if problem.seed is None:
            return self.value.new_zeros(())
        elements = torch.arange(*block.run, device=device)
        rows, columns = (torch.arange(r.start, r.stop, device=device) for r in (block.rows, block.columns))
        kept = chance.kept(problem.seed, elements, rows, columns, problem.dropout)
        return kept.to(self.value.dtype).div_(1 - problem.dropout)

    def lost(self, block: Block) -> Tensor | None:
        """Rows [run rows] that may see a token that holds NaN."""
        pairs = None
        if self.bad_key is not None:
            pairs = self.bad_key[slice(*block.run), None, block.columns.start : block.columns.stop]
        if self.bad_query is not None:
            asking = self.bad_query[block.place][..., None]
            pairs = asking if pairs is None else pairs | asking
        if pairs is None:
            return None
        whole = pairs.expand(block.size)
        return (whole if block.hidden is None else whole & ~block.hidden).any(-1)

    def weights(self, block: Block, scores: Tensor) -> Tensor:
        """What the normaliser makes of a block of whole rows."""
        visible = None if block.hidden is None else ~block.hidden.expand(block.size)
        return self.normalise_of(block)(scores, visible)

    def normalise_of(self, block: Block) -> normalisers.Callables:
        run = normalisers.mapped(self.normalise, lambda tensor, _: tensor[slice(*block.run)])
        return normalisers.rows(run, block.rows.start, block.rows.stop)

    def parts(self, block: Block, weights: Tensor, scores: Tensor) -> list[Parts]:
        """What is to be seen of a block of whole rows."""
        if not self.things:
            return []
        lost = self.lost(block)
        if lost is not None:
            places = lost[..., None] & (scores != -INFINITY)
            weights, scores = poison(weights, places), poison(scores, places)
        around = (block.columns.start, self.problem.keys - block.columns.stop)
        if any(around):
            weights = torch.nn.functional.pad(weights, around)
            scores = torch.nn.functional.pad(scores, around, value=-INFINITY)
        rows = Rows(weights, scores, block.rows.start, self.problem.queries, self.normalise_of(block))
        return [run_of(thing, block.run).part(rows) for thing in self.things]


def run_of(thing: Thing, run: Run) -> Thing:
    """The thing to see of a run of batch elements."""
    return thing.mapped(lambda tensor, _: tensor[slice(*run)]) if isinstance(thing, Received) else thing
