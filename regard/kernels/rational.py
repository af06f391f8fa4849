"""w . tanh(a + b) by matrix products: no tanh, and one division for up to four features of a pair.

With x = exp(2 a) exp(2 b), tanh(a + b) = (x - 1) / (x + 1). Features taken together have one denominator,

    sum_c w_c (x_c - 1) / (x_c + 1) = N / D,     D = prod_c (1 + x_c) = sum_S x_S,     N = sum_S v_S x_S

over the subsets S of the group, where x_S is the product of the x_c in S and v_S is the sum of w within S less the sum
without. Each x_S is a number of the query times a number of the key, so N and D of a tile are matrix products as deep
as there are subsets. Backward, with P = ds / D and Q = P N / D, what a side gets is matrix products with P and Q.

Exponentials grow, so how many features go together depends on how large the sides are (`group_size`); where not even
one may, or where an error of a few roundings would show in the weights, `tangents` does it with a tanh.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.additive import TanhPair
from regard.core.normalisers import Softmax
from regard.core.problem import Problem
from regard.core.shapes import wide
from regard.kernels.pairs import Run, Tiles, strips
from regard.kernels.spread import Spread, flatten, spread_of

TOGETHER = 4  # more features in a group cost more products than they save divisions
PAIR, FEW = 2, 128  # so many where a token meets only few others, as its subsets are then not worth their making
LIMIT = {torch.float32: 60.0, torch.float64: 600.0}  # of the logarithm of D, so that ds / D stays a normal number
SHARPEST = {torch.float32: 25.0, torch.float64: 1e9}  # |w| over the temperature
CALMEST = {torch.float32: 2.0, torch.float64: 1e9}  # the same, where scores stay below |w|


def blunt(problem: Problem, weight: Tensor, reach: Tensor) -> bool:
    """Whether the fraction is as good as a tanh for these weights, of sides that together reach so far, [features].

    The fraction is wrong by a rounding of |w|, over the temperature; a sum of tanh by a rounding of what it gives. So
    where the sides are small, and the scores with them, the weight may be less sharp.
    """
    known = problem.normalise.temperature if isinstance(problem.normalise, Softmax) else 1.0
    coldest = float(known.detach().min()) if isinstance(known, Tensor) and known.numel() else 1.0
    warmth = coldest if isinstance(known, Tensor) else known
    size = torch.linalg.vector_norm(weight.detach(), dim=-1)
    moved = (weight.detach().abs() * reach.clamp_max(1.0)).sum(-1)
    sharpest = torch.where(moved >= size, SHARPEST[reach.dtype], CALMEST[reach.dtype])
    return bool((size <= sharpest * warmth).all())  # false for NaN


def exact_products(device: torch.device) -> bool:
    """Whether float32 products are computed in float32; PyTorch may be told to round their inputs."""
    backend = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    return backend.matmul.fp32_precision in ("none", "ieee")


def group_size(problem: Problem, pair: TanhPair) -> int:
    """How many features may share a denominator; none where tanh is wanted."""
    query, key = wide(problem.query), wide(problem.key)
    if not (query.numel() and key.numel()) or not exact_products(key.device):
        return 0
    reach = query.detach().abs().flatten(0, -2).amax(0) + key.detach().abs().flatten(0, -2).amax(0)
    if not blunt(problem, wide(pair.weight), reach):
        return 0
    most = PAIR if min(problem.queries, problem.keys) < FEW else TOGETHER
    for size in range(min(most, len(reach)), 0, -1):
        if bool(2 * grouped(reach, size).sum(-1).amax() <= LIMIT[key.dtype]):  # false for NaN
            return size
    return 0


def grouped(tensor: Tensor, size: int) -> Tensor:
    """[... features] -> [... groups size], with zeros behind."""
    missing = -tensor.shape[-1] % size
    groups: Tensor = torch.nn.functional.pad(tensor, (0, missing)).unflatten(-1, (-1, size))
    return groups


def signs(size: int, like: Tensor) -> Tensor:
    """[size subsets]: 1 where the feature is in the subset, -1 where it is not."""
    subsets = torch.arange(2**size, device=like.device)
    inside = (subsets >> torch.arange(size, device=like.device)[:, None]) & 1
    signed: Tensor = 2 * inside - 1
    return signed.to(like.dtype)


def monomials(side: Tensor, size: int, out: Tensor) -> Tensor:
    """exp(2 a) multiplied over each subset of each group: [own tokens features] -> out [own groups subsets tokens]."""
    factors = grouped(side, size).movedim(-3, -1).mul(2).exp_()  # [own groups size tokens]
    out[:, :, 0] = 1.0
    for place in range(size):
        known = 2**place
        torch.mul(out[:, :, :known], factors[:, :, place : place + 1], out=out[:, :, known : 2 * known])
    return out


class RationalTiles(Tiles):
    """w . tanh(a + b) where `group_size` allows it"""

    gathers = ("to_left", "to_right")

    def __init__(self, problem: Problem, pair: TanhPair, size: int) -> None:
        super().__init__(problem)
        weight = wide(pair.weight).to(self.key.dtype)
        self.size, self.width, self.weight_shape = size, self.key.shape[-1], weight.shape
        self.signs = signs(size, weight)
        self.groups, self.subsets = -(-self.width // size), 2**size
        self.features = 2 * self.groups
        self.lead = torch.broadcast_shapes(problem.query.shape[:-2], weight.shape[:-1])
        self.of_left = Spread(self.lead, problem.batch)
        self.of_weight = spread_of(weight, 1, problem.batch)
        self.mixed = grouped(flatten(weight, 1), size) @ self.signs  # v [own groups subsets]
        self.right = monomials(self.key, size, self.empty(self.key.shape[0], self.key.shape[1]))
        self.forget()

    def empty(self, elements: int, *tokens: int) -> Tensor:
        """[elements groups subsets ...tokens], to be written"""
        return self.key.new_empty(elements, self.groups, self.subsets, *tokens)

    def forget(self) -> None:
        """Keep nothing of the tiles before."""
        self.left: tuple[Run, range, Tensor] | None = None
        self.rights: tuple[Run, dict[int, Tensor]] = (0, 0), {}
        self.rooms: dict[tuple[int, int, int], tuple[Tensor, Tensor, Tensor]] = {}

    def twin(self) -> RationalTiles:
        other = super().twin()
        assert isinstance(other, RationalTiles)
        other.forget()
        return other

    def left_of(self, run: Run, rows: range) -> Tensor:
        """What rows multiply the right side with for N, then for D, [run groups, subsets, 2 rows]."""
        if self.left is None or self.left[:2] != (run, rows):
            query, mixed = self.rows_of(self.query, rows, run), self.of_weight.take(self.mixed, *run)
            both = self.empty(max(query.shape[0], mixed.shape[0]), 2, len(rows))
            above, below = both.unbind(3)
            if query.shape[0] == both.shape[0]:
                monomials(query, self.size, below)
            else:
                below.copy_(monomials(query, self.size, self.empty(1, len(rows))))
            torch.mul(below, mixed[..., None], out=above)
            whole = both.expand(run[1] - run[0], -1, -1, -1, -1)
            self.left = run, rows, whole.reshape(-1, self.subsets, 2 * len(rows))
        return self.left[2]

    def right_of(self, run: Run, columns: range) -> Tensor:
        """[run groups, subsets, columns]"""
        if self.rights[0] != run:
            self.rights = run, {}
        known = self.rights[1]
        if columns.start not in known:
            taken = self.of_key.take(self.right, *run)[..., columns.start : columns.stop]
            known[columns.start] = taken.expand(run[1] - run[0], -1, -1, -1).reshape(-1, self.subsets, len(columns))
        return known[columns.start]

    def room(self, count: int, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
        """Room for N and D, [count groups rows columns] each, and both as one, [count groups, 2 rows, columns]."""
        size = count, rows, columns
        if size not in self.rooms:
            both = self.key.new_empty(count * self.groups, 2 * rows, columns)
            above, below = both.view(count, self.groups, 2, rows, columns).unbind(2)
            self.rooms[size] = above, below, both
        return self.rooms[size]

    def fractions(self, run: Run, rows: range, columns: range) -> tuple[Tensor, Tensor, Tensor]:
        """(N / D, D) of a tile, [run groups rows columns] each, and the room that they lie in."""
        above, below, both = self.room(run[1] - run[0], len(rows), len(columns))
        if self.kept != (run, rows, columns):
            torch.bmm(self.left_of(run, rows).mT, self.right_of(run, columns), out=both)
            above.div_(below)
            self.kept = (run, rows, columns)
        return above, below, both

    def scores(self, run: Run, rows: range, columns: range, out: Tensor) -> None:
        for strip, part in strips(columns, out):
            self.kept = None
            torch.sum(self.fractions(run, rows, strip)[0], 1, out=part)

    def start_backward(self) -> None:
        self.to_left = self.empty(self.of_left.own, 2, self.query.shape[1]).zero_()
        self.to_right = torch.zeros_like(self.right)

    def backward(self, run: Run, rows: range, columns: range, gradient: Tensor) -> None:
        count, height = run[1] - run[0], len(rows)
        for strip, part in strips(columns, gradient):
            above, below, both = self.fractions(run, rows, strip)
            self.kept = None
            torch.div(part[:, None], below, out=below)  # P
            above.mul_(below)  # Q
            to_left = torch.bmm(self.right_of(run, strip), both.mT).view(count, self.groups, self.subsets, 2, height)
            self.of_left.add(self.to_left[..., rows.start : rows.stop], to_left, *run)
            mixed, plain = self.left_of(run, rows).split(height, -1)
            to_right = torch.bmm(mixed, both[:, height:])
            to_right.baddbmm_(plain, both[:, :height], alpha=-1)
            to_right = to_right.view(count, self.groups, self.subsets, len(strip))
            self.of_key.add(self.to_right[..., strip.start : strip.stop], to_right, *run)

    def gradients(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        queries = self.query.shape[1]
        plain = monomials(self.query, self.size, self.empty(self.query.shape[0], queries))
        plain = plain.reshape(*self.shapes[0][:-2], self.groups, self.subsets, queries)
        of_q, of_p = self.to_left.reshape(*self.lead, self.groups, self.subsets, 2, queries).unbind(-2)
        mixed = self.mixed.reshape(*self.weight_shape[:-1], self.groups, self.subsets, 1)
        twice = self.signs + 1  # 2 for each feature of a subset: d exp(2 a) / da = 2 exp(2 a)
        to_query = twice @ ((mixed * of_p - of_q) * plain)  # [... groups size queries]
        to_key = twice @ (self.right * self.to_right)  # [own groups size keys]
        to_weight = (plain * of_p).sum(-1) @ self.signs.mT  # [... groups size]
        return (
            to_query.flatten(-3, -2)[..., : self.width, :].mT.sum_to_size(self.shapes[0]),
            to_key.flatten(-3, -2)[..., : self.width, :].mT.reshape(self.shapes[1]),
            (to_weight.flatten(-2)[..., : self.width].sum_to_size(self.weight_shape),),
        )
