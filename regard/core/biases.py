"""What is added to the scores: a tensor, or a rule that can make any tile of itself, so that no road needs the whole.

Biases add up with `+`. A learned one has a gradient on every road.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.masks import Block, positions, turned
from regard.core.scores import Change
from regard.core.shapes import check_called, check_tensor, describe, fits, wide
from regard.core.windows import Align, align_offset, check_align


class Bias(ABC):
    """Numbers [*batch q k] that are made a tile at a time."""

    @abstractmethod
    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor:
        """The part of the whole [*batch q k] at these rows and columns; any of its sizes may be one."""

    @abstractmethod
    def mapped(self, change: Change) -> Bias:
        """The same bias with every tensor that it holds changed."""

    def __add__(self, other: Bias | Tensor) -> Bias:
        return Sum(self, as_bias(other))


@dataclass(frozen=True, eq=False)
class Sum(Bias):
    """Two biases, one after the other."""

    left: Bias
    right: Bias

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor:
        return wide(self.left.tile(rows, columns, shape, device)) + wide(self.right.tile(rows, columns, shape, device))

    def mapped(self, change: Change) -> Bias:
        return Sum(self.left.mapped(change), self.right.mapped(change))


@dataclass(frozen=True, eq=False)
class Dense(Bias):
    """A tensor that broadcasts to the scores."""

    tensor: Tensor

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor:
        whole = self.tensor.reshape((1,) * max(2 - self.tensor.dim(), 0) + self.tensor.shape)
        if not fits(whole.shape, shape):
            raise ValueError(
                f"bias: came {describe(self.tensor)} for scores {list(shape)}; wanted a tensor that broadcasts to "
                f"them, from the right. Remedy: unsqueeze the dimensions that are missing."
            )
        if whole.shape[-2] != 1:
            whole = whole[..., rows.start : rows.stop, :]
        if whole.shape[-1] != 1:
            whole = whole[..., columns.start : columns.stop]
        return whole

    def mapped(self, change: Change) -> Bias:
        return Dense(change(self.tensor, self.tensor.dim()))


@dataclass(frozen=True, eq=False)
class Turned(Bias):
    """A bias with queries and keys exchanged, as co-attention needs it."""

    bias: Bias

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor:
        return self.bias.tile(columns, rows, turned(shape), device).mT

    def mapped(self, change: Change) -> Bias:
        return Turned(self.bias.mapped(change))


@dataclass(frozen=True, eq=False)
class Rule(Bias):
    """A function of the two positions, and of tensors that are handed to it."""

    function: Callable[..., Tensor]
    tensors: tuple[Tensor, ...] = ()

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor:
        i, j = positions(rows, device)[:, None], positions(columns, device)[None]
        tile = self.function(i, j, *self.tensors)
        if not isinstance(tile, Tensor) or not tile.is_floating_point() or tile.dim() < 2:
            raise ValueError(
                f"bias: the rule gave {describe(tile)}; wanted floating-point numbers [..., {len(rows)}, "
                f"{len(columns)}] from query indices [{len(rows)}, 1] and key indices [1, {len(columns)}]. "
                f"Remedy: one number for every pair, heads in front."
            )
        return tile

    def mapped(self, change: Change) -> Bias:
        return Rule(self.function, tuple(change(tensor, tensor.dim()) for tensor in self.tensors))


def rule(function: Callable[..., Tensor], *tensors: Tensor) -> Rule:
    """Any bias of position: function(query index [q, 1], key index [1, k], *tensors) -> [*heads, q, k].

    Hand over the tensors that it uses, so that every road knows their gradients.
    """
    if not callable(function):
        raise TypeError(f"bias: came {describe(function)}, wanted a function. Remedy: rule(lambda i, j: …).")
    return Rule(function, tensors)


def gaps(rows: Block, columns: Block, shape: torch.Size, align: str, device: torch.device) -> Tensor:
    """How far each key is ahead of each query, [q k]; negative for keys before it."""
    return positions(columns, device) - positions(rows, device)[:, None] - align_offset(align, shape)


@dataclass(frozen=True, eq=False)
class Relative(Bias):
    """A learned number for every distance, up to a reach beyond which distances count as the same.

    Many pairs add to the gradient of one number, so it is widened before it is looked up.
    """

    table: Tensor
    align: Align = "end"

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor:
        reach = self.table.shape[-1] // 2
        return wide(self.table)[..., gaps(rows, columns, shape, self.align, device).clamp(-reach, reach) + reach]

    def mapped(self, change: Change) -> Bias:
        return Relative(change(self.table, self.table.dim()), self.align)


def relative(table: Tensor, *, align: Align = "end") -> Relative:
    """Learned biases by distance (after Shaw et al., 2018): table [*heads, 2 reach + 1], zero in the middle."""
    check_tensor("table", table, 1)
    if table.shape[-1] % 2 == 0:
        raise ValueError(
            f"table: came {describe(table)}, an even number of distances; wanted [..., 2 reach + 1]. "
            f"Remedy: one entry for zero and as many on each side."
        )
    return Relative(table, check_align(align))


@dataclass(frozen=True, eq=False)
class Alibi(Bias):
    """-slope * distance; a number of heads stands for the paper's slopes, made where the keys are"""

    slopes: int | Tensor
    align: Align = "end"

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor:
        distance = gaps(rows, columns, shape, self.align, device).abs()
        slopes = self.slopes if isinstance(self.slopes, Tensor) else alibi_slopes(self.slopes, device)
        return -wide(slopes)[..., None, None] * distance  # far away, half types know no single steps

    def mapped(self, change: Change) -> Bias:
        return Alibi(change(self.slopes, self.slopes.dim()), self.align) if isinstance(self.slopes, Tensor) else self


