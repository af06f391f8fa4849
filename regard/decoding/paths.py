"""What decoding stands on: a step, the state that its rows are taken from, and the paths that it makes.

    step(state, tokens [rows]) -> Step(logits [rows, vocabulary], state, weights [rows, source] or None)

A state is anything made of tensors whose first dimension counts rows (tuples, lists, dictionaries, dataclasses), so
that rows can be taken from it; what the weights are is the system's affair, and they come back with every token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Step(NamedTuple):
    """What one step gives: logits of the next token, the state after it, and where it looked."""

    logits: Tensor
    state: Any
    weights: Tensor | None = None


StepFunction = Callable[[Any, Tensor], Step]


@dataclass(frozen=True)
class Hypothesis:
    """Tokens without those that begin and end, and what they are worth."""

    tokens: tuple[int, ...]
    log_probability: float  # of all tokens, the one that ends included
    score: float  # the log-probability over the length penalty, less the coverage penalty
    ended: bool  # False: cut where it was as long as allowed
    weights: Tensor | None = None  # [steps, source], the one that ends included


@dataclass(frozen=True)
class Penalty:
    """How hypotheses of different length and coverage compare (Wu et al., 2016).

    score = log p / ((5 + length) / 6)^length_power + coverage * sum over the source of log min(1, weight received)
    """

    length: float = 0.0
    coverage: float = 0.0

    def __post_init__(self) -> None:
        for name in ("length", "coverage"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}: came {getattr(self, name)}, wanted zero or more. Remedy: 0 for none.")

    def divisor(self, length: int) -> float:
        return float(((5 + length) / 6) ** self.length)

    def score(self, log_probability: float, length: int, received: Tensor | None) -> float:
        """Of a hypothesis with so many tokens, whose source positions have received so much, [source]."""
        score = log_probability / self.divisor(length)
        if self.coverage and received is not None:
            score += self.coverage * received.clamp(1e-9, 1.0).log().sum().item()
        return score


NO_PENALTY = Penalty()


def taken(state: Any, rows: Tensor) -> Any:
    """These rows of every tensor in a state."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if state is None or isinstance(state, int | float | str | bool):
        return state
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(taken(part, rows) for part in state))
    if isinstance(state, tuple | list):
        return type(state)(taken(part, rows) for part in state)
    if isinstance(state, dict):
        return {name: taken(part, rows) for name, part in state.items()}
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        parts = {one.name: taken(getattr(state, one.name), rows) for one in dataclasses.fields(state)}
        return dataclasses.replace(state, **parts)
    raise TypeError(
        f"state: it holds {type(state).__name__}, wanted tensors in tuples, lists, dictionaries or dataclasses. "
        f"Remedy: a dataclass of the tensors whose first dimension counts rows."
    )


def log_probabilities(logits: Tensor) -> Tensor:
    """[rows, vocabulary], in float64, so that sums over long sentences do not depend on how they are added."""
    return torch.log_softmax(logits.double(), -1)


def limits(longest: int | Tensor, batch: int) -> list[int]:
    """How many tokens each sentence may have, the one that ends included."""
    each = [longest] * batch if isinstance(longest, int) else [int(number) for number in longest.tolist()]
    if len(each) != batch or min(each, default=1) < 1:
        raise ValueError(
            f"longest: came {each}, wanted a positive number for each of {batch} sentences. Remedy: twice the source's "
            f"length and ten."
        )
    return each


def highest(numbers: Tensor, count: int) -> Tensor:
    """The places of the `count` highest of every row, highest first, the lowest place on ties."""
    values, places = numbers.topk(count, dim=-1)
    last = values[:, -1:]
    if bool(((numbers == last).sum(-1) > (values == last).sum(-1)).any()):  # a tie that topk decides as it likes
        return numbers.sort(dim=-1, descending=True, stable=True).indices[:, :count]
    places, by_place = places.sort(dim=-1)
    order = values.gather(-1, by_place).sort(dim=-1, descending=True, stable=True).indices
    return places.gather(-1, order)


@dataclass
class Path:
    """One sentence on its way, token by token."""

    tokens: list[int] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    log_probability: float = 0.0
    ended: bool = False

    def hypothesis(self, penalty: Penalty, source: Tensor | None) -> Hypothesis:
        """What was found, once it has ended or is as long as allowed; `source` [source] is True where a word stands."""
        weights = torch.stack(self.weights) if self.weights else None
        received = None if weights is None else weights.sum(0)
        if received is not None and source is not None:
            received = received[source]
        score = penalty.score(self.log_probability, len(self.tokens), received)
        tokens = self.tokens[:-1] if self.ended else self.tokens
        return Hypothesis(tuple(tokens), self.log_probability, score, self.ended, weights)
