"""Scores of distance: the nearer the key, the heavier its weight."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.scores import Change, Pair, needed
from regard.core.shapes import check_width, describe, wide


@dataclass(frozen=True, eq=False)
class DistancePair(Pair):
    """-scale * |q - k|^2"""

    scale: float = 1.0
    many = True

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        return -self.scale * squared_differences(needed(query), key)

    def mapped(self, change: Change) -> DistancePair:
        return self


@dataclass(frozen=True, eq=False)
class DictionaryPair(Pair):
    """-power * log(epsilon + |q - k|^2): under softmax, weights in proportion to 1/(epsilon + |q - k|^2)^power."""

    power: float
    epsilon: float
    many = True

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        return -self.power * torch.log(self.epsilon + squared_differences(needed(query), key))

    def mapped(self, change: Change) -> DictionaryPair:
        return self


def squared_differences(query: Tensor, key: Tensor) -> Tensor:
    """|q - k|^2 for every pair [*batch q k], without the cancellation of expanding the square."""
    check_width("query", query, key.shape[-1], f"as the key's is: key {describe(key)}")
    difference = wide(query).unsqueeze(-2) - wide(key).unsqueeze(-3)
    return (difference * difference).sum(-1)


def squared_distance(scale: float = 1.0) -> DistancePair:
    """-scale * |q - k|^2: the nearer, the heavier."""
    return DistancePair(float(scale))


def soft_dictionary(power: float = 0.5, *, epsilon: float = 1e-3) -> DictionaryPair:
    """Weights in proportion to 1/(epsilon + |q - k|^2)^power, under softmax; power 0.5 is inverse distance."""
    if not epsilon > 0:
        raise ValueError(
            f"epsilon: came {epsilon}, wanted a positive number: at 0 an exact match divides by zero. Remedy: 1e-3."
        )
    if not power > 0:
        raise ValueError(f"power: came {power}, wanted a positive number. Remedy: 0.5, the inverse distance.")
    return DictionaryPair(float(power), float(epsilon))
