"""Masks of position: causal, windows, prefixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.core.masks import Block, Mask, positions


def align_offset(align: str, shape: torch.Size) -> int:
    """How far the diagonal is moved to the right: the last query sees all keys, or the first query sees the first."""
    return shape[-1] - shape[-2] if align == "end" else 0


Align = Literal["end", "start"]


@dataclass(frozen=True)
class Window(Mask):
    """Keys from `left` before the query to `right` after it; None is without limit. causal() is window(None, 0)."""

    left: int | None
    right: int | None
    align: Align = "end"

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        offset = align_offset(self.align, shape)
        reach = range(rows.start + offset, rows.stop + offset)
        if self.covers(reach, columns):
            return True
        if not len(self.overlap(reach, columns)):
            return False
        distance = positions(columns, device) - positions(reach, device)[:, None]
        seen = torch.ones_like(distance, dtype=torch.bool)
        if self.left is not None:
            seen = seen & (distance >= -self.left)
        if self.right is not None:
            seen = seen & (distance <= self.right)
        return seen

    def covers(self, reach: Block, columns: Block) -> bool:
        """Whether every one of these rows sees every one of these columns."""
        before = self.left is None or reach.stop - 1 - self.left <= columns.start
        after = self.right is None or reach.start + self.right >= columns.stop - 1
        return before and after

    def overlap(self, reach: Block, columns: Block) -> Block:
        """The columns that at least one of these rows may see."""
        start = columns.start if self.left is None else max(columns.start, reach.start - self.left)
        stop = columns.stop if self.right is None else min(columns.stop, reach.stop + self.right)
        return range(min(start, columns.stop), max(stop, min(start, columns.stop)))

    def span(self, rows: Block, shape: torch.Size) -> Block:
        offset = align_offset(self.align, shape)
        return self.overlap(range(rows.start + offset, rows.stop + offset), range(shape[-1]))

    def __repr__(self) -> str:
        align = "" if self.align == "end" else "align='start'"
        if self.left is None and self.right == 0:
            return f"causal({align})"
        parts = [str(self.left)] + ([f"right={self.right}"] if self.right != self.left else [])
        return f"window({', '.join(parts + ([align] if align else []))})"


def check_align(align: str) -> Align:
    if align not in ("end", "start"):
        raise ValueError(
            f"align: came {align!r}, wanted 'end' (the last query sees all keys: decoding with a cache) or 'start' "
            f"(the first query sees the first key: PyTorch's is_causal). Remedy: one of the two."
        )
    return "end" if align == "end" else "start"


def causal(align: Align = "end") -> Window:
    """No query looks ahead. Where queries are fewer than keys, align="end" lets the last query see all keys."""
    return Window(None, 0, check_align(align))


def window(left: int, *, right: int | None = None, align: Align = "end") -> Window:
    """Keys at most `left` before the query and `right` after it (as many as `left` if not given)."""
    right = left if right is None else right
    if left < 0 or right < 0:
        raise ValueError(
            f"window: came left={left}, right={right}; wanted counts of keys, zero or more. Remedy: right=0 for none."
        )
    return Window(int(left), int(right), check_align(align))


@dataclass(frozen=True)
class Prefix(Mask):
    """The first keys, for every query."""

    length: int

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        if columns.stop <= self.length:
            return True
        if columns.start >= self.length:
            return False
        return (positions(columns, device) < self.length)[None]

    def span(self, rows: Block, shape: torch.Size) -> Block:
        return range(min(self.length, shape[-1]))

    def __repr__(self) -> str:
        return f"prefix({self.length})"


def prefix(length: int) -> Prefix:
    """The first `length` keys for every query; `causal() | prefix(n)` is the prefix language model's."""
    if length < 0:
        raise ValueError(f"prefix: came {length}, wanted a count of keys, zero or more. Remedy: the prefix's length.")
    return Prefix(int(length))
