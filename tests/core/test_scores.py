"""Scores against double loops in pure Python, in float64; and their gradients."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import regard
from regard.core.scores import as_score, per_pair
from tests.cases import Kinds, draw
from tests.parts import SCORES

Vector = list[float]


def inner(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def product(matrix: list[Vector], vector: Vector) -> Vector:
    return [inner(row, vector) for row in matrix]


def distance(a: Vector, b: Vector) -> float:
    return math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def hidden(w: Vector, left: Vector, right: Vector) -> float:
    return inner(w, [math.tanh(x + y) for x, y in zip(left, right, strict=True)])


def columns(matrix: list[Vector]) -> list[Vector]:
    return [list(column) for column in zip(*matrix, strict=True)]


Q, K, N, M, WIDTH = 3, 5, 7, 11, 13  # widths of query and key, their numbers, the width inside tanh

LOOPS: dict[str, tuple[Callable[[dict[str, Tensor]], object], Callable[..., float]]] = {
    "dot": (lambda t: regard.dot(), lambda q, k, j, t: inner(q, k)),
    "dot, scaled": (lambda t: regard.dot(0.3), lambda q, k, j, t: 0.3 * inner(q, k)),
    "dot, learned": (lambda t: regard.dot(t["scale"]), lambda q, k, j, t: t["scale"] * inner(q, k)),
    "scaled dot": (lambda t: regard.scaled_dot(), lambda q, k, j, t: inner(q, k) / math.sqrt(len(q))),
    "cosine": (
        lambda t: regard.cosine(2.0),
        lambda q, k, j, t: 2 * inner(q, k) / math.sqrt(inner(q, q) * inner(k, k)),
    ),
    "cosine, learned": (
        lambda t: regard.cosine(t["scale"]),
        lambda q, k, j, t: t["scale"] * inner(q, k) / math.sqrt(inner(q, q) * inner(k, k)),
    ),
    "bilinear": (lambda t: regard.bilinear(t["w"]), lambda q, k, j, t: inner(q, product(t["w"], k))),
    "additive": (
        lambda t: regard.additive(t["v"], t["w_query"], t["w_key"], t["b"]),
        lambda q, k, j, t: hidden(
            t["v"],
            [x + y for x, y in zip(product(t["w_query"], q), t["b"], strict=True)],
            product(t["w_key"], k),
        ),
    ),
    "additive, of sides": (lambda t: regard.additive(t["v3"]), lambda q, k, j, t: hidden(t["v3"], q, k)),
    "additive, concatenated": (
        lambda t: regard.concatenated(t["v"], t["w_both"], Q, t["b"]),
        lambda q, k, j, t: hidden(t["v"], product(t["w_both"], q + k), t["b"]),
    ),
    "squared distance": (lambda t: regard.squared_distance(0.5), lambda q, k, j, t: -0.5 * distance(q, k)),
    "soft dictionary": (
        lambda t: regard.soft_dictionary(1.5, epsilon=0.01),
        lambda q, k, j, t: -1.5 * math.log(0.01 + distance(q, k)),
    ),
    "location": (lambda t: regard.location(t["places"]), lambda q, k, j, t: inner(t["places"][j], q)),
    "own": (
        lambda t: lambda query, key: torch.cdist(query, key, p=1),
        lambda q, k, j, t: math.fsum(abs(x - y) for x, y in zip(q, k, strict=True)),
    ),
}


def tensors() -> dict[str, Tensor]:
    shapes = {
        "scale": (), "w": (Q, K), "v": (WIDTH,), "w_query": (WIDTH, Q), "w_key": (WIDTH, K), "b": (WIDTH,),
        "v3": (Q,), "w_both": (WIDTH, Q + K), "places": (17, Q),
    }  # fmt: skip
    return {name: torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", LOOPS)
def test_score_is_a_double_loop(name: str) -> None:
    make, loop = LOOPS[name]
    held = tensors()
    apart = name in ("bilinear", "additive", "additive, concatenated", "location")
    query = torch.randn(2, N, Q, dtype=torch.float64)
    key = torch.randn(2, M, K if apart else Q, dtype=torch.float64)
    scores = as_score(make(held))(query, key)
    plain = {name: tensor.tolist() for name, tensor in held.items()}
    wanted = [
        [[loop(q, k, j, plain) for j, k in enumerate(keys)] for q in queries]
        for queries, keys in zip(query.tolist(), key.tolist(), strict=True)
    ]
    torch.testing.assert_close(scores, torch.tensor(wanted, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_importance_is_a_loop() -> None:
    u, w, b = torch.randn(WIDTH), torch.randn(WIDTH, K), torch.randn(WIDTH)
    key = torch.randn(2, M, K)
    wanted = [
        [
            inner(u.tolist(), [math.tanh(x + y) for x, y in zip(product(w.tolist(), k), b.tolist(), strict=True)])
            for k in one
        ]
        for one in key.tolist()
    ]
    scores = regard.importance(u, w, b)(None, key)
    assert scores.shape == (2, 1, M)
    torch.testing.assert_close(scores[:, 0], torch.tensor(wanted), rtol=1e-5, atol=1e-5)
    several = regard.importance(torch.stack([u, 2 * u]), w, b)(None, key)
    torch.testing.assert_close(several, torch.cat([scores, 2 * scores], 1))


@pytest.mark.parametrize("name", [n for n in LOOPS if n not in ("own", "additive, concatenated")])
def test_parameters_of_every_head(name: str) -> None:
    """Parameters [heads, ...] are those of each head."""
    make, _ = LOOPS[name]
    heads = [tensors() for _ in range(3)]
    stacked = {key: torch.stack([head[key] for head in heads]) for key in heads[0]}
    apart = name in ("bilinear", "additive", "location")
    query = torch.randn(2, 3, N, Q, dtype=torch.float64)
    key = torch.randn(2, 3, M, K if apart else Q, dtype=torch.float64)
    together = as_score(make(stacked))(query, key)
    each = [as_score(make(head))(query[:, h], key[:, h]) for h, head in enumerate(heads)]
    torch.testing.assert_close(together, torch.stack(each, 1))


@pytest.mark.parametrize("name", SCORES)
def test_gradients(name: str) -> None:
    """First and second, of the sides and every parameter, through the definition and through the split."""
    kinds = Kinds(
        scores=(name,), normalisers=("softmax",), masks=("none",), biases=("none",), dtypes=(torch.float64,),
        batches=((2,),), queries=(3,), keys=(2,), grouped=(False,), wild=0.0, long=0.0,
    )  # fmt: skip
    drawn = (draw(seed, kinds) for seed in range(100))
    case = next(case for case in drawn if 1 < case.key.shape[-1] < 4)
    leaves = {n: t.clone().requires_grad_() for n, t in case.leaves().items() if n != "value"}

    def scores(*held: Tensor) -> tuple[Tensor, Tensor]:
        other = case.with_leaves(dict(zip(leaves, held, strict=True)) | {"value": case.value})
        score = as_score(SCORES[name](other.score))
        return score(other.query, other.key), score.pair(score.query_side(other.query), score.key_side(other.key))

    assert gradcheck(scores, tuple(leaves.values()))
    assert gradgradcheck(scores, tuple(leaves.values()))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_scored_in_float32(name: str, dtype: torch.dtype) -> None:
    case = draw(5, Kinds(scores=(name,), dtypes=(dtype,), grouped=(False,), wild=0.0))
    score = as_score(SCORES[name](case.score))
    assert score(case.query, case.key).dtype == torch.float32
    assert score.pair(score.query_side(case.query), score.key_side(case.key)).dtype == torch.float32


def test_parameters_follow_the_type_of_the_tokens() -> None:
    """Parameters in float32, tokens in a half type: what comes out is as narrow as what came in."""
    weight, query = torch.randn(5, 3), torch.randn(2, 7, 5)
    side = regard.bilinear(weight).query_side(query.bfloat16())
    assert side.dtype == torch.bfloat16
    torch.testing.assert_close(side.float(), query @ weight, atol=1e-1, rtol=5e-2)


def test_a_function_of_two_matrices() -> None:
    query, key = torch.randn(5, 3), torch.randn(7, 3)
    nearness = as_score(lambda q, k: -torch.cdist(q, k))
    assert torch.equal(nearness(query, key), -torch.cdist(query, key))


def test_cosine_of_extreme_vectors() -> None:
    """Squares that would overflow or vanish do not, and a vector of zeros has a cosine of zero and a gradient."""
    for size in (1e-30, 1e-20, 1.0, 1e20, 1e30):
        query = torch.tensor([[3.0, 4.0]]) * size
        if size >= 1e-6:
            assert regard.cosine()(query, torch.tensor([[4.0, 3.0]])).item() == pytest.approx(0.96, rel=1e-6)
        else:  # shorter than epsilon: taken as that long
            assert abs(regard.cosine()(query, torch.tensor([[4.0, 3.0]])).item()) < 1e-10
    assert regard.cosine(epsilon=10.0)(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 20.0]])).item() == pytest.approx(
        0.4
    )
    zero = torch.zeros(1, 2, requires_grad=True)
    regard.cosine()(zero, torch.ones(1, 2)).sum().backward()
    assert torch.isfinite(zero.grad).all()
    assert regard.cosine()(torch.ones(1, 3, 0), torch.ones(1, 5, 0)).tolist() == [[[0.0] * 5] * 3]


def test_a_side_without_features() -> None:
    for score in (regard.dot(), regard.scaled_dot(), regard.squared_distance()):
        assert score(torch.ones(2, 0), torch.ones(3, 0)).abs().sum() == 0


def test_location_sees_no_key() -> None:
    weight, query = torch.randn(17, Q), torch.randn(2, N, Q)
    one, other = (regard.location(weight)(query, torch.randn(2, M, K)) for _ in range(2))
    assert torch.equal(one, other)
    assert regard.location(weight).key_side(torch.randn(2, 3, M, K)).shape == (2, 3, M, Q)


def test_a_score_is_kept_and_a_function_is_wrapped() -> None:
    score = regard.cosine()
    assert as_score(score) is score
    own = as_score(lambda query, key: query @ key.mT)
    assert own.pair is own
    assert own.mapped(lambda tensor, own: tensor) is own
    for pair in (regard.dot(), regard.squared_distance(), regard.soft_dictionary()):
        assert pair.mapped(lambda tensor, own: tensor + 1) is pair


def test_per_pair() -> None:
    assert per_pair(0.5) == 0.5
    assert per_pair(torch.ones(2, 3)).shape == (2, 3, 1, 1)


def test_what_scores_are_without_arguments() -> None:
    query, key = torch.randn(5, 3, dtype=torch.float64), torch.randn(7, 3, dtype=torch.float64)
    product = query @ key.mT
    assert torch.equal(regard.dot()(query, key), product)
    lengths = query.norm(dim=-1)[:, None] * key.norm(dim=-1)
    torch.testing.assert_close(regard.cosine()(query, key), product / lengths)
    short = torch.tensor([[3e-7]], dtype=torch.float64)
    torch.testing.assert_close(regard.cosine()(short, torch.ones_like(short)), 0.3 * torch.ones_like(short))


def test_a_query_without_features_scores_zero() -> None:
    assert torch.equal(regard.scaled_dot()(torch.randn(5, 0), torch.randn(7, 0)), torch.zeros(5, 7))
    assert torch.equal(regard.cosine()(torch.randn(5, 0), torch.randn(7, 0)), torch.zeros(5, 7))


def test_places_of_every_head_for_every_sequence() -> None:
    places, key = torch.randn(3, 11, 2), torch.randn(5, 1, 7, 13)
    side = regard.location(places).key_side(key)
    assert side.shape == (5, 3, 7, 2)
    assert torch.equal(side[4], places[:, :7])
