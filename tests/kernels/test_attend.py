"""attend and coattend: the function protocol, the fast way to PyTorch's kernel, autocast, both contexts at once."""

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

import regard


class Watching(TorchFunctionMode):
    """Notes the names of the functions that pass."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.append(getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("score", [regard.scaled_dot(), regard.squared_distance()])
def test_a_function_mode_sees_one_call(score: object) -> None:
    query = torch.randn(2, 3, 7, 5)
    with Watching() as watching:
        watched = regard.attend(query, query, query, score=score)
    assert watching.names == ["attend"]
    torch.testing.assert_close(watched, regard.attend(query, query, query, score=score))


@pytest.mark.parametrize("dimensions", [2, 3, 4, 5])
def test_the_straight_way_is_pytorchs(dimensions: int) -> None:
    query, key, value = (torch.randn((*(2, 3, 5)[: dimensions - 2], n, w)) for n, w in ((7, 5), (11, 5), (11, 3)))
    wanted = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(regard.attend(query, key, value), wanted)
    torch.testing.assert_close(regard.attend(query, key, value, backend="definition"), wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("road", ["definition", "tiled", "fused", "auto"])
def test_autocast_is_casting_by_hand(dtype: torch.dtype, road: str) -> None:
    query, key, value = (torch.randn(2, 3, n, 5) for n in (7, 11, 11))
    by_hand = [side.to(dtype) for side in (query, key, value)]
    with torch.autocast("cpu", dtype=dtype):
        cast = regard.attend(query, key, value, mask=regard.causal(), backend=road)
        mixed = regard.attend(by_hand[0], key, value, mask=regard.causal(), backend=road)
    wanted = regard.attend(*by_hand, mask=regard.causal(), backend=road)
    assert cast.dtype == mixed.dtype == wanted.dtype == dtype
    assert torch.equal(cast, wanted)
    assert torch.equal(mixed, wanted)


def test_scores_stay_wide_under_autocast() -> None:
    query = torch.randn(2, 31, 5) * 3
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, seen = regard.attend(query, query, query, see=[regard.LogSumExp(), regard.Weights()])
    assert seen.logsumexp.dtype == seen.weights.dtype == torch.float32
    rounded = query.bfloat16().double()
    exact = (rounded @ rounded.mT / 5**0.5).logsumexp(-1)
    torch.testing.assert_close(seen.logsumexp.double(), exact, atol=1e-5, rtol=1e-6)


def test_precision_is_a_known_word() -> None:
    query = torch.randn(3, 5)
    assert regard.attend(query, query, query, precision="half").shape == (3, 5)
    with pytest.raises(ValueError) as error:
        regard.attend(query, query, query, precision="hafl")  # type: ignore[call-overload]
    assert str(error.value) == "precision: came 'hafl'. Did you mean 'half'? Known: exact, half."


def affinity(a: Tensor, b: Tensor) -> Tensor:
    return torch.sin(a @ b.mT) + a.sum(-1)[..., :, None]


@pytest.mark.parametrize("score", [regard.scaled_dot(), regard.additive(torch.randn(5).double()), affinity])
def test_coattend_is_one_affinity_normalised_both_ways(score: object) -> None:
    a, b = torch.randn(2, 7, 5, dtype=torch.float64), torch.randn(2, 11, 5, dtype=torch.float64)
    value_a, value_b = torch.randn(2, 7, 3, dtype=torch.float64), torch.randn(2, 11, 2, dtype=torch.float64)
    mask, bias = torch.rand(2, 7, 11) > 0.3, torch.randn(7, 11, dtype=torch.float64)
    from_b, from_a = regard.coattend(a, b, value_a, value_b, score=score, mask=mask, bias=bias)
    scores = (score(a, b) + bias).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(from_b, scores.softmax(-1).nan_to_num() @ value_b)
    torch.testing.assert_close(from_a, scores.softmax(-2).nan_to_num().mT @ value_a)
    plain_b, plain_a = regard.coattend(a, b, score=score)
    torch.testing.assert_close(plain_b, score(a, b).softmax(-1) @ b)
    torch.testing.assert_close(plain_a, score(a, b).softmax(-2).mT @ a)


def test_coattend_shows_both_sides() -> None:
    a, b = torch.randn(2, 7, 5, dtype=torch.float64), torch.randn(2, 11, 5, dtype=torch.float64)
    (from_b, of_b), (from_a, of_a) = regard.coattend(a, b, see=regard.Weights())
    scores = a @ b.mT * 5**-0.5
    torch.testing.assert_close(of_b.weights, scores.softmax(-1))
    torch.testing.assert_close(of_a.weights, scores.softmax(-2).mT)
    torch.testing.assert_close(from_b, of_b.weights @ b)
    torch.testing.assert_close(from_a, of_a.weights @ a)
