"""What may be looked at: boolean values that combine with `&`, `|` and `~`, draw themselves, and give any tile.

True means that the query may look at the key, which is the opposite of PyTorch's `key_padding_mask`. A mask is never
made whole unless somebody asks: `tile` gives the part for some rows and columns, and `span` says which columns some
rows can reach at all, so that the rest is skipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.shapes import check_called, describe, fits

Block = range
"""Some rows or columns: a range of step one."""


class Mask(ABC):
    """A boolean [*batch q k] that is made a tile at a time."""

    @abstractmethod
    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        """The part of the whole [*batch q k] at these rows and columns: [*batch or 1, rows or 1, columns or 1].

        True where all of it may be looked at, False where none of it.
        """

    @abstractmethod
    def span(self, rows: Block, shape: torch.Size) -> Block:
        """Columns outside of which none of these rows may look; as tight as is known without looking at numbers."""

    @abstractmethod
    def __repr__(self) -> str:
        """How it was written."""

    def __and__(self, other: Mask) -> Mask:
        return Both(self, as_mask(other))

    def __or__(self, other: Mask) -> Mask:
        return Either(self, as_mask(other))

    def __invert__(self) -> Mask:
        return Not(self)

    def dense(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
        """The whole mask [*batch q k]; for small ones, to look at."""
        size = torch.Size(shape)
        tile = self.tile(range(size[-2]), range(size[-1]), size, torch.device(device))
        whole = torch.full(size, tile, device=device) if isinstance(tile, bool) else tile
        return whole.expand(size)

    def draw(self, *shape: int) -> str:
        """The mask as text, one character a pair: `█` may be looked at, `·` not. The first of the batch."""
        whole = self.dense(*shape)
        while whole.dim() > 2:
            whole = whole[0]
        return "\n".join("".join("█" if seen else "·" for seen in row) for row in whole.tolist())


@dataclass(frozen=True, eq=False)
class Both(Mask):
    """What two masks both allow."""

    left: Mask
    right: Mask

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        left = self.left.tile(rows, columns, shape, device)
        if left is False:
            return False
        right = self.right.tile(rows, columns, shape, device)
        if left is True or right is False:
            return right
        return left if right is True else left & right

    def span(self, rows: Block, shape: torch.Size) -> Block:
        left, right = self.left.span(rows, shape), self.right.span(rows, shape)
        start = max(left.start, right.start)
        return range(start, max(start, min(left.stop, right.stop)))

    def __repr__(self) -> str:
        return " & ".join(f"({side!r})" if isinstance(side, Either) else repr(side) for side in (self.left, self.right))


@dataclass(frozen=True, eq=False)
class Either(Mask):
    """What at least one of two masks allows."""

    left: Mask
    right: Mask

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        left = self.left.tile(rows, columns, shape, device)
        if left is True:
            return True
        right = self.right.tile(rows, columns, shape, device)
        if left is False or right is True:
            return right
        return left if right is False else left | right

    def span(self, rows: Block, shape: torch.Size) -> Block:
        left, right = self.left.span(rows, shape), self.right.span(rows, shape)
        if not len(left) or not len(right):
            return left or right
        return range(min(left.start, right.start), max(left.stop, right.stop))

    def __repr__(self) -> str:
        return " | ".join(f"({side!r})" if isinstance(side, Both) else repr(side) for side in (self.left, self.right))


@dataclass(frozen=True, eq=False)
class Not(Mask):
    """What a mask does not allow."""

    mask: Mask

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        tile = self.mask.tile(rows, columns, shape, device)
        return not tile if isinstance(tile, bool) else ~tile

    def span(self, rows: Block, shape: torch.Size) -> Block:
        return range(shape[-1])

    def __repr__(self) -> str:
        inner = repr(self.mask)
        return f"~({inner})" if isinstance(self.mask, Both | Either) else f"~{inner}"


@dataclass(frozen=True, eq=False)
class Turned(Mask):
    """A mask with queries and keys exchanged, as co-attention needs it."""

    mask: Mask

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        tile = self.mask.tile(columns, rows, turned(shape), device)
        return tile if isinstance(tile, bool) else tile.mT

    def span(self, rows: Block, shape: torch.Size) -> Block:
        return range(shape[-1])

    def __repr__(self) -> str:
        return f"turned({self.mask!r})"


def turned(shape: torch.Size) -> torch.Size:
    """[*batch q k] -> [*batch k q]"""
    return torch.Size((*shape[:-2], shape[-1], shape[-2]))


def positions(block: Block, device: torch.device) -> Tensor:
    """The indices of a block."""
    return torch.arange(block.start, block.stop, device=device)


def as_mask(mask: object) -> Mask:
    """A mask as it is, a boolean tensor as `allow(tensor)`, and an error that knows what was meant."""
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor) and mask.is_floating_point():
        raise TypeError(
            f"mask: came {describe(mask)}; wanted booleans, True where a query may look. A float mask is a bias. "
            f"Remedy: bias=mask, or mask=mask == 0."
        )
    if isinstance(mask, Tensor):
        return allow(mask)
    check_called("mask", mask)
    raise TypeError(
        f"mask: came {describe(mask)}, wanted a mask such as regard.causal() or a boolean tensor. "
        f"Remedy: regard.allow(function) for a rule of your own."
    )


@dataclass(frozen=True, eq=False)
class Allow(Mask):
    """Any boolean tensor that broadcasts to the scores, or a rule of the two positions."""

    what: Tensor | Callable[[Tensor, Tensor], Tensor]

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        if not isinstance(self.what, Tensor):
            return self.ruled(rows, columns, shape, device)
        whole = self.what.to(device)
        whole = whole.reshape((1,) * max(2 - whole.dim(), 0) + whole.shape)
        if not fits(whole.shape, shape):
            raise ValueError(
                f"mask: came {describe(self.what)} for scores {list(shape)}; wanted a mask that broadcasts to them, "
                f"from the right. Remedy: for one mask a sequence, lengths(…) or mask[:, None, :] (and one more None "
                f"for heads); PyTorch's key_padding_mask is True for padding, the opposite: ~padding[:, None, :]."
            )
        if whole.shape[-2] != 1:
            whole = whole[..., rows.start : rows.stop, :]
        if whole.shape[-1] != 1:
            whole = whole[..., columns.start : columns.stop]
        return whole

    def ruled(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        """What the rule says of these positions."""
        assert not isinstance(self.what, Tensor)
        seen = self.what(positions(rows, device)[:, None], positions(columns, device)[None])
        if isinstance(seen, bool):
            return seen
        wanted = (*shape[:-2], len(rows), len(columns))
        if not isinstance(seen, Tensor) or seen.dtype != torch.bool or seen.dim() < 2 or not fits(seen.shape, wanted):
            raise ValueError(
                f"mask: the rule gave {describe(seen)}; wanted booleans that broadcast to {list(wanted)}, from query "
                f"indices [{len(rows)}, 1] and key indices [1, {len(columns)}]. Remedy: compare the two indices."
            )
        return seen

    def span(self, rows: Block, shape: torch.Size) -> Block:
        return range(shape[-1])

    def __repr__(self) -> str:
        name = describe(self.what) if isinstance(self.what, Tensor) else getattr(self.what, "__name__", "function")
        return f"allow({name})"


def allow(what: Tensor | Callable[[Tensor, Tensor], Tensor]) -> Allow:
    """Any mask: a boolean tensor that broadcasts to [*batch q k], or a function (query index, key index) -> boolean."""
    if isinstance(what, Tensor) and what.dtype != torch.bool:
        raise TypeError(
            f"mask: came {describe(what)}, wanted booleans, True where a query may look. "
            f"Remedy: mask.bool() for ones and zeros; bias=mask for numbers to add."
        )
    if not isinstance(what, Tensor) and not callable(what):
        raise TypeError(f"mask: came {describe(what)}, wanted a boolean tensor or a function. Remedy: allow(tensor).")
    return Allow(what)
