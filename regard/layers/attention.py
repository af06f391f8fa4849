"""Attention as a layer: any score, any normaliser, and the projections that it is given.

Nothing is stored on the module between calls. What a decoder does once for all its steps is a value: `remember` gives
keys and values with their side done, and the layer takes it in the key's place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.core.biases import Bias
from regard.core.finite import poison
from regard.core.masks import Mask
from regard.core.problem import cleaned
from regard.core.scores import Location, Pair, Score
from regard.core.see import Thing
from regard.core.seen import Seen
from regard.core.shapes import check_inputs, check_tensor, describe
from regard.core.weigh import SCALED_DOT, SOFTMAX
from regard.kernels.attend import attend
from regard.layers.normalisers import AnyNormaliser, NormaliserLayer, normaliser_of
from regard.layers.scores import ScoreLayer, listed, score_of

AnyScore = ScoreLayer | Score | Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Remembered:
    """Keys and values with all done to them that does not depend on the query; `len` is how many."""

    key: Tensor  # [*batch, k, width]
    value: Tensor  # [*batch, k, value width]

    def __len__(self) -> int:
        return self.key.shape[-2]

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Remembered:
        """The same with both tensors changed: the rows of other beams, another device."""
        return Remembered(change(self.key), change(self.value))

    def following(self, past: Remembered | None) -> Remembered:
        """What was remembered before, and then this."""
        if past is None:
            return self
        return Remembered(torch.cat([past.key, self.key], -2), torch.cat([past.value, self.value], -2))


def guarded(work: Callable[[Tensor], Tensor], tensor: Tensor, guard: bool, *, heads: bool = False) -> Tensor:
    """What a projection makes of each token [*batch, tokens, width], in the type that came in.

    With `guard`, a token that holds NaN or infinity is zero while parameters are multiplied with it, and NaN after: so
    a mask that hides it keeps it out of their gradients too. With `heads` the work gives [*batch, heads, tokens, …].
    """
    if not guard:
        return work(tensor)
    clean, bad = cleaned(tensor)
    done = work(clean)
    if bad is None:
        return done
    places = bad[..., None, :, None] if heads else bad[..., None]
    whole = torch.broadcast_shapes(done.shape, places.shape)
    return poison(done.expand(whole), places)


def check_remembered(key: Remembered, value: Tensor | None) -> Remembered:
    if value is not None:
        raise ValueError(
            f"value: came {describe(value)} beside keys that are remembered with their values. Remedy: leave it out, "
            f"or remember(key, value)."
        )
    return key


def check_share(dropout: float) -> float:
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout: came {dropout}, wanted a share between 0 and 1. Remedy: 0.1.")
    return float(dropout)


class Attention(nn.Module):
    """Attention with any score, any normaliser, and the projections that it is given.

    score       a score layer (AdditiveScore(…), …), a frozen score, or a function (query, key) -> scores
    normalise   a normaliser layer (LearnedEntmax(), …), a normaliser, or a function (scores, mask) -> weights
    query, key, value, output
                modules that are applied to each token by itself, torch.nn.Linear(…) say; left out, nothing is done
    dropout     the share of weights set to zero in training
    """

    def __init__(
        self,
        score: AnyScore = SCALED_DOT,
        normalise: NormaliserLayer | AnyNormaliser = SOFTMAX,
        *,
        query: nn.Module | None = None,
        key: nn.Module | None = None,
        value: nn.Module | None = None,
        output: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        score_of(score)  # says now what is wrong with it
        self.score, self.normalise = score, normalise
        self.query, self.key, self.value, self.output = query, key, value, output
        self.dropout = check_share(dropout)

    def remember(self, key: Tensor, value: Tensor | None = None, *, after: Remembered | None = None) -> Remembered:
        """The keys' side done once, [*batch, k, width]; values are the keys where none are given.

        The layer takes it in the key's place, at any number of calls. `after` is what was remembered before.
        """
        check_inputs(None, key, value)
        if after is not None and isinstance(score_of(self.score), Location):
            raise ValueError(
                "after: a location score knows keys by their index, which would start again. "
                "Remedy: remember all keys at once."
            )
        return self._remember(key, value, True).following(after)

    def _remember(self, key: Tensor, value: Tensor | None, guard: bool) -> Remembered:
        score = score_of(self.score)
        value = key if value is None else value
        worked = guard and not (self.key is None and isinstance(score, Pair))

        def side(tokens: Tensor) -> Tensor:
            tokens = tokens if self.key is None else self.key(tokens)
            return score.key_side(tokens).to(tokens.dtype)

        return Remembered(
            guarded(side, key, worked), value if self.value is None else guarded(self.value, value, guard)
        )

    def ask(self, query: Tensor | None, guard: bool = True) -> Tensor:
        """The queries' side, [*batch, q, width]."""
        score = score_of(self.score)
        if query is None:
            return score.query_side(None)
        check_tensor("query", query, 2)

        def side(tokens: Tensor) -> Tensor:
            tokens = tokens if self.query is None else self.query(tokens)
            return score.query_side(tokens).to(tokens.dtype)

        return guarded(side, query, guard and not (self.query is None and isinstance(score, Pair)))

    def answer(self, context: Tensor, guard: bool = True) -> Tensor:
        """The context as it leaves the layer."""
        return context if self.output is None else guarded(self.output, context, guard)

    def forward(
        self,
        query: Tensor | None,
        key: Tensor | Remembered,
        value: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        see: Thing | list[Thing] | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor | tuple[Tensor, Seen]:
        """[*batch, q, …], [*batch, k, …] -> [*batch, q, …]; with `see`, (context, Seen).

        The key may be what `remember` gave. Values are the keys where none are given. The query is None where the
        score has one of its own.
        """
        guard = mask is not None
        if isinstance(key, Remembered):
            past = check_remembered(key, value)
        else:
            check_inputs(query, key, value)
            past = self._remember(key, value, guard)
        answer = attend(
            self.ask(query, guard), past.key, past.value,
            score=score_of(self.score).pair, normalise=normaliser_of(self.normalise), mask=mask, bias=bias,
            dropout=self.dropout if self.training else 0.0, generator=generator, see=see,
        )  # fmt: skip
        if isinstance(answer, tuple):
            return self.answer(answer[0], guard), answer[1]
        return self.answer(answer, guard)

    def extra_repr(self) -> str:
        return listed(
            ("score", None if isinstance(self.score, nn.Module) else named(self.score)),
            ("normalise", None if isinstance(self.normalise, nn.Module) else named(self.normalise)),
            ("dropout", self.dropout or None),
        )


def named(part: object) -> str:
    """A score or normaliser in one word, without the tensors that it holds."""
    return getattr(part, "__name__", type(part).__name__)
