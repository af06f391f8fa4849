"""Entmax against the entmax package, against a bisection with many decimal digits, and its gradients of every kind."""

import decimal
import math
from decimal import Decimal

import entmax as package
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import regard
from regard.core.entmax import change_of_order, slope_order, through_scores

ORDERS = [1.0, 1 + 1e-7, 1.001, 1.05, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 5.0, 20.0, 100.0]
SHAPES = {
    "near": torch.tensor([0.3, -0.2, 0.1, 0.25, -1.0, 0.29]),
    "far": torch.tensor([3.0, -2.0, 1.0, 2.5, -10.0, 2.9]),
    "equal": torch.tensor([0.7, 0.7, 0.7, 0.7, 0.7]),
    "two equal": torch.tensor([0.7, 0.7, 0.69, -1.0]),
    "hidden": torch.tensor([0.7, -torch.inf, 0.5, -torch.inf, 0.4]),
    "one": torch.tensor([-3.0]),
    "huge": torch.tensor([1e4, 1e4 - 1, -1e4, 9e3]),
    "tiny": torch.tensor([1e-5, 2e-5, -1e-5, 0.0]),
}


def by_bisection(scores: list[float], alpha: float) -> list[float]:
    """sum over j of [(a-1) s_j - t]_+ ^ 1/(a-1) = 1, solved for t with many digits, and more for large orders.

    A weight p is the difference p^(a-1) of two numbers: at a = 20 of 1e-19, at 100 of 1e-99.
    """
    with decimal.localcontext() as context:
        digits = context.prec = 36 if alpha < 4 else 60 if alpha < 10 else 150
        order = Decimal(alpha) - 1
        scaled = [order * Decimal(s) for s in scores if s != -math.inf]

        def weight(x: Decimal) -> Decimal:
            return (x.ln() / order).exp() if x > 0 else Decimal(0)

        low, high = max(scaled) - 1, max(scaled)
        for _ in range(int(2.8 * digits)):
            middle = (low + high) / 2
            total = sum(weight(x - middle) for x in scaled)
            low, high = (middle, high) if total >= 1 else (low, middle)
        weights = iter([float(weight(x - low)) for x in scaled])
        return [0.0 if s == -math.inf else next(weights) for s in scores]


