"""From scores to weights: whole rows in, whole rows out.

`normalise(scores, mask)` gives weights that sum to one over the keys, or are all zero where nothing may be seen; a
masked weight is exactly zero, and so is one whose score is -infinity. Anything with this signature stands in softmax's
place. What depends on the row or on chance says so: `rows` gives the normaliser of some rows, `drawn` fixes the random
numbers of one call, and `mapped` names the tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from regard.core.scores import Change, per_pair
from regard.core.shapes import check_called, check_tensor, describe, may_look

INFINITY = float("inf")


class Normaliser(ABC):
    """Scores [*batch q k] and a boolean mask that broadcasts to them -> weights [*batch q k]."""

    @abstractmethod
    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weights."""

    @abstractmethod
    def mapped(self, change: Change) -> Self:
        """The same normaliser with every tensor that it holds changed."""


class ByRow(ABC):
    """A normaliser whose rows differ by more than their scores."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Normaliser:
        """The normaliser of queries start to stop."""


class Random(ABC):
    """A normaliser that draws; `drawn` fixes what it draws for one call."""

    @abstractmethod
    def drawn(self, batch: Tensor, queries: int, generator: torch.Generator | None) -> Normaliser:
        """For these batch elements (their numbers, [*batch]) and so many queries."""


def visible(scores: Tensor, mask: Tensor | None) -> Tensor:
    """What may be seen: True in the mask and a score above -infinity (NaN is seen)."""
    seen = scores != -INFINITY
    return seen if mask is None else seen & mask


def sheltered(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Scores with -infinity where nothing may be seen, rows without anything to see set to zero; and what is seen."""
    seen = visible(scores, mask)
    alive = seen.any(-1, keepdim=True)
    return scores.masked_fill(~seen, -INFINITY).masked_fill(~alive, 0.0), seen


@dataclass(frozen=True, eq=False)
class Softmax(Normaliser):
    """exp(s / temperature), divided by its sum"""

    temperature: float | Tensor = 1.0

    def scaled(self, scores: Tensor) -> Tensor:
        if not isinstance(self.temperature, Tensor):
            return scores if self.temperature == 1.0 else scores / self.temperature
        hidden = scores == -INFINITY  # kept out of the quotient, or the temperature's gradient were zero times infinity
        return (scores.masked_fill(hidden, 0.0) / per_pair(self.temperature)).masked_fill(hidden, -INFINITY)

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        scaled = self.scaled(scores)
        if may_look(scaled) and scaled.numel():
            hidden = scaled if mask is None else scaled.masked_fill(~mask, -INFINITY)
            if bool((hidden.detach().amax(-1) > -INFINITY).all()):  # every row has something to see, and none is NaN
                return torch.softmax(hidden, -1)
        safe, seen = sheltered(scaled, mask)
        return torch.softmax(safe, -1).masked_fill(~seen, 0.0)

    def mapped(self, change: Change) -> Softmax:
        return Softmax(change(self.temperature, 0)) if isinstance(self.temperature, Tensor) else self


def softmax(temperature: float | Tensor = 1.0) -> Softmax:
    """Softmax; the temperature divides the scores: a number above zero, or a learned tensor [*batch]."""
    if isinstance(temperature, Tensor):
        return Softmax(temperature)
    if not temperature > 0:
        raise ValueError(
            f"temperature: came {temperature}, wanted a positive number. Remedy: hard() is its limit at zero."
        )
    return Softmax(float(temperature))


@dataclass(frozen=True, eq=False)
class Given(Normaliser, ByRow):
    """These weights, whatever the scores; masked places are zero all the same."""

    weights: Tensor

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        try:
            weights = self.weights.to(scores.dtype).expand(scores.shape)
        except RuntimeError:
            raise ValueError(
                f"weights: came {describe(self.weights)} for scores {list(scores.shape)}; wanted weights that "
                f"broadcast to them. Remedy: [*batch, {scores.shape[-2]}, {scores.shape[-1]}]."
            ) from None
        return weights if mask is None else weights.masked_fill(~mask, 0.0)

    def rows(self, start: int, stop: int) -> Normaliser:
        return self if self.weights.shape[-2] == 1 else Given(self.weights[..., start:stop, :])

    def mapped(self, change: Change) -> Given:
        return Given(change(self.weights, 2))


def given(weights: Tensor) -> Given:
    """Put these weights [*batch q k] in the place of the model's own."""
    check_tensor("weights", weights, 2)
    return Given(weights)


@dataclass(frozen=True, eq=False)
class Edited(Normaliser, ByRow, Random):
    """A function of the weights that another normaliser gives, row by row."""

    normalise: Callable[[Tensor, Tensor | None], Tensor]
    function: Callable[[Tensor], Tensor]

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        weights = self.function(self.normalise(scores, mask))
        if not isinstance(weights, Tensor) or weights.shape != scores.shape:
            raise ValueError(
                f"function: it gave {describe(weights)} for weights {list(scores.shape)}; wanted the same shape. "
                f"Remedy: change the weights, not their number."
            )
        return weights if mask is None else weights.masked_fill(~mask, 0.0)

    def drawn(self, batch: Tensor, queries: int, generator: torch.Generator | None) -> Normaliser:
        return replace(self, normalise=drawn(self.normalise, batch, queries, generator))

    def rows(self, start: int, stop: int) -> Normaliser:
        return replace(self, normalise=rows(self.normalise, start, stop))

    def mapped(self, change: Change) -> Edited:
        return replace(self, normalise=mapped(self.normalise, change))


def edited(normalise: Callable[[Tensor, Tensor | None], Tensor], function: Callable[[Tensor], Tensor]) -> Edited:
    """Weights as `normalise` gives them, then changed by `function`, which sees rows and must treat each by itself."""
    if not callable(normalise) or not callable(function):
        raise TypeError(
            f"edited: came {describe(normalise)} and {describe(function)}, wanted a normaliser and a function of "
            f"weights. Remedy: edited(softmax(), lambda weights: weights.flip(-1))."
        )
    return Edited(normalise, function)


Callables = Callable[[Tensor, Tensor | None], Tensor]


def as_normaliser(normalise: object) -> Callables:
    """A normaliser or a function as it is, and an error for anything else."""
    check_called("normalise", normalise)
    if isinstance(normalise, type) or not callable(normalise):
        raise TypeError(
            f"normalise: came {describe(normalise)}, wanted a normaliser such as regard.softmax() or a function "
            f"(scores, mask) -> weights. Remedy: call it: normalise=regard.softmax()."
        )
    return normalise


def rows(normalise: Callables, start: int, stop: int) -> Callables:
    """The normaliser of some rows."""
    return normalise.rows(start, stop) if isinstance(normalise, ByRow) else normalise


def drawn(normalise: Callables, batch: Tensor, queries: int, generator: torch.Generator | None) -> Callables:
    """The normaliser with the random numbers of one call fixed."""
    return normalise.drawn(batch, queries, generator) if isinstance(normalise, Random) else normalise


def mapped(normalise: Callables, change: Change) -> Callables:
    """The normaliser with its tensors changed; a user's own function holds none that we know of."""
    return normalise.mapped(change) if isinstance(normalise, Normaliser) else normalise
