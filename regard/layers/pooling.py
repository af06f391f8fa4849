"""One vector, or a few, for a whole sequence: what matters, by a query that is learned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.core.masks import Mask
from regard.core.see import Thing
from regard.core.seen import Seen
from regard.core.shapes import check_tensor
from regard.core.weigh import SOFTMAX
from regard.layers.attention import Attention
from regard.layers.normalisers import AnyNormaliser, NormaliserLayer
from regard.layers.scores import ImportanceScore


class Pooling(nn.Module):
    """The tokens of a sequence, summed by u . tanh(W h + b) under softmax (Yang et al., 2016).

    With `rows`, as many sums, each by a vector of its own (Lin et al., 2017, who have no bias; `redundancy` keeps them
    apart). `hidden` is the width of the tanh, the tokens' own if it is not given.
    """

    def __init__(
        self,
        width: int,
        hidden: int | None = None,
        *,
        rows: int | None = None,
        bias: bool = True,
        normalise: NormaliserLayer | AnyNormaliser = SOFTMAX,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        score = ImportanceScore(width, width if hidden is None else hidden, rows, bias=bias, generator=generator)
        self.attention = Attention(score, normalise, dropout=dropout)
        self.rows = rows

    def forward(
        self,
        tokens: Tensor,
        value: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        see: Thing | list[Thing] | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor | tuple[Tensor, Seen]:
        """[*batch, length, width] -> [*batch, width], or [*batch, rows, width] with `rows`; with `see`, (…, Seen).

        What is summed is `value` where it is given. Padding is hidden by mask=lengths(keys=…).
        """
        answer = self.attention(None, tokens, value, mask=mask, see=see, generator=generator)
        pooled, seen = answer if isinstance(answer, tuple) else (answer, None)
        pooled = pooled.squeeze(-2) if self.rows is None else pooled
        return pooled if seen is None else (pooled, seen)


def redundancy(weights: Tensor) -> Tensor:
    """‖A Aᵀ − I‖²_F of weights [*batch, rows, keys], [*batch]: how much the rows look at the same (Lin et al., 2017).

    Zero when each row looks at one key and no two at the same. Ask for the weights with see=Weights().
    """
    check_tensor("weights", weights, 2)
    overlap = weights @ weights.mT
    return (overlap - torch.eye(weights.shape[-2], dtype=weights.dtype, device=weights.device)).square().sum((-2, -1))
