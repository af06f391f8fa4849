"""w . tanh(a + b) without a tanh: exponentials once per token, and one reciprocal for every pair and feature.

    tanh(a + b) = 1 - 2 / (1 + A B),     A = exp(2 (a + c)),  B = exp(2 (b - c))
    score = sum w + sum 1 / (f + A' B),  f = -1 / (2 w),      A' = A f

The centre c of the keys' range, by feature, keeps A and B within the type. While b stays within REACH of c, a + c may
be held to EDGE: beyond it tanh is saturated for every such key. Where the range of all keys is wider, each tile of keys
is centred by itself, and where even a tile is wider, that tile is computed by tanh. The two sides are never clamped
apart from each other: a = 10, b = -9 is tanh(1).

A weight of zero makes f infinite and its term zero, which is right. Backward, with r = 1 / (1 + A B) and s the score,

    ds/dw = 1 - 2 r,     ds/da = ds/db = 4 w r (1 - r)
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.additive import TanhPair
from regard.core.problem import Problem
from regard.core.shapes import wide
from regard.kernels.pairs import Run, Tiles
from regard.kernels.spread import Spread, flatten, spread_of

EDGE = {torch.float32: 43.0, torch.float64: 340.0}
REACH = {torch.float32: 33.0, torch.float64: 300.0}
WIDTH = 128  # keys in an inner tile


class TanhTiles(Tiles):
    """w . tanh(a + b)"""

    gathers = ("to_query", "to_key", "to_weight")

    def __init__(self, problem: Problem, pair: TanhPair) -> None:
        super().__init__(problem)
        dtype = self.key.dtype
        self.features = max(self.key.shape[-1], 1)
        weight = wide(pair.weight).to(dtype)
        query, key = wide(problem.query).to(dtype), wide(problem.key)
        none = key.new_zeros(*key.shape[:-2], 1, key.shape[-1])
        low, high = (key.amin(-2, keepdim=True), key.amax(-2, keepdim=True)) if key.shape[-2] else (none, none)
        self.edge, self.reach = EDGE[dtype], REACH[dtype]
        self.centred = bool(((high - low) <= 2 * self.reach).all())  # false for NaN
        middle = (low + high) / 2 if self.centred else none
        centred = query + middle
        lead = torch.broadcast_shapes(centred.shape[:-2], weight.shape[:-1])
        centred = centred.expand(*lead, *centred.shape[-2:])
        self.weight_shape, self.wide_query = pair.weight.shape, centred.shape
        self.of_query = Spread(torch.Size(lead), problem.batch)
        self.of_weight = spread_of(weight, 1, problem.batch)
        self.weight = flatten(weight, 1)
        self.fold = -0.5 / self.weight
        self.doubled = -2 * self.weight
        self.one = torch.ones_like(self.weight[:1, :1])
        self.keeping = False  # backward needs r of the tile whose scores it has just asked for
        self.total = self.weight.sum(-1)
        if self.centred:
            self.left = flatten(torch.exp(2 * centred.clamp(-self.edge, self.edge)), 2)  # A
            self.right = flatten(torch.exp(2 * (key - middle)), 2)  # B
            self.folded = flatten(self.left.reshape(centred.shape) * (-0.5 / weight)[..., None, :], 2)  # A'
        else:
            self.query = flatten(centred, 2)

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
            if self.keeping or not self.centred:
                self.halves(run, rows, inner, tile)
                torch.mul(tile, self.of_weight.take(self.doubled, *run)[:, None, None], out=work)
                torch.sum(work, -1, out=part)
                continue
            folded, right = self.rows_of(self.folded, rows, run), self.columns_of(self.right, inner, run)
            torch.addcmul(fold, folded[:, :, None].expand_as(tile[:, :, :1]), right[:, None], out=tile).reciprocal_()
            torch.sum(tile, -1, out=part)
        out.add_(total)

    def halves(self, run: Run, rows: range, inner: range, tile: Tensor) -> None:
        """r = 1 / (1 + A B) = (1 - tanh(a + b)) / 2 of a tile."""
        self.kept = (run, rows, inner)
        if self.centred:
            left, right = self.rows_of(self.left, rows, run), self.columns_of(self.right, inner, run)
        else:
            query, key = self.rows_of(self.query, rows, run), self.columns_of(self.key, inner, run)
            low, high = key.amin(1, keepdim=True), key.amax(1, keepdim=True)
            if not bool(((high - low) <= 2 * self.reach).all()):
                torch.add(query[:, :, None].expand_as(tile[:, :, :1]), key[:, None], out=tile).tanh_().mul_(-0.5).add_(
                    0.5
                )
                return
            middle = (low + high) / 2
            left = torch.exp(2 * (query + middle).clamp(-self.edge, self.edge))
            right = torch.exp(2 * (key - middle))
        torch.addcmul(self.one, left[:, :, None].expand_as(tile[:, :, :1]), right[:, None], out=tile).reciprocal_()

    def start_backward(self) -> None:
        features = self.key.shape[-1]
        self.keeping = True
        self.to_query = self.key.new_zeros(self.of_query.own, self.wide_query[-2], features)
        lead = torch.broadcast_shapes(self.shapes[1][:-2], self.weight_shape[:-1])
        self.wide_key = torch.Size((*lead, *self.shapes[1][-2:]))
        self.for_key = Spread(torch.Size(lead), self.batch)
        self.to_key = self.key.new_zeros(self.for_key.own, self.shapes[1][-2], features)
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
            self.of_query.add(self.to_query[:, rows.start : rows.stop], work.sum(2), *run)
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