def alibi_slopes(heads: int, device: torch.device | None = None) -> Tensor:
    """The slopes of Press et al. (2022): 2^(-8 h / H), and every second one of the next power of two in between."""
    power = 1 << (heads.bit_length() - 1)
    head = torch.arange(1, heads + 1, device=device)
    halves = torch.where(head <= power, 2 * head, 2 * (head - power) - 1)  # of a step of -8 / H in the exponent
    return torch.exp2(halves * (-4.0 / power))


def alibi(slopes: int | Tensor, *, align: Align = "end") -> Alibi:
    """A penalty that grows with distance (Press et al., 2022): a number of heads, or slopes of your own [*heads]."""
    if isinstance(slopes, int):
        if slopes < 1:
            raise ValueError(f"slopes: came {slopes} heads, wanted one or more. Remedy: the number of query heads.")
    else:
        check_tensor("slopes", slopes, 0)
    return Alibi(slopes, check_align(align))


@dataclass(frozen=True, eq=False)
class Buckets(Bias):
    """A learned number for every bucket of distances: one a distance when near, ever wider when far."""

    table: Tensor
    bidirectional: bool
    farthest: int
    align: Align = "end"

    def bucket(self, ahead: Tensor) -> Tensor:
        count = self.table.shape[-1]
        start = torch.zeros_like(ahead)
        if self.bidirectional:
            count //= 2
            start = (ahead > 0).long() * count
            distance = ahead.abs()
        else:
            distance = (-ahead).clamp_min(0)
        near = count // 2
        growth = torch.log(distance.clamp_min(1) / near) / math.log(self.farthest / near) * (count - near)
        far = (near + growth.long()).clamp_max(count - 1)
        return start + torch.where(distance < near, distance, far)

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor:
        return wide(self.table)[..., self.bucket(gaps(rows, columns, shape, self.align, device))]

    def mapped(self, change: Change) -> Bias:
        return Buckets(change(self.table, self.table.dim()), self.bidirectional, self.farthest, self.align)


def t5_buckets(table: Tensor, *, bidirectional: bool = True, farthest: int = 128, align: Align = "end") -> Buckets:
    """T5's relative bias (Raffel et al., 2020): table [*heads, buckets]; one-sided for decoders."""
    check_tensor("table", table, 1)
    least = 4 if bidirectional else 2
    if table.shape[-1] < least or (bidirectional and table.shape[-1] % 2):
        raise ValueError(
            f"table: came {describe(table)}; wanted [..., buckets] with at least {least}"
            f"{' and an even number of' if bidirectional else ''} buckets. Remedy: 32, as in the paper."
        )
    if farthest <= table.shape[-1] // least:
        raise ValueError(f"farthest: came {farthest}, wanted more than the exact buckets. Remedy: 128.")
    return Buckets(table, bidirectional, int(farthest), check_align(align))


def as_bias(bias: object) -> Bias:
    """A bias as it is, a tensor as `Dense`, and an error that knows what was meant."""
    if isinstance(bias, Bias):
        return bias
    if isinstance(bias, Tensor) and bias.dtype == torch.bool:
        raise TypeError(
            f"bias: came {describe(bias)}; wanted numbers to add. A boolean tensor is a mask. Remedy: mask=bias."
        )
    if isinstance(bias, Tensor) and bias.is_floating_point():
        return Dense(bias)
    check_called("bias", bias)
    raise TypeError(
        f"bias: came {describe(bias)}, wanted a floating-point tensor or a rule such as regard.alibi(8). "
        f"Remedy: regard.rule(function, *tensors) for a rule of your own."
    )
