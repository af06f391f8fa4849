"""Sparse weights: sparsemax, and entmax of any order from 1 (softmax) upwards.

    p_j = [(a-1) s_j - t]_+ ^ (1/(a-1)),   t such that the weights sum to one        (Peters, Niculae, Martins, 2019)

With b = a-1 and h_j = b (max s - s_j), every two weights in the support satisfy p_i^b + h_i = p_j^b + h_j, so one
weight gives all. Which one is the unknown decides how well the others follow from it:

    b <= 1   the largest weight u:      p_j = u (1 - h_j/u^b)_+ ^ (1/b)       slope dp_j/du = (p_j/u)^(1-b) <= 1
    b >  1   the smallest one that is not zero, q, of key m:   p_j = (h_m - h_j + q^b)^(1/b)   slope (q/p_j)^(b-1) <= 1

In both the sum of the weights is convex and increases with the unknown, so Newton's method from the right comes down on
the answer without overshooting, and rounding is not amplified whatever the order: a threshold t in float32 would be
wrong by 0.3 at a = 20. The first is written with log1p, so that it turns into softmax's u exp(s_j - max s) as b goes to
zero. For b > 1 the support is found first, by a binary search over the sorted scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.core.normalisers import INFINITY, Normaliser, sheltered
from regard.core.scores import Change
from regard.core.shapes import may_look, wide

LEAST = 1e-16  # at this a-1, float64 cannot tell entmax from softmax
STEEPEST = 60.0  # the logarithm of what a gradient is multiplied with at most, so that float32 can still add it up
STEPS = 30  # Newton needs 5 to 12; what is left is for rows made to be hard


def from_largest(h: Tensor, u: Tensor, b: Tensor | float) -> tuple[Tensor, Tensor]:
    """Weights, and their slopes in u, when the largest weight is u; for b <= 1."""
    share = h / torch.exp(b * torch.log(u))
    inside = share < 1
    if isinstance(b, float) and b == 1.0:
        return (u * (1 - share)).where(inside, 0.0), inside.to(h.dtype)
    if isinstance(b, float) and b == 0.5:
        root = (1 - share).where(inside, 0.0)
        return u * root * root, root
    logarithm = torch.log1p(-share.where(inside, 0.0)) / b
    ratio = torch.exp(logarithm).where(inside, 0.0)
    return u * ratio, torch.exp((1 - b) * logarithm).where(inside, 0.0)


def from_smallest(ahead: Tensor, q: Tensor, b: Tensor | float) -> tuple[Tensor, Tensor]:
    """Weights, and their slopes in q, when the smallest one is q; ahead = h_m - h_j (negative: no weight). b > 1."""
    inside = ahead >= 0
    # The larger of the two terms is taken out, since q^b alone may be too small for the type.
    lead = torch.exp(torch.log(ahead.clamp_min(0)) / b)  # the weight at q = 0
    larger, smaller = torch.maximum(lead, q), torch.minimum(lead, q)
    share = torch.exp(b * torch.log(smaller / larger.clamp_min(torch.finfo(q.dtype).tiny)))
    weight = (larger * torch.exp(torch.log1p(share) / b)).where(inside, 0.0)
    slope = torch.exp((b - 1) * torch.log(q / weight)).where(weight > 0, inside.to(q.dtype))
    return weight, slope


def descend(weights_of: Callable[[Tensor], tuple[Tensor, Tensor]], unknown: Tensor) -> Tensor:
    """Newton from the right until the weights sum to one; `weights_of` gives weights and slopes."""
    look = may_look(unknown)
    for _ in range(STEPS):
        weights, slopes = weights_of(unknown)
        excess = weights.sum(-1, keepdim=True) - 1
        following = (unknown - excess / slopes.sum(-1, keepdim=True)).clamp_min(0)
        done = following >= unknown  # it only ever comes down, until rounding holds it
        if look and bool((done | following.isnan()).all()):
            break
        unknown = torch.minimum(following, unknown)
    answer: Tensor = weights_of(unknown)[0]
    return answer


def small_order(h: Tensor, b: Tensor | float) -> Tensor:
    """Weights for b <= 1."""
    return descend(lambda u: from_largest(h, u, b), torch.ones_like(h[..., :1]))


def large_order(h: Tensor, b: Tensor | float) -> Tensor:
    """Weights for b > 1."""
    h = h.clamp_max(2.0)  # what lags by one or more has no weight, or the best had more than one
    ordered = torch.sort(h, -1).values
    low = torch.zeros_like(h[..., :1], dtype=torch.long)  # surely in the support
    high = torch.full_like(low, h.shape[-1])  # surely not
    for _ in range(h.shape[-1].bit_length()):
        middle = (low + high) // 2
        candidate = ordered.gather(-1, middle)
        ahead = (candidate - h).clamp_min(0)
        filled = torch.exp(torch.log(ahead) / b).sum(-1, keepdim=True)  # the sum if the candidate's weight were zero
        inside = filled < 1
        low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
    last = ordered.gather(-1, low)
    return descend(lambda q: from_smallest(last - h, q, b), torch.ones_like(last))


def solve(scores: Tensor, b: Tensor | float) -> Tensor:
    """Weights of rows that have something to see (hidden scores are -infinity), by order b = a-1 [*batch 1 1]."""
    best = scores.amax(-1, keepdim=True)
    h = (b * (best - scores)).nan_to_num()  # NaN comes back below
    if isinstance(b, float):
        weights = small_order(h, b) if b <= 1 else large_order(h, b)
    else:
        weights = torch.where(b <= 1, small_order(h, b.clamp_max(1)), large_order(h, b.clamp_min(1)))
    weights = weights / weights.sum(-1, keepdim=True)
    return weights + (best - best)  # NaN and +infinity make the row NaN, as they do under softmax


def slope_order(logarithm: Tensor, b: Tensor) -> Tensor:
    """(exp(-b L) - 1 + b L) / (b L)^2 times L^2, for L = log p <= 0: what is left of e + L after the division by b."""
    x = -b * logarithm
    small = x < 1e-2
    exact = (torch.expm1(x) - x) / (x * x).where(~small, 1.0)
    series = 0.5 + x / 6 + x * x / 24 + x * x * x / 120
    return torch.where(small, series, exact) * logarithm * logarithm


class Entmax(torch.autograd.Function):
    """Weights of scores and order a, with the closed-form gradients of both.

    ds = r (g - <g, r>/<1, r>) with r = p^(2-a) on the support. The gradient of the order (Correia et al., 2019), with
    L = log p and H = <p, L>, is

        dp/da = p (1/b - L)/b + (H - 1/b)/b r/<1, r>

    Near b = 0 that is a difference of terms in 1/b^2; there it is written out so that nothing cancels, with
    e = (p^-b - 1)/b, E = <p, e>, f = e + L over b:  dp/da = p / (1 + b E) (<p, f> - f + H e - L E).
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, alpha: Tensor, order: float | None) -> Tensor:
        return solve(scores, (alpha - 1).clamp_min(LEAST) if order is None else max(order - 1, LEAST))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float | None], output: Tensor) -> None:
        ctx.save_for_backward(output, inputs[1])
        ctx.save_for_forward(output, inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        weights, alpha = ctx.saved_tensors
        to_scores = through_scores(weights, alpha, gradient)
        if not ctx.needs_input_grad[1]:
            return to_scores, None, None
        change = change_of_order(weights, alpha)
        return to_scores, (gradient * change).sum(-1, keepdim=True).sum_to_size(alpha.shape), None


class DualEntmax(Entmax):
    """The same with forward-mode derivatives, at which PyTorch's compiler stops."""

    @staticmethod
    def jvp(ctx: Any, scores: Tensor, alpha: Tensor, _: None) -> Tensor:
        weights, order = ctx.saved_tensors  # PyTorch hands zeros for what does not move
        return through_scores(weights, order, scores) + change_of_order(weights, order) * alpha


def through_scores(weights: Tensor, alpha: Tensor, slope: Tensor) -> Tensor:
    """The (symmetric) Jacobian of the weights in the scores, times a slope: r (g - <g, r>/<1, r>)."""
    power, top = powers(weights, (alpha - 1).clamp_min(LEAST))
    mean = (slope * power).sum(-1, keepdim=True) / power.sum(-1, keepdim=True)
    return torch.exp(top.clamp_max(STEEPEST)) * (power * (slope - mean))


def powers(weights: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """p^(1-b) on the support over the largest of its row, and the logarithm of that: it may be beyond the type.

    A row of NaN has no support, and its powers are NaN as well: infinity less infinity.
    """
    inside = weights > 0
    exponent = ((1 - b) * torch.log(weights.where(inside, 1.0))).masked_fill(~inside, -INFINITY)
    top = exponent.detach().amax(-1, keepdim=True)
    return torch.exp(exponent - top), top


def change_of_order(weights: Tensor, alpha: Tensor) -> Tensor:
    """dp/da of every weight."""
    b = (alpha - 1).clamp_min(LEAST)
    return torch.where(b < 0.5, change_near_one(weights, b.clamp_max(0.5)), change_far(weights, b.clamp_min(0.5)))


def change_near_one(weights: Tensor, b: Tensor) -> Tensor:
    """dp/da for b <= 1/2, where what is divided by b^2 would cancel."""
    logarithm = torch.log(weights.where(weights > 0, 1.0))
    e = torch.expm1(-b * logarithm) / b
    f = slope_order(logarithm, b)
    mean_e, mean_log, mean_f = ((weights * term).sum(-1, keepdim=True) for term in (e, logarithm, f))
    return weights / (1 + b * mean_e) * (mean_f - f + mean_log * e - logarithm * mean_e)


def change_far(weights: Tensor, b: Tensor) -> Tensor:
    """dp/da for larger b, where p^-b would overflow."""
    power, _ = powers(weights, b)
    logarithm = torch.log(weights.where(weights > 0, 1.0))
    share = power / power.sum(-1, keepdim=True)
    mean_log = (weights * logarithm).sum(-1, keepdim=True)
    return weights * (1 / b - logarithm) / b + (mean_log - 1 / b) / b * share


@dataclass(frozen=True, eq=False)
class EntmaxNormaliser(Normaliser):
    """Entmax of one order, or of a learned one [*batch]"""

    alpha: float | Tensor

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        if not scores.shape[-1]:
            return scores
        safe, seen = sheltered(wide(scores), mask)
        if isinstance(self.alpha, Tensor):
            order, alpha = None, self.alpha[..., None, None].to(safe.dtype)
        else:
            order, alpha = self.alpha, safe.new_full((1,) * safe.dim(), self.alpha)
        function = Entmax if torch.compiler.is_compiling() else DualEntmax
        weights: Tensor = function.apply(safe, alpha, order)  # type: ignore[no-untyped-call]
        return weights.masked_fill(~seen, 0.0)

    def mapped(self, change: Change) -> EntmaxNormaliser:
        return EntmaxNormaliser(change(self.alpha, 0)) if isinstance(self.alpha, Tensor) else self


def entmax(alpha: float | Tensor = 1.5) -> EntmaxNormaliser:
    """Entmax of order alpha: 1 is softmax, 2 sparsemax, above 1 weights may be exactly zero.

    A tensor [*batch] (one order a head, say) is learned; its gradient is exact, also near 1.
    """
    if isinstance(alpha, Tensor):
        if not alpha.is_floating_point():
            raise TypeError(
                f"alpha: came an integer tensor {list(alpha.shape)}, wanted a floating one. Remedy: .float()"
            )
        return EntmaxNormaliser(alpha)
    if not 1 <= alpha <= 100:
        raise ValueError(
            f"alpha: came {alpha}, wanted 1 (softmax) to 100 (nearly hard). Remedy: 1.5 or 2; hard() is the limit."
        )
    return EntmaxNormaliser(float(alpha))


def sparsemax() -> EntmaxNormaliser:
    """The nearest point of the simplex (Martins and Astudillo, 2016): entmax of order 2."""
    return EntmaxNormaliser(2.0)
