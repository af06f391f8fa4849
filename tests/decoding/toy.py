"""A model small enough to enumerate: a recurrent one that looks at a padded source, with random weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decoding import Step

END = 2


@dataclass(frozen=True)
class State:
    """What the model knows: rows of a hidden state, of the source and of where words stand in it."""

    hidden: Tensor
    source: Tensor
    words: Tensor


class Toy:
    """Random weights from a seed; `sharp` makes its choices clearer."""

    def __init__(self, seed: int, vocabulary: int, *, dtype: torch.dtype = torch.float64, sharp: float = 2.0) -> None:
        generator = torch.Generator().manual_seed(seed)
        shapes = {"embed": (vocabulary, 5), "turn": (5, 5), "out": (5, vocabulary), "look": (5, 5)}
        for name, shape in shapes.items():
            setattr(self, name, (torch.randn(shape, generator=generator, dtype=torch.float64) * sharp).to(dtype))
        self.sources = torch.randn(64, 7, 5, generator=generator, dtype=torch.float64).to(dtype)
        self.lengths = torch.randint(1, 8, (64,), generator=generator)
        self.asked = 0

    def start(self, rows: list[int], padding: int = 0) -> tuple[State, Tensor]:
        """The state and the first tokens of these sentences, with so much padding behind the longest."""
        longest = int(self.lengths[rows].max()) + padding
        source = torch.zeros(len(rows), longest, 5, dtype=self.sources.dtype)
        for place, row in enumerate(rows):
            source[place, : self.lengths[row]] = self.sources[row, : self.lengths[row]]
        words = torch.arange(longest) < self.lengths[rows][:, None]
        return State(source.sum(1) * 0.3, source, words), torch.ones(len(rows), dtype=torch.long)

    def step(self, state: State, tokens: Tensor) -> Step:
        self.asked += len(tokens)
        scores = (state.source @ (state.hidden @ self.look)[..., None])[..., 0].masked_fill(~state.words, -torch.inf)
        weights = torch.softmax(scores, -1)
        context = (weights[:, None] @ state.source)[:, 0]
        hidden = torch.tanh(state.hidden @ self.turn * 0.5 + self.embed[tokens] + context)
        return Step(hidden @ self.out, State(hidden, state.source, state.words), weights)
