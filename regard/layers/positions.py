"""Where tokens stand: added to embeddings, turned into queries and keys, or a bias on the scores.

Sinusoidal and learned positions are added to what a model embeds. The others are the position part of
`MultiHeadAttention`: each says how queries and keys are turned, and what bias there is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from regard.core.biases import Alibi, Bias, Buckets, Relative, alibi, alibi_slopes, relative, t5_buckets
from regard.core.positions import rotated, sinusoids
from regard.core.shapes import check_width, describe
from regard.core.windows import Align, check_align
from regard.layers.scores import listed, sized


class SinusoidalPositions(nn.Module):
    """Tokens [..., length, width] plus the sines and cosines of where they stand (Vaswani et al., 2017)"""

    def __init__(self, width: int, *, longest: float = 10000.0) -> None:
        super().__init__()
        sized(("width", width))
        sinusoids(torch.zeros(1), width, longest=longest)  # says now what is wrong with them
        self.width, self.longest = width, float(longest)

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """`start` is how many tokens came before."""
        check_width("tokens", tokens, self.width, "the width of these positions")
        places = torch.arange(start, start + tokens.shape[-2], device=tokens.device)
        return tokens + sinusoids(places, self.width, longest=self.longest).to(tokens.dtype)

    def extra_repr(self) -> str:
        return listed(("width", self.width))


class LearnedPositions(nn.Module):
    """Tokens [..., length, width] plus a learned vector for every place"""

    def __init__(self, places: int, width: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        sized(("places", places), ("width", width))
        self.weight = nn.Parameter(torch.empty(places, width).normal_(0, 0.02, generator=generator))

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """`start` is how many tokens came before."""
        check_width("tokens", tokens, self.weight.shape[-1], f"by weight {describe(self.weight)}")
        stop = start + tokens.shape[-2]
        if stop > self.weight.shape[0]:
            raise ValueError(
                f"tokens: came {describe(tokens)} from place {start}, to place {stop}; these positions know "
                f"{self.weight.shape[0]} places. Remedy: more places, or sinusoidal positions, which have no end."
            )
        return tokens + self.weight[start:stop]

    def extra_repr(self) -> str:
        return listed(("places", self.weight.shape[0]), ("width", self.weight.shape[1]))


class PositionPart(nn.Module, ABC):
    """What `MultiHeadAttention` asks of its positions."""

    @abstractmethod
    def turned_keys(self, key: Tensor, start: int) -> Tensor:
        """Keys [*batch, heads, k, width] of which `start` came before, told where they stand."""

    @abstractmethod
    def turned_queries(self, query: Tensor, keys: int) -> Tensor:
        """Queries [*batch, heads, q, width] that look at so many keys, told where they stand."""

    @abstractmethod
    def bias(self) -> Bias | None:
        """What is added to the scores."""


class RotaryPositions(PositionPart):
    """Queries and keys turned by where they stand (Su et al., 2021): a score depends on how far apart they are.

    With fewer queries than keys, align="end" makes the last query stand at the last key, as in decoding;
    align="start" the first at the first.
    """

    def __init__(self, *, longest: float = 10000.0, align: Align = "end") -> None:
        super().__init__()
        if not longest > 0:
            raise ValueError(f"longest: came {longest}, wanted a positive wavelength. Remedy: 10000.")
        self.longest, self.align = float(longest), check_align(align)

    def turned_keys(self, key: Tensor, start: int) -> Tensor:
        places = torch.arange(start, start + key.shape[-2], device=key.device)
        return rotated(key, places, longest=self.longest)

    def turned_queries(self, query: Tensor, keys: int) -> Tensor:
        return self.turned_keys(query, keys - query.shape[-2] if self.align == "end" else 0)

    def bias(self) -> None:
        return None

    def extra_repr(self) -> str:
        return listed(("longest", self.longest), ("align", self.align))


class BiasPart(PositionPart):
    """Positions that turn nothing."""

    def turned_keys(self, key: Tensor, start: int) -> Tensor:
        return key

    def turned_queries(self, query: Tensor, keys: int) -> Tensor:
        return query


class RelativePositions(BiasPart):
    """A learned bias for every distance up to `reach`, beyond which distances count as the same"""

    def __init__(self, reach: int, heads: int, *, align: Align = "end") -> None:
        super().__init__()
        sized(("reach", reach), ("heads", heads))
        self.table = nn.Parameter(torch.zeros(heads, 2 * reach + 1))
        self.align = check_align(align)

    def bias(self) -> Relative:
        return relative(self.table, align=self.align)

    def extra_repr(self) -> str:
        return listed(("reach", self.table.shape[1] // 2), ("heads", self.table.shape[0]), ("align", self.align))


class BucketedPositions(BiasPart):
    """T5's learned bias: a number for every distance when near, for ever wider ranges when far (Raffel et al., 2020)"""

    def __init__(
        self,
        heads: int,
        buckets: int = 32,
        *,
        bidirectional: bool = True,
        farthest: int = 128,
        align: Align = "end",
    ) -> None:
        super().__init__()
        sized(("heads", heads), ("buckets", buckets))
        self.table = nn.Parameter(torch.zeros(heads, buckets))
        t5_buckets(self.table, bidirectional=bidirectional, farthest=farthest)  # says now what is wrong with them
        self.bidirectional, self.farthest, self.align = bidirectional, farthest, check_align(align)

    def bias(self) -> Buckets:
        return t5_buckets(self.table, bidirectional=self.bidirectional, farthest=self.farthest, align=self.align)

    def extra_repr(self) -> str:
        return listed(
            ("heads", self.table.shape[0]),
            ("buckets", self.table.shape[1]),
            ("bidirectional", self.bidirectional),
            ("farthest", self.farthest),
            ("align", self.align),
        )


class AlibiPositions(BiasPart):
    """A penalty that grows with distance, steeper in some heads than in others (Press et al., 2022), not learned"""

    def __init__(self, heads: int, *, align: Align = "end") -> None:
        super().__init__()
        sized(("heads", heads))
        self.slopes: Tensor
        self.register_buffer("slopes", alibi_slopes(heads), persistent=False)
        self.align = check_align(align)

    def bias(self) -> Alibi:
        return alibi(self.slopes, align=self.align)

    def extra_repr(self) -> str:
        return listed(("heads", self.slopes.numel()), ("align", self.align))
