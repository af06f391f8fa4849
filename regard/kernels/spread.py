"""One dimension for the batch, without copying what is shared.

The roads walk the batch in runs of elements, start to stop. A tensor that has fewer batch elements of its own (keys
that several heads share, a mask over sequences but not heads) is not repeated: `take` finds the element each one uses,
and `add` brings what comes back to where it was taken from.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Spread:
    """How a tensor's own batch elements [*lead] serve the whole batch."""

    def __init__(self, lead: torch.Size, batch: torch.Size) -> None:
        self.own = lead.numel()
        self.whole = batch.numel()
        padded = (1,) * (len(batch) - len(lead)) + tuple(lead)
        self.plain = padded == tuple(batch)
        self.index: list[int] = []
        if not self.plain and self.own > 1:
            self.index = torch.arange(self.own).reshape(padded).expand(batch).flatten().tolist()

    def single(self, start: int, stop: int) -> int | None:
        """The one own element that all of this run uses, if it is one."""
        if self.plain:
            return start if stop - start == 1 else None
        if self.own == 1:
            return 0
        run = self.index[start:stop]
        return run[0] if run and all(place == run[0] for place in run) else None

    def take(self, flat: Tensor, start: int, stop: int) -> Tensor:
        """[own ...] -> [stop - start, ...], or [1, ...] where all share one."""
        if self.plain:
            return flat[start:stop]
        one = self.single(start, stop)
        if one is not None:
            return flat[one : one + 1]
        return flat[torch.tensor(self.index[start:stop], device=flat.device)]

    def add(self, flat: Tensor, run: Tensor, start: int, stop: int) -> None:
        """Add what came back for a run, [stop - start, ...], to the own elements, in place."""
        if self.plain:
            flat[start:stop] += run
            return
        one = self.single(start, stop)
        if one is not None:
            flat[one] += run.sum(0)
            return
        flat.index_add_(0, torch.tensor(self.index[start:stop], device=flat.device), run)


def flatten(tensor: Tensor, own: int) -> Tensor:
    """[*lead ...own] -> [elements ...own]"""
    place = tensor.dim() - own
    return tensor.reshape(tensor.shape[:place].numel(), *tensor.shape[place:])


def spread_of(tensor: Tensor, own: int, batch: torch.Size) -> Spread:
    """The spread of a tensor whose last `own` dimensions are not batch."""
    return Spread(tensor.shape[: tensor.dim() - own], batch)
