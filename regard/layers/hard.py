"""Hard attention and how it learns: a key is drawn, and the gradient of the draw is estimated.

The rule is the one of Xu et al. (2015). For one instance, with the keys ŝ drawn from the weights,

    gradient = ∂ log p(y|ŝ)  +  λ_r (log p(y|ŝ) − b) ∂ log p(ŝ)  +  λ_e ∂ H(ŝ)          reward and baseline detached
    b  <-  0.9 b + 0.1 log p(y|ŝ)                                                        after use
    with probability 1/2 for each instance, ŝ is replaced by its expectation: soft attention, and no second term

What each part is unbiased for:

- **As it stands, with λ_r = 1, λ_e = 0 and nothing replaced**: for the gradient of E[log p(y|ŝ)], the bound of the
  paper. With any other λ_r it is biased: the path through the draw and the one through the value weigh differently, and
  their sum is in general the gradient of no objective.
- **Baseline**: unbiased, because it is used before it is updated, so that it does not depend on the draw that it is
  subtracted from. Updated first, it would be biased.
- **Entropy**: it adds the gradient of another objective, λ_e H; of the sum of both objectives the gradient is unbiased.
  That is so where the weights do not depend on earlier draws. In a decoder whose later weights do, H is the entropy
  along the path that was drawn, and what the earlier draws do to it is left out: biased.
- **Replacing by the expectation, with probability r**: unbiased for the gradient of
  (1 − r) E[log p(y|ŝ)] + r log p(y|E[ŝ]), the mean of the hard and the soft objective. As an estimate of either alone
  it is biased. The draw of who is replaced must not depend on the instance.
- **Straight-through and Gumbel** (`HardChoice("straight-through")`, `GumbelChoice()`): biased for E[log p(y|ŝ)], with
  low variance. Gumbel without straight-through is unbiased for its own relaxed objective, which is not the one that is
  used at evaluation.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.core.biases import Bias
from regard.core.hard import Estimate, Gumbel, Hard, gumbel, hard
from regard.core.likelihood import LogProbability
from regard.core.masks import Mask
from regard.core.normalisers import Softmax
from regard.core.see import Entropy
from regard.core.shapes import check_inputs, describe
from regard.core.weigh import SOFTMAX
from regard.kernels.attend import attend
from regard.layers.attention import Attention, Remembered, check_remembered, check_share, named
from regard.layers.normalisers import NormaliserLayer
from regard.layers.scores import listed, score_of


class HardChoice(NormaliserLayer):
    """One key takes the whole weight: a drawn one in training, the best at evaluation."""

    def __init__(self, estimate: Estimate = "score function") -> None:
        super().__init__()
        self.estimate = hard(estimate=estimate).estimate

    def forward(self) -> Hard:
        return hard(sampled=self.training, estimate=self.estimate)

    def extra_repr(self) -> str:
        return listed(("estimate", self.estimate))


class GumbelChoice(NormaliserLayer):
    """A relaxed draw in training (one-hot forward with straight_through), the best key at evaluation."""

    def __init__(self, temperature: float = 1.0, *, straight_through: bool = False) -> None:
        super().__init__()
        self.relaxed = gumbel(temperature, straight_through=straight_through)

    def forward(self) -> Gumbel | Hard:
        return self.relaxed if self.training else hard()

    def extra_repr(self) -> str:
        return listed(("temperature", self.relaxed.temperature), ("straight_through", self.relaxed.straight_through))


class Choice(NamedTuple):
    """What the learning rule needs to know of one call of hard attention."""

    log_probability: Tensor  # [*batch, q], of the keys that were taken; zero, without a gradient, where none was drawn
    entropy: Tensor  # [*batch, q], of the weights they were drawn from
    drawn: Tensor  # [*batch], False where an instance took the expectation


def who_draws(
    batch: torch.Size | tuple[int, ...],
    expectation: float,
    *,
    generator: torch.Generator | None = None,
    device: torch.device | str = "cpu",
) -> Tensor:
    """[*batch], True for each instance that draws, False with probability `expectation`; for one whole sequence."""
    home = device if generator is None else generator.device
    return torch.rand(batch, generator=generator, device=home).to(device) >= check_share(expectation)


class HardAttention(nn.Module):
    """Attention that takes one key for each query: drawn in training, the best at evaluation.

    It is given a soft `Attention`, whose score and projections it uses. In training, each instance takes the soft
    context with probability `expectation`: `Choice` says which, and has what `reinforce` needs.
    """

    def __init__(self, attention: Attention, *, expectation: float = 0.5) -> None:
        super().__init__()
        normalise = attention.normalise
        if not (isinstance(normalise, Softmax) and normalise.temperature == 1.0):
            raise ValueError(
                f"attention: its normaliser is {named(normalise)}; wanted softmax() at temperature 1, by whose weights "
                f"the keys are drawn. Remedy: Attention(score)."
            )
        if attention.dropout:
            raise ValueError(
                f"attention: its dropout is {attention.dropout}, which would hide the key that was drawn. "
                f"Remedy: dropout=0."
            )
        self.attention, self.expectation = attention, check_share(expectation)

    def forward(
        self,
        query: Tensor | None,
        key: Tensor | Remembered,
        value: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        drawn: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Choice]:
        """[*batch, q, …], [*batch, k, …] -> context [*batch, q, …], and the choice.

        `drawn` [*batch] says which instances draw, where a decoder must hold to it through all its steps: `who_draws`.
        """
        layer, guard = self.attention, mask is not None
        if isinstance(key, Remembered):
            past = check_remembered(key, value)
        else:
            check_inputs(query, key, value)
            past = layer.remember(key, value)
        asked, pair = layer.ask(query, guard), score_of(layer.score).pair
        taken, chosen = attend(
            asked, past.key, past.value, score=pair, normalise=hard(sampled=self.training), mask=mask, bias=bias,
            generator=generator, see=LogProbability(),
        )  # fmt: skip
        soft, spread = attend(
            asked, past.key, past.value, score=pair, normalise=SOFTMAX, mask=mask, bias=bias, see=Entropy()
        )
        log_probability, entropy = of(chosen.log_probability), of(spread.entropy)
        batch = taken.shape[:-2]
        if not self.training:
            drawn = torch.ones(batch, dtype=torch.bool, device=taken.device)
        elif drawn is None:
            drawn = who_draws(batch, self.expectation, generator=generator, device=taken.device)
        else:
            drawn = checked(drawn, batch)
        context = torch.where(drawn[..., None, None], taken, soft)
        choice = Choice(log_probability.where(drawn[..., None], 0.0), entropy, drawn)
        return layer.answer(context, guard), choice

    def extra_repr(self) -> str:
        return listed(("expectation", self.expectation))


def of(value: object) -> Tensor:
    """What was seen, known to be a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"wanted a tensor, came {describe(value)}")
    return value