@pytest.mark.parametrize("alpha", [order for order in ORDERS if order > 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_any_order_is_bisection_with_many_digits(alpha: float, shape: str) -> None:
    if alpha == 100 and shape == "near":
        return  # its smallest weight is the difference of two numbers that agree in four hundred digits
    scores = SHAPES[shape].double()
    wanted = torch.tensor(by_bisection(scores.tolist(), alpha), dtype=torch.float64)
    torch.testing.assert_close(regard.entmax(alpha)(scores), wanted, rtol=1e-11, atol=1e-13)
    learned = regard.entmax(torch.tensor(alpha, dtype=torch.float64))(scores[None])[0]
    torch.testing.assert_close(learned, wanted, rtol=1e-11, atol=1e-13)
    single = regard.entmax(alpha)(scores.float())  # float32 holds (almost) these scores, and no threshold of theirs
    wanted = torch.tensor(by_bisection(scores.float().tolist(), alpha))
    torch.testing.assert_close(single, wanted.float(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0, 1e3])
def test_sparsemax_and_entmax_15_are_the_package_s(scale: float) -> None:
    scores = torch.randn(3, 5, 11, dtype=torch.float64) * scale
    torch.testing.assert_close(regard.sparsemax()(scores), package.sparsemax(scores, -1), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(regard.entmax(1.5)(scores), package.entmax15(scores, -1), rtol=1e-9, atol=1e-12)
    for alpha in (1.1, 1.5, 2.0, 2.5):
        wanted = package.entmax_bisect(scores, alpha, -1, n_iter=100)
        torch.testing.assert_close(regard.entmax(alpha)(scores), wanted, rtol=1e-8, atol=1e-9)


def test_gradients_are_the_package_s() -> None:
    scores = torch.randn(7, 13, dtype=torch.float64, requires_grad=True)
    push = torch.randn(7, 13, dtype=torch.float64)
    for ours, theirs in (
        (regard.sparsemax(), lambda s: package.sparsemax(s, -1)),
        (regard.entmax(1.5), lambda s: package.entmax15(s, -1)),
    ):
        (mine,) = torch.autograd.grad((ours(scores) * push).sum(), scores)
        (other,) = torch.autograd.grad((theirs(scores) * push).sum(), scores)
        torch.testing.assert_close(mine, other)
    alpha = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    mine = torch.autograd.grad((regard.entmax(alpha)(scores) * push).sum(), (scores, alpha))
    other = torch.autograd.grad((package.entmax_bisect(scores, alpha, -1, n_iter=100) * push).sum(), (scores, alpha))
    for one, two in zip(mine, other, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("alpha", [1.001, 1.05, 1.3, 1.5, 1.9, 2.0, 2.3, 3.0])
def test_gradcheck_of_scores_and_order(alpha: float) -> None:
    """First and second, away from where a key joins the support."""
    scores = torch.tensor([[0.3, -0.2, 0.1, 0.25, -3.0], [1.0, 0.5, -0.5, -4.0, 0.9]], dtype=torch.float64)
    scores.requires_grad_()
    order = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    assert gradcheck(regard.entmax(alpha), (scores,))
    assert gradgradcheck(regard.entmax(alpha), (scores,), atol=1e-4)
    assert gradcheck(lambda s, a: regard.entmax(a)(s), (scores, order))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # PyTorch's own, in its jvp
@pytest.mark.parametrize("alpha", [1.05, 1.5, 2.0, 2.3])
def test_forward_mode(alpha: float) -> None:
    """Derivatives along a direction are those of backward, for scores, order, and both."""
    scores, along = torch.randn(2, 3, 1, 5, dtype=torch.float64), torch.randn(2, 3, 1, 5, dtype=torch.float64)
    order, up = torch.full((3,), alpha, dtype=torch.float64), torch.rand(3, dtype=torch.float64)

    def weights(s: Tensor, a: Tensor) -> Tensor:
        return regard.entmax(a)(s)

    of_scores, of_order = torch.autograd.functional.jacobian(weights, (scores, order))
    by_scores = (of_scores.reshape(30, 30) @ along.flatten()).reshape(2, 3, 1, 5)
    by_order = (of_order.reshape(30, 3) @ up).reshape(2, 3, 1, 5)
    zero = torch.zeros_like
    for s, a, wanted in ((along, zero(up), by_scores), (zero(along), up, by_order), (along, up, by_scores + by_order)):
        _, found = torch.func.jvp(weights, (scores, order), (s, a))
        torch.testing.assert_close(found, wanted)
    _, found = torch.func.jvp(regard.entmax(alpha), (scores,), (along,))
    torch.testing.assert_close(found, by_scores)
    _, found = torch.func.jvp(lambda a: regard.entmax(a)(scores), (order,), (up,))
    torch.testing.assert_close(found, by_order)


@pytest.mark.parametrize("alpha", [1.0, 1 + 1e-9, 1 + 1e-6, 1.0001, 1.01])
def test_the_gradient_of_the_order_near_one(alpha: float) -> None:
    """Against a difference of the weights, with many digits, at two orders."""
    scores = torch.randn(2, 5, dtype=torch.float64)
    order = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    weights = regard.entmax(order)(scores)
    for place in (0, 3):
        (found,) = torch.autograd.grad(weights[:, place].sum(), order, retain_graph=True)
        step = 1e-6
        high, low = (
            sum(by_bisection(row, max(alpha, 1 + step) + sign * step * 0.999)[place] for row in scores.tolist())
            for sign in (1, -1)
        )
        assert found.item() == pytest.approx((high - low) / (2 * step * 0.999), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0, 3.0])
def test_long_rows_sum_to_one(alpha: float) -> None:
    """What Newton leaves over is shared out: a thousand weights are off by less than two of them may round to."""
    total = regard.entmax(alpha)(torch.randn(53, 1009)).double().sum(-1)
    assert (total - 1).abs().max() < 2e-7


def test_more_orders_than_scores() -> None:
    """Heads that only the orders have; their gradients, and those of the scores that they share."""
    scores = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    alpha = torch.tensor([[1.2], [1.7], [2.6]], dtype=torch.float64, requires_grad=True).expand(3, 2)
    weights = regard.entmax(alpha)(scores)
    assert weights.shape == (3, 2, 5, 7)
    push = torch.randn_like(weights)
    found = torch.autograd.grad((weights * push).sum(), (scores, alpha))
    each = [regard.entmax(alpha[i, j])(scores) for i in range(3) for j in range(2)]
    wanted = torch.autograd.grad((torch.stack(each).unflatten(0, (3, 2)) * push).sum(), (scores, alpha))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_orders_that_can_be_asked_for() -> None:
    assert regard.entmax().alpha == 1.5
    assert regard.entmax(1).alpha == 1
    assert regard.entmax(100).alpha == 100
    for alpha in (0.99, 100.5, math.nan):
        with pytest.raises(ValueError, match=r"^alpha: came .*, wanted 1 \(softmax\) to 100 \(nearly hard\)\. Remedy"):
            regard.entmax(alpha)


def test_an_order_for_every_head() -> None:
    alpha = torch.tensor([1.0, 1.3, 2.0, 4.0])
    scores = torch.randn(3, 4, 5, 7)
    together = regard.entmax(alpha)(scores)
    each = torch.stack([regard.entmax(a)(scores[:, h]) for h, a in enumerate(alpha.tolist())], 1)
    torch.testing.assert_close(together, each)
    assert regard.entmax(alpha.double())(scores).dtype == torch.float32
    doubled = regard.entmax(alpha).mapped(lambda tensor, own: tensor[..., :1])
    assert doubled.alpha.shape == (1,)
    assert regard.sparsemax().mapped(lambda tensor, own: tensor + 1).alpha == 2.0


@pytest.mark.parametrize("alpha", ORDERS)
def test_nothing_infinite_and_nothing_hidden_gets_weight(alpha: float) -> None:
    scores = torch.randn(3, 5, 7)
    mask = torch.rand(3, 5, 7) < 0.5
    mask[0, 0] = False
    weights = regard.entmax(alpha)(scores, mask)
    assert ((weights == 0) | mask).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).float())
    scores[1, 1, 2] = torch.nan
    assert regard.entmax(alpha)(scores)[1, 1].isnan().all()
    assert not regard.entmax(alpha)(scores)[1, 2].isnan().any()
    assert regard.entmax(alpha)(torch.randn(3, 0)).shape == (3, 0)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 2.5])
