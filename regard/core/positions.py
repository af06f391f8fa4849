"""Where a token stands, as numbers: sinusoids to add, and rotations of queries and keys."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.shapes import check_tensor, describe, wide


def frequencies(width: int, longest: float, device: torch.device | None = None) -> Tensor:
    """width/2 angular frequencies from 1 down to 1/longest, geometrically."""
    return longest ** (-torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)


def sinusoids(positions: Tensor, width: int, *, longest: float = 10000.0) -> Tensor:
    """sin and cos of every position at every frequency, interleaved (Vaswani et al., 2017): [..., width]."""
    if width % 2:
        raise ValueError(f"width: came {width}, wanted an even number: a sine and a cosine each. Remedy: {width + 1}.")
    angle = positions[..., None].float() * frequencies(width, longest, positions.device)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


def rotated(tensor: Tensor, positions: Tensor, *, longest: float = 10000.0) -> Tensor:
    """Each pair of features turned by its position's angle (Su et al., 2021), [..., length, width].

    A dot product of two rotated vectors depends on how far apart they stand, not on where.
    """
    check_tensor("tensor", tensor, 2)
    width = tensor.shape[-1]
    if width % 2 or positions.shape[-1] != tensor.shape[-2]:
        raise ValueError(
            f"tensor: came {describe(tensor)} with {positions.shape[-1]} positions; wanted an even width and one "
            f"position a token. Remedy: positions=torch.arange({tensor.shape[-2]}), counted from the cache's length."
        )
    angle = positions[..., None].float() * frequencies(width, longest, tensor.device)
    even, odd = wide(tensor).unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], -1)
    return turned.flatten(-2).to(tensor.dtype)