def checked(drawn: Tensor, batch: torch.Size) -> Tensor:
    if not isinstance(drawn, Tensor) or drawn.dtype != torch.bool or drawn.shape != batch:
        raise ValueError(
            f"drawn: came {describe(drawn)} for instances {list(batch)}; wanted one boolean for each. "
            f"Remedy: who_draws({tuple(batch)}, 0.5)."
        )
    return drawn


def reinforce(
    log_likelihood: Tensor,
    log_probability: Tensor,
    entropy: Tensor | None = None,
    *,
    baseline: float | Tensor = 0.0,
    reward_weight: float = 1.0,
    entropy_weight: float = 0.0,
) -> Tensor:
    """The loss of each instance, whose gradient is minus the rule's; its value is -log p(y|ŝ), as it should be shown.

    log_likelihood, log p(y|ŝ); log_probability, log p(ŝ), and entropy, of the same shape: one number an instance, so
    those of several queries are summed. reward_weight is λ_r, entropy_weight λ_e.
    """
    for name, tensor in (("log_probability", log_probability), ("entropy", entropy)):
        if tensor is not None and tensor.shape != log_likelihood.shape:
            raise ValueError(
                f"{name}: came {describe(tensor)} for log_likelihood {describe(log_likelihood)}; wanted one number an "
                f"instance in both. Remedy: {name}.sum(-1) over the queries."
            )
    if entropy is None and entropy_weight:
        raise ValueError(f"entropy: came None with entropy_weight={entropy_weight}. Remedy: choice.entropy.sum(-1).")
    reward = (log_likelihood - baseline).detach()
    steering = reward_weight * reward * log_probability
    if entropy is not None:
        steering = steering + entropy_weight * entropy
    return -(log_likelihood + steering - steering.detach())


class Reinforce(nn.Module):
    """`reinforce` with the moving average of the log-likelihood as its baseline, updated after use, in training only.

    With decay=1 the baseline stays at zero, which is the rule without one.
    """

    def __init__(self, *, reward_weight: float = 1.0, entropy_weight: float = 0.0, decay: float = 0.9) -> None:
        super().__init__()
        if not 0 <= decay <= 1:
            raise ValueError(f"decay: came {decay}, wanted a share between 0 and 1. Remedy: 0.9.")
        self.reward_weight, self.entropy_weight, self.decay = reward_weight, entropy_weight, decay
        self.baseline: Tensor
        self.register_buffer("baseline", torch.zeros(()))

    def forward(self, log_likelihood: Tensor, log_probability: Tensor, entropy: Tensor | None = None) -> Tensor:
        """The loss of each instance; take its mean."""
        loss = reinforce(
            log_likelihood, log_probability, entropy, baseline=self.baseline.clone(),
            reward_weight=self.reward_weight, entropy_weight=self.entropy_weight,
        )  # fmt: skip
        if self.training and log_likelihood.numel():
            self.baseline.lerp_(log_likelihood.detach().mean().to(self.baseline), 1 - self.decay)
        return loss

    def extra_repr(self) -> str:
        return listed(
            ("reward_weight", self.reward_weight), ("entropy_weight", self.entropy_weight), ("decay", self.decay)
        )