def test_gradients_are_finite_and_sum_to_nothing(alpha: float) -> None:
    """Weights sum to one whatever the scores, so a gradient of theirs sums to zero over a row."""
    scores = (torch.randn(3, 5, 7, dtype=torch.float64) * 2).requires_grad_()
    weights = regard.entmax(alpha)(scores)
    weights.backward(torch.randn_like(weights))
    torch.testing.assert_close(scores.grad.sum(-1), torch.zeros(3, 5, dtype=torch.float64), atol=1e-12, rtol=0)


def test_a_nan_in_a_row_is_a_nan_in_its_gradient_alone() -> None:
    scores = torch.randn(2, 3, dtype=torch.float64)
    scores[0, 1] = torch.nan
    scores.requires_grad_()
    regard.sparsemax()(scores)[1].sum().backward()
    assert torch.isfinite(scores.grad[1]).all()


def as_if_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.core.entmax.may_look", lambda tensor: False)


@pytest.mark.parametrize("alpha", [1.001, 1.5, 2.0, 2.5, 20.0])
def test_it_ends_without_looking(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numbers may not be looked at, as many steps are made as are surely enough."""
    scores = torch.randn(5, 7, dtype=torch.float64)
    looked: Tensor = regard.entmax(alpha)(scores)
    as_if_compiled(monkeypatch)
    torch.testing.assert_close(regard.entmax(alpha)(scores), looked, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0, 5.0, 20.0, 100.0])
def test_slopes_of_tiny_weights(alpha: float, dtype: torch.dtype) -> None:
    """p^(2-a) of a weight near zero is beyond any type, and what two of them share must not depend on it."""
    weights = torch.rand(13, 7, dtype=torch.float64) ** 7
    weights[:, 3] = 0
    weights = (weights / weights.sum(-1, keepdim=True)).to(dtype)
    slope = torch.randn(13, 7, dtype=torch.float64) * 1e3
    logarithm = ((2 - alpha) * weights.double().log()).masked_fill(weights == 0, -torch.inf)
    top = logarithm.amax(-1, keepdim=True)
    power = torch.exp(logarithm - top)
    wanted = power * (slope - (power * slope).sum(-1, keepdim=True) / power.sum(-1, keepdim=True))
    found = through_scores(weights, torch.tensor(alpha, dtype=dtype), slope.to(dtype))
    assert torch.isfinite(found.sum(0)).all(), "it can be added up"
    steepest = torch.exp(top.clamp_max(60.0))
    torch.testing.assert_close(found.double() / steepest, wanted, atol=2e-3 if dtype == torch.float32 else 1e-9, rtol=0)


@pytest.mark.parametrize("alpha", [1.49, 1.51, 2.0, 5.0, 20.0, 100.0])
def test_the_slope_of_the_order_at_tiny_weights(alpha: float) -> None:
    """By its formula in many digits; on either side of where it is written in another way."""
    weights = torch.rand(5, 7, dtype=torch.float64) ** 9
    weights[:, 3] = 0
    weights = weights / weights.sum(-1, keepdim=True)
    found = change_of_order(weights, torch.tensor(alpha, dtype=torch.float64))
    with decimal.localcontext() as context:
        context.prec = 60
        b = Decimal(alpha) - 1
        for row, slopes in zip(weights.tolist(), found.tolist(), strict=True):
            support = [Decimal(p) for p in row if p > 0]
            logs = [p.ln() for p in support]
            mean = sum(p * log for p, log in zip(support, logs, strict=True))
            power = [((1 - b) * log).exp() for log in logs]
            wanted = [
                p * (1 / b - log) / b + (mean - 1 / b) / b * r / sum(power)
                for p, log, r in zip(support, logs, power, strict=True)
            ]
            have = [slope for slope, p in zip(slopes, row, strict=True) if p > 0]
            assert have == pytest.approx([float(number) for number in wanted], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("x", [1e-12, 1e-5, 3e-3, 0.0099, 0.01, 0.011, 0.3, 5.0])
def test_what_is_left_after_cancelling(x: float) -> None:
    """(exp(x) - 1 - x) / x^2 by its series and by itself, at x = -b log p."""
    b, logarithm = torch.tensor(0.25, dtype=torch.float64), torch.tensor([-4 * x], dtype=torch.float64)
    with decimal.localcontext() as context:
        context.prec = 60
        exact = Decimal(x)
        wanted = (exact.exp() - 1 - exact) / exact**2 * 16 * exact**2
    assert slope_order(logarithm, b).item() == pytest.approx(float(wanted), rel=3e-11, abs=0)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 1.7, 2.4])
def test_the_slope_of_the_order_has_a_slope_at_tiny_weights(alpha: float) -> None:
    """The way that is not taken must not put infinity times zero into a second derivative."""
    weights = torch.tensor([[1.0, 1e-300, 1e-200, 0.0]], dtype=torch.float64)
    order = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(change_of_order(weights, order).sum(), order)
    assert torch.isfinite(found)
