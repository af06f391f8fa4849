"""The additive score, w . tanh(W_q q + W_k k + b), and what is added inside the tanh.

Bahdanau et al. (2015) write it with two matrices, Luong et al. (2015) and most lectures with one over the concatenated
pair, w . tanh(W [q; k] + b): the same thing, and it converts both ways. Cohn et al. (2016) and See et al. (2017) add
terms inside the tanh: of the positions, of a window of the previous weights, of the summed weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.scores import Change, Pair, Score, needed
from regard.core.shapes import check_part, check_tensor, check_width, describe, wide


@dataclass(frozen=True, eq=False)
class TanhPair(Pair):
    """w . tanh(a + b), with w [*batch width]"""

    weight: Tensor
    many = True

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        query = needed(query)
        for name, side in (("query", query), ("key", key)):
            check_width(name, side, self.weight.shape[-1], f"by weight {describe(self.weight)}")
        hidden = torch.tanh(wide(query).unsqueeze(-2) + wide(key).unsqueeze(-3))  # [*batch q k width]
        weight = wide(self.weight)
        return hidden @ weight if weight.dim() == 1 else (hidden @ weight[..., None, :, None])[..., 0]

    def mapped(self, change: Change) -> TanhPair:
        return TanhPair(change(self.weight, 1))


@dataclass(frozen=True, eq=False)
class Additive(Score):
    """w . tanh(W_q q + b + query_term + W_k k + key_term); a side whose matrix is None is projected already."""

    weight: Tensor
    query_weight: Tensor | None = None
    key_weight: Tensor | None = None
    bias: Tensor | None = None
    query_term: Tensor | None = None
    key_term: Tensor | None = None

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        left = side("query", wide(needed(query)), self.query_weight, self.bias, self.query_term)
        right = side("key", wide(key), self.key_weight, None, self.key_term)
        return TanhPair(self.weight)(left, right)

    def query_side(self, query: Tensor | None) -> Tensor:
        return side("query", needed(query), self.query_weight, self.bias, self.query_term)

    def key_side(self, key: Tensor) -> Tensor:
        return side("key", key, self.key_weight, None, self.key_term)

    @property
    def pair(self) -> TanhPair:
        return TanhPair(self.weight)

    def concatenated(self) -> tuple[Tensor, Tensor]:
        """(weight, matrix) of the form w . tanh(matrix [q; k] + b): matrix is [*batch, width, q width + k width]."""
        if self.query_weight is None or self.key_weight is None:
            raise ValueError(
                "concatenated: this score has no matrix on "
                f"{'the query' if self.query_weight is None else 'the key'} side, so there is nothing to concatenate. "
                "Remedy: build it with query_weight and key_weight."
            )
        return self.weight, torch.cat([self.query_weight, self.key_weight], -1)


def side(name: str, tensor: Tensor, weight: Tensor | None, bias: Tensor | None, term: Tensor | None) -> Tensor:
    """One side's part of the argument of tanh, [*batch tokens width]."""
    if weight is not None:
        check_width(name, tensor, weight.shape[-1], f"by {name}_weight {describe(weight)}")
        check_part(f"{name}_weight", weight, weight.shape[-2:], name, tensor)
        tensor = tensor @ weight.to(tensor.dtype).mT
    if bias is not None:
        check_part("bias", bias, tensor.shape[-1:], f"the {name} side", tensor)
        tensor = tensor + bias[..., None, :]
    if term is not None:
        check_part(f"{name}_term", term, tensor.shape[-2:], f"the {name} side", tensor)
        tensor = tensor + term
    return tensor


def additive(
    weight: Tensor,
    query_weight: Tensor | None = None,
    key_weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    query_term: Tensor | None = None,
    key_term: Tensor | None = None,
) -> Additive:
    """w . tanh(W_q q + W_k k + b) (Bahdanau et al., 2015).

    weight [*batch, width]; query_weight [*batch, width, query width]; key_weight [*batch, width, key width];
    bias [*batch, width]. A side without a matrix is taken as projected. Terms are added inside the tanh:
    query_term [*batch, queries, width] and key_term [*batch, keys, width].
    """
    check_tensor("weight", weight, 1)
    for name, matrix in (("query_weight", query_weight), ("key_weight", key_weight)):
        if matrix is not None:
            check_tensor(name, matrix, 2)
            if matrix.shape[-2] != weight.shape[-1]:
                raise ValueError(
                    f"{name}: came {describe(matrix)} for weight {describe(weight)}; wanted "
                    f"[..., {weight.shape[-1]}, its side's width]. Remedy: torch.nn.Linear's weight has this layout."
                )
    return Additive(weight, query_weight, key_weight, bias, query_term, key_term)


def concatenated(weight: Tensor, matrix: Tensor, query_width: int, bias: Tensor | None = None) -> Additive:
    """w . tanh(W [q; k] + b), the concatenated form: the first `query_width` columns of the matrix are the query's."""
    check_tensor("matrix", matrix, 2)
    if not 0 < query_width < matrix.shape[-1]:
        raise ValueError(
            f"query_width: came {query_width} for matrix {describe(matrix)}; wanted between 1 and "
            f"{matrix.shape[-1] - 1}. Remedy: the width of q in [q; k]."
        )
    return additive(weight, matrix[..., :query_width], matrix[..., query_width:], bias)


def position_terms(matrix: Tensor, queries: int, keys: int, *, start: int = 0) -> tuple[Tensor, Tensor]:
    """(query_term, key_term) of Cohn's position bias: W [log(1+j), log(1+i), log(1+I)] for target j and source i.

    matrix [*heads, width, 3]; positions count from one. `start` is how many targets came before, for one decoding step.
    """
    check_tensor("matrix", matrix, 2)
    check_width("matrix", matrix, 3, "one column each for log(1+j), log(1+i), log(1+I)")
    target = torch.arange(start + 1, start + queries + 1, device=matrix.device, dtype=matrix.dtype).log1p()
    source = torch.arange(1, keys + 1, device=matrix.device, dtype=matrix.dtype).log1p()
    length = torch.full_like(source, float(keys)).log1p()
    query_term = target[:, None] * matrix[..., None, :, 0]
    key_term = source[:, None] * matrix[..., None, :, 1] + length[:, None] * matrix[..., None, :, 2]
    return query_term, key_term


def window_terms(weights: Tensor, matrix: Tensor) -> Tensor:
    """A key term from weights around each key: of the previous step (Markov), or summed over steps (coverage).

    weights [*batch, k]; matrix [*heads, width, 2 radius + 1] -> [*batch, k, width], heads last in the batch. Outside
    the source the weight is zero.
    """
    check_tensor("weights", weights, 1)
    check_tensor("matrix", matrix, 2)
    if matrix.shape[-1] % 2 == 0:
        raise ValueError(
            f"matrix: came {describe(matrix)}, an even window; wanted [width, 2 radius + 1]. Remedy: an odd window."
        )
    radius = matrix.shape[-1] // 2
    around = torch.nn.functional.pad(weights, (radius, radius)).unfold(-1, matrix.shape[-1], 1)  # [*batch k window]
    return around @ matrix.mT
