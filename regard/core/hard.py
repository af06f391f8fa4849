"""Hard selection: all the weight on one key, the best or a drawn one, and the relaxed draw.

A choice has no gradient. REINFORCE needs the log-probability of what was drawn, which `see=LogProbability()` gives
(unbiased); straight-through and Gumbel let a soft gradient through instead (biased). One uniform number a row, drawn
once per call, and the inverse of the cumulative weights: so the choice replays in backward, and no tile changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from regard.core import chance
from regard.core.normalisers import INFINITY, ByRow, Normaliser, Random, Softmax, sheltered, visible
from regard.core.scores import Change


def one_hot(index: Tensor, keys: int, dtype: torch.dtype) -> Tensor:
    """Weight one at index [*batch q] of so many keys; nothing where the index is their number."""
    return (torch.arange(keys, device=index.device) == index[..., None]).to(dtype)


def first_largest(scores: Tensor, seen: Tensor) -> Tensor:
    """The lowest index among the largest visible scores, [*batch q]; NaN counts as largest."""
    keys = torch.arange(scores.shape[-1], device=scores.device)
    hidden = scores.masked_fill(~seen, -INFINITY)
    top = hidden.amax(-1, keepdim=True)
    ahead = seen & ((hidden == top) | hidden.isnan())
    return keys.where(ahead, scores.shape[-1]).amin(-1)


Estimate = Literal["score function", "straight-through"]


@dataclass(frozen=True, eq=False)
class Hard(Normaliser, ByRow, Random):
    """One key takes the whole weight: the best one, or one drawn in proportion to softmax's weights."""

    sampled: bool = False
    estimate: Estimate = "score function"
    chosen: Tensor | None = None  # one uniform number a row, [*batch q], once drawn

    def index(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Which of one or more keys each row takes, [*batch q]; their number where there is nothing to see."""
        seen = visible(scores, mask)
        if not self.sampled:
            return first_largest(scores.detach(), seen)
        chosen = self.chosen
        if chosen is None:
            chosen = torch.rand(scores.shape[:-1], device=scores.device)
        # Inverse of the cumulative weights. float64 where there is one, so that a long row's tail can be drawn at all.
        exact = scores.dtype if scores.device.type == "mps" else torch.float64
        cumulative = Softmax()(scores.detach().to(exact), mask).cumsum(-1)
        below = cumulative <= chosen.to(exact)[..., None] * cumulative[..., -1:]
        reached = seen & ~below
        keys = torch.arange(scores.shape[-1], device=scores.device)
        return keys.where(reached, scores.shape[-1]).amin(-1)

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        if not scores.shape[-1]:
            return scores
        seen = visible(scores, mask)
        hard = one_hot(self.index(scores, mask), scores.shape[-1], scores.dtype)
        broken = (seen & scores.isnan()).any(-1, keepdim=True)
        hard = hard.masked_fill(broken & seen, torch.nan)
        if self.estimate == "straight-through":
            soft = Softmax()(scores, mask)
            return soft + (hard - soft).detach()
        return hard + 0.0 * scores.masked_fill(~torch.isfinite(scores), 0.0)  # a zero gradient, not a missing one

    def log_probability(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """log p of the key that each row takes, [*batch q]; zero where there is nothing to see. Differentiable."""
        safe, seen = sheltered(scores, mask)
        if not scores.shape[-1]:
            return scores.sum(-1)
        index = self.index(scores, mask).clamp_max(scores.shape[-1] - 1)
        log = torch.log_softmax(safe, -1).masked_fill(~seen, 0.0)
        return log.gather(-1, index[..., None])[..., 0]

    def drawn(self, batch: Tensor, queries: int, generator: torch.Generator | None) -> Normaliser:
        if not self.sampled or self.chosen is not None:
            return self
        seed = chance.draw_seed(generator, batch.device)
        rows, column = torch.arange(queries, device=batch.device), torch.arange(1, device=batch.device)
        return replace(self, chosen=chance.uniform(seed, batch, rows, column)[..., 0])

    def rows(self, start: int, stop: int) -> Normaliser:
        return self if self.chosen is None else replace(self, chosen=self.chosen[..., start:stop])

    def mapped(self, change: Change) -> Hard:
        return self if self.chosen is None else replace(self, chosen=change(self.chosen, 1))


def hard(*, sampled: bool = False, estimate: Estimate = "score function") -> Hard:
    """All weight on one key: the best, the lowest index on ties; or one drawn by softmax's weights.

    A choice has no gradient: `see=LogProbability()` gives what REINFORCE needs (unbiased), and
    estimate="straight-through" lets softmax's gradient through instead (biased).
    """
    if estimate not in ("score function", "straight-through"):
        raise ValueError(
            f"estimate: came {estimate!r}, wanted 'score function' or 'straight-through'. Remedy: one of the two."
        )
    return Hard(sampled, estimate)


@dataclass(frozen=True, eq=False)
class Gumbel(Normaliser, ByRow, Random):
    """softmax((s + g) / temperature) with Gumbel noise g; straight-through: one-hot forward, this gradient backward."""

    temperature: float = 1.0
    straight_through: bool = False
    seed: Tensor | None = None
    batch: Tensor | None = None  # the numbers of the batch elements, [*batch]
    start: int = 0

    def noise(self, scores: Tensor) -> Tensor:
        if self.seed is None or self.batch is None:
            seed = chance.draw_seed(None, scores.device)
            batch = chance.places(scores.shape[:-2], scores.device)
        else:
            seed, batch = self.seed, self.batch
        rows = torch.arange(self.start, self.start + scores.shape[-2], device=scores.device)
        columns = torch.arange(scores.shape[-1], device=scores.device)
        return -torch.log(-torch.log(chance.uniform(seed, batch, rows, columns)))

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        noisy = (scores + self.noise(scores).to(scores.dtype)) / self.temperature
        soft = Softmax()(noisy, mask)
        if not self.straight_through or not scores.shape[-1]:
            return soft
        taken = first_largest(noisy.detach(), visible(scores, mask))
        return soft + (one_hot(taken, scores.shape[-1], scores.dtype) - soft).detach()

    def drawn(self, batch: Tensor, queries: int, generator: torch.Generator | None) -> Normaliser:
        if self.seed is not None:
            return self
        return replace(self, seed=chance.draw_seed(generator, batch.device), batch=batch)

    def rows(self, start: int, stop: int) -> Normaliser:
        return replace(self, start=self.start + start)

    def mapped(self, change: Change) -> Gumbel:
        return self if self.batch is None else replace(self, batch=change(self.batch, 0))


def gumbel(temperature: float = 1.0, *, straight_through: bool = False) -> Gumbel:
    """A relaxed draw (Jang et al., 2017; Maddison et al., 2017); with straight_through one-hot forward. Biased."""
    if not temperature > 0:
        raise ValueError(f"temperature: came {temperature}, wanted a positive number. Remedy: 0.5 to 1.")
    return Gumbel(float(temperature), straight_through)
