"""Learned importance: a score without a query, what matters whoever asks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.scores import Dot, Score
from regard.core.shapes import check_part, check_tensor, check_width, describe, wide


@dataclass(frozen=True, eq=False)
class Importance(Score):
    """u . tanh(W k + b): what matters whoever asks. No query; as many rows as the vector has."""

    vector: Tensor
    weight: Tensor | None = None
    bias: Tensor | None = None

    def rows(self) -> Tensor:
        return self.vector[None] if self.vector.dim() == 1 else self.vector

    def __call__(self, query: Tensor | None, key: Tensor) -> Tensor:
        return wide(self.query_side(query)) @ wide(self.key_side(key)).mT

    def query_side(self, query: Tensor | None) -> Tensor:
        if query is not None:
            raise ValueError(
                f"query: came {describe(query)}, wanted None: learned importance has no query but its own vector. "
                f"Remedy: query=None, or a score that compares (additive, bilinear)."
            )
        return self.rows()

    def key_side(self, key: Tensor) -> Tensor:
        if self.weight is not None:
            check_width("key", key, self.weight.shape[-1], f"by weight {describe(self.weight)}")
            check_part("weight", self.weight, self.weight.shape[-2:], "key", key)
            key = key @ self.weight.to(key.dtype).mT
        if self.bias is not None:
            check_part("bias", self.bias, key.shape[-1:], "the key side", key)
            key = key + self.bias[..., None, :]
        check_width("vector", self.vector, key.shape[-1], f"as the key side's is: {describe(key)}")
        return torch.tanh(key)

    @property
    def pair(self) -> Dot:
        return Dot()


def importance(vector: Tensor, weight: Tensor | None = None, bias: Tensor | None = None) -> Importance:
    """u . tanh(W k + b), without a query (Yang et al., 2016; with several rows and no bias: Lin et al., 2017).

    vector [width] for one context, or [*batch, rows, width] for several; weight [*batch, width, key width];
    bias [*batch, width]. Call `attend(None, key, value, score=importance(...))`.
    """
    check_tensor("vector", vector, 1)
    return Importance(vector, weight, bias)
