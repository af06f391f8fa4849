"""What is asked of the scores behind the weights: their log-sum-exp, and the log-probability of a hard choice."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.hard import Hard
from regard.core.normalisers import INFINITY, Softmax
from regard.core.see import Parts, Rows, Thing, only
from regard.core.shapes import describe


@dataclass(frozen=True)
class LogSumExp(Thing):
    """log sum exp of each query's visible scores (over the temperature): [*batch, queries]; -infinity if none."""

    name = "logsumexp"
    merge = "rows"

    def part(self, rows: Rows) -> Parts:
        scores = rows.normalise.scaled(rows.scores) if isinstance(rows.normalise, Softmax) else rows.scores
        alive = rows.alive
        safe = scores.masked_fill(~alive[..., None], 0.0)  # all -infinity has no gradient, not even zero
        return (torch.logsumexp(safe, -1).masked_fill(~alive, -INFINITY),)

    def finish(self, parts: Parts, queries: int) -> Tensor:
        return only(parts)


@dataclass(frozen=True)
class LogProbability(Thing):
    """log p of the key that hard attention took, for REINFORCE: [*batch, queries]; 0 where there is nothing to see."""

    name = "log_probability"
    merge = "rows"

    def part(self, rows: Rows) -> Parts:
        if not isinstance(rows.normalise, Hard):
            raise TypeError(
                f"LogProbability: the normaliser is {describe(rows.normalise)}, which takes no single key; wanted "
                f"hard attention. Remedy: normalise=regard.hard(sampled=True)."
            )
        return (rows.normalise.log_probability(rows.scores, None),)

    def finish(self, parts: Parts, queries: int) -> Tensor:
        return only(parts)
