"""Beam search: several paths a sentence, each sentence searched by itself.

No other sentence of the batch, and no padding, changes what is found: every sentence keeps its own front, its own bound
and its own end, and sums are in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.decoding.paths import (
    NO_PENALTY,
    Hypothesis,
    Path,
    Penalty,
    StepFunction,
    highest,
    limits,
    log_probabilities,
    taken,
)


@dataclass
class Front:
    """The hypotheses of one sentence: those that go on, at most `width`, and those that are finished."""

    width: int
    best: int
    bound: int
    end: int
    penalty: Penalty
    source: Tensor | None
    going: list[Path] = field(default_factory=lambda: [Path()])
    finished: list[Hypothesis] = field(default_factory=list)

    def advance(self, candidates: Iterable[tuple[float, int, int]], weights: Tensor | None) -> list[int]:
        """Go on by (log-probability, which path, token), best first; from which paths those that go on came.

        Only the first `width` may finish, so that a beam of one is greedy.
        """
        going: list[Path] = []
        parents: list[int] = []
        for rank, (log_probability, parent, token) in enumerate(candidates):
            if log_probability == -math.inf:
                break
            before = self.going[parent]
            looked = before.weights if weights is None else [*before.weights, weights[parent]]
            path = Path([*before.tokens, token], looked, log_probability, token == self.end)
            if path.ended or len(path.tokens) == self.bound:
                if rank < self.width:
                    self.finished.append(path.hypothesis(self.penalty, self.source))
            elif len(going) < self.width:
                going.append(path)
                parents.append(parent)
        self.going = [] if self.is_done(going) else going
        return parents if self.going else []

    def is_done(self, going: Sequence[Path]) -> bool:
        """Whether nothing that goes on can come to be among the best.

        Log-probabilities only fall, but a length penalty may raise a score: at most to what it were at the bound. As
        that is seldom reached, a beam's width of finished ones is enough where none that goes on stands above them now.
        """
        ended = sorted((found.score for found in self.finished if found.ended), reverse=True)
        if not going or len(ended) < self.best:
            return not going
        length = self.bound if len(self.finished) < self.width else len(going[0].tokens)
        return going[0].log_probability / self.penalty.divisor(length) <= ended[self.best - 1]

    def found(self) -> list[Hypothesis]:
        """The best, those that were cut after those that ended."""
        return sorted(self.finished, key=lambda one: (not one.ended, -one.score))[: self.best]


def beam(
    step: StepFunction,
    state: Any,
    first: Tensor,
    *,
    end: int,
    longest: int | Tensor,
    width: int = 5,
    best: int = 1,
    penalty: Penalty = NO_PENALTY,
    source: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The `best` of each sentence that a beam of `width` finds, by their scores; `first` [batch] are the beginnings.

    source [batch, source] is True where a word stands: what the coverage penalty is about.
    """
    if not 1 <= best <= width:
        raise ValueError(f"best: came {best} of a beam of width {width}, wanted 1 to {width}. Remedy: a wider beam.")
    if penalty.coverage and source is None:
        raise ValueError("source: came None, with a coverage penalty; wanted where words stand. Remedy: source=mask.")
    bounds = limits(longest, len(first))
    fronts = [
        Front(width, best, bound, end, penalty, None if source is None else source[row])
        for row, bound in enumerate(bounds)
    ]
    rows, tokens = list(range(len(fronts))), first
    while alive := [front for front in fronts if front.going]:
        logits, state, weights = step(taken(state, torch.tensor(rows, device=first.device)), tokens)
        if penalty.coverage and weights is None:
            raise ValueError(
                "weights: the step gave None, with a coverage penalty. Remedy: a step that says where it looked."
            )
        vocabulary, counts = logits.shape[-1], [len(front.going) for front in alive]
        sofar = torch.tensor([path.log_probability for front in alive for path in front.going], dtype=torch.float64)
        totals = log_probabilities(logits) + sofar.to(logits.device)[:, None]
        padded = totals.new_full((len(alive), width, vocabulary), -torch.inf)
        for place, block in enumerate(totals.split(counts)):
            padded[place, : len(block)] = block
        flat = padded.flatten(1)
        places = highest(flat, min(2 * width, flat.shape[1]))
        values, chosen = flat.gather(-1, places).tolist(), places.tolist()
        rows, begun = [], 0
        for place, front in enumerate(alive):
            looked = None if weights is None else weights[begun : begun + counts[place]]
            candidates = [
                (value, at // vocabulary, at % vocabulary)
                for value, at in zip(values[place], chosen[place], strict=True)
            ]
            rows += [begun + parent for parent in front.advance(candidates, looked)]
            begun += counts[place]
        tokens = torch.tensor([path.tokens[-1] for front in fronts for path in front.going], device=first.device)
    return [front.found() for front in fronts]
