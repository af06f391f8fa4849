"""w . tanh(a + b) as it is written, a tile at a time: right at every magnitude.

Backward, with t = tanh(a + b) and s the score,

    ds/dw = t,     ds/da = ds/db = w (1 - t^2)
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.additive import TanhPair
from regard.core.problem import Problem
from regard.core.shapes import wide
from regard.kernels.pairs import Run, Tiles, strips
from regard.kernels.spread import Spread, flatten, spread_of


class TanhTiles(Tiles):
    """w . tanh(a + b)"""

    gathers = ("to_query", "to_key", "to_weight")

    def __init__(self, problem: Problem, pair: TanhPair) -> None:
        super().__init__(problem)
        self.features = max(self.key.shape[-1], 1)
        weight = wide(pair.weight).to(self.key.dtype)
        self.of_weight = spread_of(weight, 1, problem.batch)
        self.weight, self.weight_shape = flatten(weight, 1), weight.shape

    def room(self, run: Run, rows: range, columns: range) -> tuple[Tensor, Tensor]:
        """Two tiles [run rows columns features] to work in."""
        tile, work = self.buffer(2, run[1] - run[0], len(rows), len(columns), self.key.shape[-1])
        return tile, work

    def weight_of(self, run: Run) -> Tensor:
        """[run or 1, 1, 1, features]"""
        return self.of_weight.take(self.weight, *run)[:, None, None]

    def tangents(self, run: Run, rows: range, columns: range, tile: Tensor) -> None:
        """tanh(a + b) of a tile."""
        left = self.rows_of(self.query, rows, run)[:, :, None].expand_as(tile[:, :, :1])
        torch.add(left, self.columns_of(self.key, columns, run)[:, None], out=tile).tanh_()
        self.kept = (run, rows, columns)

    def scores(self, run: Run, rows: range, columns: range, out: Tensor) -> None:
        for strip, part in strips(columns, out):
            tile, work = self.room(run, rows, strip)
            self.tangents(run, rows, strip, tile)
            torch.mul(tile, self.weight_of(run), out=work)
            torch.sum(work, -1, out=part)

    def start_backward(self) -> None:
        query, key = self.shapes
        lead = self.weight_shape[:-1]
        self.wide_query, self.wide_key = (
            torch.Size((*torch.broadcast_shapes(shape[:-2], lead), *shape[-2:])) for shape in (query, key)
        )
        self.for_query, self.for_key = (Spread(shape[:-2], self.batch) for shape in (self.wide_query, self.wide_key))
        self.to_query = self.key.new_zeros(self.for_query.own, *self.wide_query[-2:])
        self.to_key = self.key.new_zeros(self.for_key.own, *self.wide_key[-2:])
        self.to_weight = torch.zeros_like(self.weight)

    def backward(self, run: Run, rows: range, columns: range, gradient: Tensor) -> None:
        for strip, part in strips(columns, gradient):
            tile, work = self.room(run, rows, strip)
            if self.kept != (run, rows, strip):
                self.tangents(run, rows, strip, tile)
            slope = part[..., None]
            torch.mul(tile, slope, out=work)  # ds t
            self.of_weight.add(self.to_weight, work.sum(2).sum(1), *run)
            torch.addcmul(slope, work, tile, value=-1, out=work)  # ds (1 - t^2)
            self.for_query.add(self.to_query[:, rows.start : rows.stop], work.sum(2), *run)
            self.for_key.add(self.to_key[:, strip.start : strip.stop], work.sum(1), *run)

    def gradients(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        weight = self.weight.reshape(*self.weight_shape[:-1], 1, -1)
        to_query = self.to_query.reshape(self.wide_query) * weight
        to_key = self.to_key.reshape(self.wide_key) * weight
        return (
            to_query.sum_to_size(self.shapes[0]),
            to_key.sum_to_size(self.shapes[1]),
            (self.to_weight.reshape(self.weight_shape),),
        )
