"""Nothing to see, nothing leaks: NaN and infinity behind a mask never cross it, forward or backward.

Zero times NaN is NaN, so a weight of exactly zero is not enough: the token itself must not enter the product. With a
mask, every road sets tokens that hold a non-finite number to zero before anything else (their gradient is then zero),
and writes NaN into exactly the rows that may see one of them. Such a row passes no gradient on, or zero times NaN would
carry it to tokens that the row could not see: the loss is NaN and says so, and all other gradients stay right.
"""

from __future__ import annotations

import torch
from torch import Tensor


def unsound(tensor: Tensor) -> Tensor:
    """[*batch tokens width] -> [*batch tokens], True where a token holds NaN or infinity.

    The largest magnitude is then one of the two; finding it is a single pass, and keeps no mark for every number.
    """
    if not tensor.shape[-1]:
        return torch.zeros(tensor.shape[:-1], dtype=torch.bool, device=tensor.device)
    last = tensor.dim() - 1  # not -1, which a meta tensor without numbers refuses
    return ~torch.isfinite(torch.linalg.vector_norm(tensor.detach(), torch.inf, last))


def without(tensor: Tensor, tokens: Tensor) -> Tensor:
    """The tensor with those tokens set to zero."""
    return tensor.masked_fill(tokens[..., None], 0.0)


def poison(tensor: Tensor, places: Tensor) -> Tensor:
    """NaN in the marked places, which pass no gradient on."""
    return tensor.masked_fill(places, torch.nan)
