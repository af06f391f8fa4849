"""Normalisers that are learned: how sparse, and how sharp."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.core.entmax import EntmaxNormaliser, entmax
from regard.core.normalisers import Softmax, softmax
from regard.layers.scores import listed, per_head, sized

AnyNormaliser = Callable[[Tensor, Tensor | None], Tensor]


class NormaliserLayer(nn.Module, ABC):
    """A module whose call gives the frozen normaliser."""

    @abstractmethod
    def forward(self) -> AnyNormaliser:
        """The normaliser with the parameters of now."""


def normaliser_of(normalise: NormaliserLayer | AnyNormaliser) -> AnyNormaliser:
    """A layer's normaliser of now; a normaliser, or a user's own function or module, as it is."""
    return normalise.forward() if isinstance(normalise, NormaliserLayer) else normalise


class LearnedEntmax(NormaliserLayer):
    """Entmax whose order is learned, for each head by itself (Correia et al., 2019).

    alpha = 1 + (most - 1) sigmoid(x): it may come as near to 1 as it likes, where entmax is softmax, and the bound
    keeps a head from becoming a choice that no gradient leaves.
    """

    def __init__(self, heads: int | None = None, *, alpha: float = 1.5, most: float = 2.0) -> None:
        super().__init__()
        sized(("heads", heads))
        if not 1 < most <= 100:
            raise ValueError(f"most: came {most}, wanted above 1 (softmax) and up to 100. Remedy: 2, sparsemax's.")
        if not 1 < alpha < most:
            raise ValueError(
                f"alpha: came {alpha}, wanted a start between 1 and most={most}, both left out. "
                f"Remedy: {(1 + most) / 2}."
            )
        share = (alpha - 1) / (most - 1)
        self.order = nn.Parameter(torch.full(per_head(heads), math.log(share / (1 - share))))
        self.most = float(most)

    @property
    def alpha(self) -> Tensor:
        """The order of now, [] or [heads]."""
        return 1 + (self.most - 1) * torch.sigmoid(self.order)

    def forward(self) -> EntmaxNormaliser:
        return entmax(self.alpha)

    def extra_repr(self) -> str:
        return listed(("heads", self.order.numel() if self.order.dim() else None), ("most", self.most))


class LearnedTemperature(NormaliserLayer):
    """Softmax whose temperature is learned, for each head by itself, and stays above zero"""

    def __init__(self, heads: int | None = None, *, temperature: float = 1.0) -> None:
        super().__init__()
        sized(("heads", heads))
        if not temperature > 0:
            raise ValueError(f"temperature: came {temperature}, wanted a positive number. Remedy: 1, its start.")
        self.log_temperature = nn.Parameter(torch.full(per_head(heads), math.log(temperature)))

    def forward(self) -> Softmax:
        return softmax(self.log_temperature.exp())

    def extra_repr(self) -> str:
        return listed(("heads", self.log_temperature.numel() if self.log_temperature.dim() else None))
