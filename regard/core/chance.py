"""Random numbers that depend on where they are used, not on when: one seed per call and a counter per place.

A place is (batch element, row, column). Its 32 bits are a hash of the seed and the three numbers, so every road, every
tile and the recomputed backward see the same ones, in any order. The mixing function is the two-multiplication
finaliser of Wellons' hash-prospector search (constants 0x21f0aaad and 0xd35a2d97, bias 0.107), with a row key of 64
bits. Integers are held in int64 so that the same lines run on every device.
"""

from __future__ import annotations

import torch
from torch import Tensor

LOW = 0xFFFFFFFF
GOLDEN = 0x9E3779B9


def mix(x: Tensor) -> Tensor:
    """A bijection of 32 bits in which every output bit depends on every input bit."""
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & LOW
    x = ((x ^ (x >> 15)) * 0xD35A2D97) & LOW
    return x ^ (x >> 15)


def draw_seed(generator: torch.Generator | None, device: torch.device) -> Tensor:
    """One seed for one call, [2] of 32 bits each, from the generator or from PyTorch's own."""
    origin = device if generator is None else generator.device
    return torch.randint(LOW, (2,), generator=generator, device=origin).to(device)


def bits(seed: Tensor, batch: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """32 random bits for every place: batch [*batch], rows [q], columns [k] -> int64 [*batch q k]."""
    place = (batch * GOLDEN)[..., None] + rows  # [*batch q]; wraps like 64-bit arithmetic, and both halves are used
    low, high = place & LOW, (place >> 32) & LOW
    first = mix(mix(low ^ seed[0]) ^ high)
    second = mix(mix((low + GOLDEN) & LOW ^ seed[1]) ^ high)
    column = (columns * GOLDEN) & LOW
    return mix(mix((column + first[..., None]) & LOW) ^ second[..., None])


def uniform(seed: Tensor, batch: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Uniform numbers strictly between 0 and 1, float32 [*batch q k]: the middles of 2^23 equal parts.

    Of 2^24 parts the middles are no float32 numbers, and the last would round to 1.
    """
    return ((bits(seed, batch, rows, columns) >> 9).float() + 0.5) * 2.0**-23


def kept(seed: Tensor, batch: Tensor, rows: Tensor, columns: Tensor, dropout: float) -> Tensor:
    """True where dropout keeps a weight."""
    return bits(seed, batch, rows, columns) >= int(dropout * 2**32)


def places(batch: torch.Size, device: torch.device) -> Tensor:
    """The number of every batch element, [*batch]."""
    return torch.arange(batch.numel(), device=device).reshape(batch)
