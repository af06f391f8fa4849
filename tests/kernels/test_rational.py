"""The additive score without a tanh: right at every magnitude, by a range guard and never by clamping sides apart."""

import pytest
import torch
from torch import Tensor

import regard
from regard.core.additive import TanhPair
from regard.core.problem import Problem
from regard.kernels.pairs import WIDTH
from regard.kernels.rational import group_size


def by_tanh(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    return torch.tanh(query[:, None] + key[None]) @ weight


def scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """The tiled road's scores: log-sum-exps of single keys."""
    one = [
        regard.attend(
            query,
            key[j : j + 1],
            key[j : j + 1],
            score=regard.additive(weight),
            see=regard.LogSumExp(),
            backend="tiled",
        )[1].logsumexp
        for j in range(key.shape[0])
    ]
    return torch.stack(one, -1)


RANGES = [(1, 1, 0), (10, 9, 0), (50, 30, 0), (500, 30, 0), (50, 50, 0), (50, 30, -40), (1, 1, 200), (1e4, 33, 9000)]


@pytest.mark.parametrize(("of_query", "of_key", "apart"), RANGES)
def test_large_magnitudes_stay_right(of_query: float, of_key: float, apart: float) -> None:
    query = (torch.rand(67, 13) * 2 - 1) * of_query - apart
    key = (torch.rand(2 * WIDTH + 31, 13) * 2 - 1) * of_key + apart
    value, weight = torch.randn(key.shape[0], 5), torch.randn(13) / 8
    exact = by_tanh(*(side.double() for side in (query, key, weight)))
    see = [regard.LogSumExp(), regard.Weights()]
    context, seen = regard.attend(query, key, value, score=regard.additive(weight), see=see, backend="tiled")
    weights = exact.softmax(-1)
    plain = by_tanh(query, key, weight).softmax(-1)
    allowed = max(2 * (plain - weights).abs().max().item(), 1e-6)
    assert (seen.weights - weights).abs().max() <= allowed
    assert (seen.logsumexp - exact.logsumexp(-1)).abs().max() <= 1e-5
    torch.testing.assert_close(context.double(), weights @ value.double(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("of_query", "of_key", "apart"), RANGES)
def test_gradients_at_large_magnitudes(of_query: float, of_key: float, apart: float) -> None:
    query = ((torch.rand(5, 13) * 2 - 1) * of_query - apart).double().requires_grad_()
    key = ((torch.rand(2 * WIDTH + 3, 13) * 2 - 1) * of_key + apart).double().requires_grad_()
    weight = (torch.randn(13) / 8).double().requires_grad_()
    value = torch.randn(key.shape[0], 3, dtype=torch.float64, requires_grad=True)
    slopes = []
    for road in ("definition", "tiled"):
        context = regard.attend(query, key, value, score=regard.additive(weight), backend=road)
        torch.manual_seed(1)
        upstream = torch.randn_like(context)
        slopes.append(torch.autograd.grad(context, (query, key, value, weight), upstream))
    for exact, ours in zip(*slopes, strict=True):
        torch.testing.assert_close(ours, exact, atol=1e-9, rtol=1e-7)


def test_the_two_sides_are_never_clamped_apart() -> None:
    query, key = torch.full((1, 7), 60.0), torch.full((3, 7), -59.0)
    found = scores(query, key, torch.ones(7))
    torch.testing.assert_close(found, torch.full((1, 3), 7 * torch.tensor(1.0).tanh().item()))


def test_weights_of_zero_and_tiny_ones() -> None:
    weight = torch.tensor([0.0, -0.0, 1e-30, -1e-12, 3.0, 1e4, -2.0])
    query, key = torch.randn(5, 7) * 3, torch.randn(WIDTH + 3, 7) * 3
    see = regard.Weights()
    _, seen = regard.attend(query, key, key, score=regard.additive(weight), see=see, backend="tiled")
    exact = by_tanh(query.double(), key.double(), weight.double()).softmax(-1)
    torch.testing.assert_close(seen.weights.double(), exact, atol=2e-2, rtol=0)  # scores of 1e4 are good to 1e-3
    mild = weight.clone()
    mild[5] = 1.0
    _, seen = regard.attend(query, key, key, score=regard.additive(mild), see=see, backend="tiled")
    exact = by_tanh(query.double(), key.double(), mild.double()).softmax(-1)
    torch.testing.assert_close(seen.weights.double(), exact, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("apart", [0.0, 200.0])
@pytest.mark.parametrize("large", [1.0, 1e4])
@pytest.mark.parametrize("temperature", [1.0, 0.01])
def test_where_errors_would_show_it_is_as_good_as_tanh(apart: float, large: float, temperature: float) -> None:
    query, key = torch.randn(31, 3) - apart, torch.randn(2 * WIDTH + 31, 3) + apart
    weight = torch.randn(3) * large
    _, seen = regard.attend(
        query, key, key, score=regard.additive(weight), normalise=regard.softmax(temperature), see=regard.Weights(),
        backend="tiled",
    )  # fmt: skip
    exact = (by_tanh(*(side.double() for side in (query, key, weight))) / temperature).softmax(-1)
    plain = (by_tanh(query, key, weight) / temperature).softmax(-1)
    allowed = max(2 * (plain - exact).abs().max().item(), 1e-5)
    assert (seen.weights - exact).abs().max() <= allowed


@pytest.mark.parametrize("reach", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("size", [0.5, 2.0, 20.0])
def test_where_tanh_is_small_and_exact_it_is_as_good_as_tanh(reach: float, size: float) -> None:
    """A fraction is wrong by a rounding of |w| however small the sides are; a tanh by one of the score."""
    query, key = torch.randn(131, 3) * reach, torch.randn(2 * WIDTH + 31, 3) * reach
    weight = torch.nn.functional.normalize(torch.randn(3), dim=0) * size
    _, seen = regard.attend(
        query, key, key, score=regard.additive(weight), normalise=regard.sparsemax(), see=regard.Weights(),
        backend="tiled",
    )  # fmt: skip
    exact = regard.sparsemax()(by_tanh(query.double(), key.double(), weight.double()))
    plain = regard.sparsemax()(by_tanh(query, key, weight))
    allowed = max(2 * (plain - exact).abs().max().item(), 3e-7)
    assert (seen.weights - exact).abs().max() <= allowed


def test_sharp_weights_of_small_sides_are_left_to_tanh(sizes: list[int]) -> None:
    for reach, sharp in ((0.01, 20.0), (0.01, 1.9), (0.5, 20.0), (0.5, 30.0)):
        query, key = torch.full((31, 2), reach), torch.full((2 * WIDTH + 1, 2), -reach)
        weight = torch.tensor([[0.6, 0.8], [0.0, 1.0]])[:, None] * sharp  # of two heads
        regard.attend(query, key, key, score=regard.additive(weight[:, 0]), backend="tiled")
    assert sizes == [0, 2, 2, 0]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_groups_of_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirteen features are not a multiple of most of these; the weight is its own for each of two heads."""
    monkeypatch.setattr("regard.kernels.walk.group_size", lambda problem, pair: size)
    query = torch.randn(3, 1, 29, 13, dtype=torch.float64, requires_grad=True)
    key = torch.randn(2, WIDTH + 31, 13, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 13, dtype=torch.float64, requires_grad=True)
    value, upstream = torch.randn(WIDTH + 31, 5, dtype=torch.float64), torch.randn(3, 2, 29, 5, dtype=torch.float64)
    found = []
    for road in ("definition", "tiled"):
        context = regard.attend(query, key, value, score=regard.additive(weight), backend=road)
        found.append((context, *torch.autograd.grad(context, (query, key, weight), upstream)))
    for exact, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, exact, atol=1e-11, rtol=1e-9)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many features each call has let share a denominator."""
    asked: list[int] = []

    def ask(problem: Problem, pair: TanhPair) -> int:
        asked.append(group_size(problem, pair))
        return asked[-1]

    monkeypatch.setattr("regard.kernels.walk.group_size", ask)
    return asked


def call(queries: int, reach: float) -> None:
    query, key = torch.full((queries, 13), reach), torch.full((2 * WIDTH + 1, 13), -reach)
    regard.attend(query, key, key, score=regard.additive(torch.randn(13) / 8), backend="tiled")


@pytest.mark.parametrize(
    ("queries", "reach", "size"),
    [(257, 1.0, 4), (257, 4.9, 3), (257, 7.4, 2), (31, 1.0, 2), (31, 14.0, 1), (31, 16.0, 0)],
)
def test_as_many_features_share_a_denominator_as_allowed(
    queries: int, reach: float, size: int, sizes: list[int]
) -> None:
    call(queries, reach)
    assert set(sizes) == {size}


def test_products_that_round_their_inputs_are_not_used(sizes: list[int]) -> None:
    known = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        call(31, 1.0)
    finally:
        torch.set_float32_matmul_precision(known)
    assert set(sizes) == {0}
