"""w . tanh(a + b) without a tanh: exponentials once per token, and one reciprocal for every pair and feature.

    tanh(a + b) = 1 - 2 / (1 + A B),     A = exp(2 a),  B = exp(2 b)
    score = sum w + sum 1 / (f + A' B),  f = -1 / (2 w),      A' = A f

While b stays within REACH, B is within the type, and a may be held to EDGE: beyond it tanh is saturated for every such
key. A tile with keys farther out is computed by tanh. The two sides are never clamped apart from each other: a = 60,
b = -59 is tanh(1).

Reciprocals are right to about 2e-7 where tanh is to 6e-8. What that comes to in the weights grows with |w| over the
temperature; where it would show (SHARPEST), all tiles are computed by tanh.

A weight of zero makes f infinite and its term zero, which is right. Backward, with r = 1 / (1 + A B) and s the score,

    ds/dw = 1 - 2 r,     ds/da = ds/db = 4 w r (1 - r)
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.additive import TanhPair
from regard.core.normalisers import Softmax
from regard.core.problem import Problem
from regard.core.shapes import wide
from regard.kernels.pairs import Run, Tiles
from regard.kernels.spread import Spread, flatten, spread_of

EDGE = {torch.float32: 43.0, torch.float64: 340.0}
REACH = {torch.float32: 33.0, torch.float64: 300.0}
SHARPEST = {torch.float32: 25.0, torch.float64: 1e9}
WIDTH = 128  # keys in an inner tile


def sharpness(problem: Problem, weight: Tensor) -> float:
    """|w| over the temperature: how much an error inside the tanh grows on its way to the weights."""
    known = problem.normalise.temperature if isinstance(problem.normalise, Softmax) else 1.0
    coldest = float(known.detach().min()) if isinstance(known, Tensor) and known.numel() else 1.0
    warmth = coldest if isinstance(known, Tensor) else known
    return float(torch.linalg.vector_norm(weight.detach(), dim=-1).max()) / warmth if weight.numel() else 0.0


class TanhTiles(Tiles):
    """w . tanh(a + b)"""

    gathers = ("to_query", "to_key", "to_weight")

    def __init__(self, problem: Problem, pair: TanhPair) -> None:
        super().__init__(problem)
        dtype = self.key.dtype
        self.features = max(self.key.shape[-1], 1)
        weight = wide(pair.weight).to(dtype)
        query = wide(problem.query)
        lead = torch.Size(torch.broadcast_shapes(query.shape[:-2], weight.shape[:-1]))
        self.of_weight = spread_of(weight, 1, problem.batch)
        self.of_folded = Spread(lead, problem.batch)
        self.weight = flatten(weight, 1)
        self.weight_shape = pair.weight.shape
        self.fold, self.doubled = -0.5 / self.weight, -2 * self.weight
        self.total = self.weight.sum(-1)
        self.one = torch.ones_like(self.weight[:1, :1])
        self.keeping = False  # backward needs r of the tile whose scores it has just asked for
        self.reach = REACH[dtype] if sharpness(problem, weight) <= SHARPEST[dtype] else -1.0
        self.within = not self.key.numel() or bool(self.key.abs().amax() <= self.reach)  # of all keys; false for NaN
        left = torch.exp(2 * query.clamp(-EDGE[dtype], EDGE[dtype]))
        self.left = flatten(left, 2)  # A
        self.right = torch.exp(2 * self.key)  # B
        self.folded = flatten(left * (-0.5 / weight)[..., None, :], 2)  # A'

    def buffer(self, run: Run, rows: range, columns: range) -> tuple[Tensor, Tensor]:
        """Two tiles [run rows columns features] to work in, made once per size."""
        size = (run[1] - run[0], len(rows), len(columns), self.key.shape[-1])
        if size not in self.buffers:
            self.buffers[size] = (self.key.new_empty(size), self.key.new_empty(size))
        return self.buffers[size]

    def scores(self, run: Run, rows: range, columns: range, out: Tensor) -> None:
        fold = self.of_weight.take(self.fold, *run)[:, None, None]
        total = self.of_weight.take(self.total, *run)[:, None, None]
        for start in range(columns.start, columns.stop, WIDTH):
            inner = range(start, min(start + WIDTH, columns.stop))
            part = out[:, :, start - columns.start : inner.stop - columns.start]
            tile, work = self.buffer(run, rows, inner)
            if not self.is_within(run, inner):
                self.tangents(run, rows, inner, tile)
                torch.mul(tile, self.of_weight.take(self.weight, *run)[:, None, None], out=work)
                torch.sum(work, -1, out=part)
                continue
            if self.keeping:
                self.halves(run, rows, inner, tile)
                torch.mul(tile, self.of_weight.take(self.doubled, *run)[:, None, None], out=work)
                torch.sum(work, -1, out=part)
                part.add_(total)
                continue
            folded = self.of_folded.take(self.folded, *run)[:, rows.start : rows.stop, None]
            right = self.columns_of(self.right, inner, run)[:, None]
            torch.addcmul(fold, folded.expand_as(tile[:, :, :1]), right, out=tile).reciprocal_()
            torch.sum(tile, -1, out=part)
            part.add_(total)

    def is_within(self, run: Run, inner: range) -> bool:
        """Whether the exponentials of these keys are within the type."""
        return self.within or bool(self.columns_of(self.key, inner, run).abs().amax() <= self.reach)

    def halves(self, run: Run, rows: range, inner: range, tile: Tensor) -> None:
        """r = 1 / (1 + A B) = (1 - tanh(a + b)) / 2 of a tile."""
        if not self.is_within(run, inner):
            self.tangents(run, rows, inner, tile)
            tile.mul_(-0.5).add_(0.5)
            return
        left = self.rows_of(self.left, rows, run)[:, :, None].expand_as(tile[:, :, :1])
        torch.addcmul(self.one, left, self.columns_of(self.right, inner, run)[:, None], out=tile).reciprocal_()
        self.kept = (run, rows, inner)

    def tangents(self, run: Run, rows: range, inner: range, tile: Tensor) -> None:
        """tanh(a + b) of a tile."""
        left = self.rows_of(self.query, rows, run)[:, :, None].expand_as(tile[:, :, :1])
        torch.add(left, self.columns_of(self.key, inner, run)[:, None], out=tile).tanh_()
        self.kept = None

    def start_backward(self) -> None:
        self.keeping = True
        self.wide_query, self.wide_key = (
            torch.Size((*torch.broadcast_shapes(shape[:-2], self.weight_shape[:-1]), *shape[-2:]))
            for shape in self.shapes
        )
        self.for_query, self.for_key = (Spread(shape[:-2], self.batch) for shape in (self.wide_query, self.wide_key))
        self.to_query = self.key.new_zeros(self.for_query.own, *self.wide_query[-2:])
        self.to_key = self.key.new_zeros(self.for_key.own, *self.wide_key[-2:])
        self.to_weight = torch.zeros_like(self.weight)

    def backward(self, run: Run, rows: range, columns: range, gradient: Tensor) -> None:
        self.of_weight.add(self.to_weight, gradient.sum((1, 2))[:, None].expand(-1, self.weight.shape[-1]), *run)
        for start in range(columns.start, columns.stop, WIDTH):
            inner = range(start, min(start + WIDTH, columns.stop))
            part = gradient[:, :, start - columns.start : inner.stop - columns.start, None]
            tile, work = self.buffer(run, rows, inner)
            if self.kept != (run, rows, inner):
                self.halves(run, rows, inner, tile)
            torch.mul(tile, part, out=work)  # ds r
            self.of_weight.add(self.to_weight, work.sum(2).sum(1).mul_(-2), *run)
            work.addcmul_(work, tile, value=-1)  # ds r (1 - r)
            self.for_query.add(self.to_query[:, rows.start : rows.stop], work.sum(2), *run)
            self.for_key.add(self.to_key[:, inner.start : inner.stop], work.sum(1), *run)

    def gradients(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        weight = 4 * self.weight.reshape(*self.weight_shape[:-1], 1, -1)
        to_query = self.to_query.reshape(self.wide_query) * weight
        to_key = self.to_key.reshape(self.wide_key) * weight
        return (
            to_query.sum_to_size(self.shapes[0]),
            to_key.sum_to_size(self.shapes[1]),
            (self.to_weight.reshape(self.weight_shape),),
        )
