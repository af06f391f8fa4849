"""Nothing to see, nothing leaks: NaN and infinity behind a mask never cross it, forward or backward.

Zero times NaN is NaN, so a weight of exactly zero is not enough: the token itself must not enter the product. With a
mask, every road sets tokens that hold a non-finite number to zero before anything else (their gradient is then zero),
and writes NaN into exactly the rows that may see one of them. Backward, such a row sends NaN to what it saw when the
loss depends on it, and nothing when it does not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def unsound(tensor: Tensor) -> Tensor:
    """[*batch tokens width] -> [*batch tokens], True where a token holds NaN or infinity."""
    return ~torch.isfinite(tensor.detach()).all(-1)


def without(tensor: Tensor, tokens: Tensor) -> Tensor:
    """The tensor with those tokens set to zero."""
    return tensor.masked_fill(tokens[..., None], 0.0)


class Poison(torch.autograd.Function):
    """NaN in the marked places; backward, NaN where something depends on a marked place, else the gradient as it is."""

    generate_vmap_rule = True

    @staticmethod
    def forward(tensor: Tensor, places: Tensor) -> Tensor:
        return tensor.masked_fill(places, torch.nan)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return gradient.masked_fill(places & (gradient != 0), torch.nan), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return tangent


def poison(tensor: Tensor, places: Tensor) -> Tensor:
    """NaN in the marked places, which must broadcast to the tensor."""
    poisoned: Tensor = Poison.apply(tensor, places.expand(tensor.shape))  # type: ignore[no-untyped-call]
    return poisoned
