"""One path a sentence: the likeliest token, a drawn one, or the one that is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.core import chance
from regard.decoding.paths import (
    NO_PENALTY,
    Hypothesis,
    Path,
    Penalty,
    StepFunction,
    highest,
    limits,
    log_probabilities,
)


def follow(
    step: StepFunction,
    state: Any,
    first: Tensor,
    choose: Callable[[Tensor, int], Tensor],
    *,
    end: int,
    longest: int | Tensor,
) -> list[Path]:
    """One path a sentence: choose(log-probabilities [rows, vocabulary], which step) says how it goes on."""
    bounds, tokens = limits(longest, len(first)), first
    paths = [Path() for _ in bounds]
    for place in range(max(bounds, default=0)):
        going = [row for row, path in enumerate(paths) if not path.ended and place < bounds[row]]
        if not going:
            break
        logits, state, weights = step(state, tokens)
        logs = log_probabilities(logits)
        tokens = choose(logs, place)
        gained = logs.gather(-1, tokens[:, None])[:, 0].tolist()
        for row, token in zip(going, tokens[going].tolist(), strict=True):
            path = paths[row]
            path.tokens.append(token)
            path.log_probability += gained[row]
            path.ended = token == end
            if weights is not None:
                path.weights.append(weights[row])
    return paths


def greedy(step: StepFunction, state: Any, first: Tensor, *, end: int, longest: int | Tensor) -> list[Hypothesis]:
    """The likeliest token at every step, the lowest id on ties; `first` [batch] are the tokens that begin."""
    paths = follow(step, state, first, lambda logs, _: highest(logs, 1)[:, 0], end=end, longest=longest)
    return [path.hypothesis(NO_PENALTY, None) for path in paths]


def sample(
    step: StepFunction,
    state: Any,
    first: Tensor,
    *,
    end: int,
    longest: int | Tensor,
    temperature: float = 1.0,
    top: int | None = None,
    share: float = 1.0,
    generator: torch.Generator | None = None,
) -> list[Hypothesis]:
    """A token drawn at every step: of the `top` likeliest, or of the likeliest that have this share together.

    What a sentence draws depends on the generator and on its place in the batch, not on the others.
    """
    if not temperature > 0 or not 0 < share <= 1 or (top is not None and top < 1):
        raise ValueError(
            f"temperature: came {temperature}, top: {top}, share: {share}; wanted a positive number, one or more, and "
            f"a share up to 1. Remedy: temperature=0.7, top=50, share=0.95."
        )
    seed, rows = chance.draw_seed(generator, first.device), torch.arange(len(first), device=first.device)

    def draw(logs: Tensor, place: int) -> Tensor:
        order = highest(logs, logs.shape[-1] if top is None else min(top, logs.shape[-1]))
        likely = torch.softmax(logs.gather(-1, order) / temperature, -1)
        below = likely.cumsum(-1)
        likely = likely.masked_fill(below - likely >= share, 0.0)  # the first that reaches the share is the last
        below = likely.cumsum(-1)
        when = torch.tensor([place], device=first.device)
        uniform = chance.uniform(seed, rows, when, when * 0)[:, :, 0].double()
        chosen = (below <= uniform * below[:, -1:]).sum(-1, keepdim=True)
        return order.gather(-1, chosen)[:, 0]

    return [path.hypothesis(NO_PENALTY, None) for path in follow(step, state, first, draw, end=end, longest=longest)]


def forced(
    step: StepFunction,
    state: Any,
    first: Tensor,
    targets: Sequence[Sequence[int]],
    *,
    end: int,
    penalty: Penalty = NO_PENALTY,
    source: Tensor | None = None,
) -> list[Hypothesis]:
    """What given sentences are worth, each with the token that ends: the same numbers that a search gives for them."""
    lengths = torch.tensor([len(target) + 1 for target in targets])
    given = torch.full((len(targets), int(lengths.max()) if len(targets) else 0), end)
    for row, target in enumerate(targets):
        given[row, : len(target)] = torch.as_tensor(target)
    given = given.to(first.device)
    paths = follow(step, state, first, lambda _, place: given[:, place], end=end, longest=lengths)
    return [path.hypothesis(penalty, None if source is None else source[row]) for row, path in enumerate(paths)]
