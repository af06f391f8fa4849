"""Score layers: the frozen score of the parameters of now, their start, terms inside the tanh, what they print."""

import re

import pytest
import torch
from torch import Tensor, nn

from regard.core.additive import additive, position_terms, window_terms
from regard.core.importance import importance
from regard.core.scores import Score, bilinear, cosine, dot, location
from regard.layers import (
    AdditiveScore,
    BilinearScore,
    CosineScore,
    ImportanceScore,
    LocationScore,
    ScaledDotScore,
    ScoreLayer,
)

HEADS, QUERIES, KEYS, QUERY_WIDTH, KEY_WIDTH, WIDTH = 2, 5, 7, 3, 13, 11

MADE = {
    "additive": (
        lambda: AdditiveScore(QUERY_WIDTH, KEY_WIDTH, WIDTH),
        lambda s: additive(s.weight, s.query_weight, s.key_weight, s.bias),
    ),
    "additive heads": (
        lambda: AdditiveScore(QUERY_WIDTH, KEY_WIDTH, WIDTH, HEADS, bias=False),
        lambda s: additive(s.weight, s.query_weight, s.key_weight),
    ),
    "bilinear": (lambda: BilinearScore(QUERY_WIDTH, KEY_WIDTH), lambda s: bilinear(s.weight)),
    "bilinear heads": (lambda: BilinearScore(QUERY_WIDTH, KEY_WIDTH, HEADS), lambda s: bilinear(s.weight)),
    "cosine": (CosineScore, lambda s: cosine(10.0)),
    "cosine heads": (lambda: CosineScore(HEADS, scale=3.0), lambda s: cosine(3.0)),
    "scaled dot": (lambda: ScaledDotScore(KEY_WIDTH), lambda s: dot(KEY_WIDTH**-0.5)),
    "location": (lambda: LocationScore(QUERY_WIDTH, 17), lambda s: location(s.weight)),
    "importance": (
        lambda: ImportanceScore(KEY_WIDTH, WIDTH),
        lambda s: importance(s.vector, s.weight, s.bias),
    ),
    "importance rows": (
        lambda: ImportanceScore(KEY_WIDTH, WIDTH, 5, bias=False),
        lambda s: importance(s.vector, s.weight),
    ),
}


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def asked(name: str) -> tuple[Tensor | None, Tensor]:
    same = name.startswith(("cosine", "scaled"))
    query = None if name.startswith("importance") else numbers(HEADS, QUERIES, KEY_WIDTH if same else QUERY_WIDTH)
    return query, numbers(HEADS, KEYS, KEY_WIDTH)


@pytest.mark.parametrize("name", MADE)
def test_the_score_is_that_of_the_parameters_of_now(name: str) -> None:
    layer = MADE[name][0]().double()
    assert isinstance(layer, ScoreLayer)
    for parameter in layer.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter)
    query, key = asked(name)
    score = layer()
    assert isinstance(score, Score)
    torch.testing.assert_close(score(query, key), MADE[name][1](layer)(query, key), rtol=1e-6, atol=1e-6)
    score(query, key).sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())


@pytest.mark.parametrize("name", MADE)
def test_state_goes_round(name: str) -> None:
    one, other = (MADE[name][0]().double() for _ in range(2))
    for parameter in one.parameters():
        nn.init.normal_(parameter)
    other.load_state_dict(one.state_dict())
    query, key = asked(name)
    torch.testing.assert_close(one()(query, key), other()(query, key), rtol=0, atol=0)


def test_scores_start_of_the_order_of_one() -> None:
    """Whatever the widths: neither flat nor one-hot to begin with."""
    torch.manual_seed(0)
    for width in (16, 512):
        query, key = torch.randn(64, width), torch.randn(64, width)
        for score in (AdditiveScore(width, width, width)(), ScaledDotScore(width)()):
            assert 0.2 < score(query, key).std().item() < 2


def test_the_same_generator_gives_the_same_parameters() -> None:
    for make in (
        lambda g: AdditiveScore(3, 5, 7, generator=g),
        lambda g: BilinearScore(3, 5, generator=g),
        lambda g: LocationScore(3, 5, generator=g),
        lambda g: ImportanceScore(3, 5, generator=g),
    ):
        one, other, third = (make(torch.Generator().manual_seed(seed)) for seed in (7, 7, 8))
        torch.testing.assert_close(dict(one.state_dict()), dict(other.state_dict()), rtol=0, atol=0)
        assert not torch.equal(one.weight, third.weight)


def test_terms_inside_the_tanh() -> None:
    """Cohn's position and Markov terms, given per call."""
    layer = AdditiveScore(QUERY_WIDTH, KEY_WIDTH, WIDTH).double()
    query, key = numbers(QUERIES, QUERY_WIDTH), numbers(KEYS, KEY_WIDTH)
    query_term, key_term = position_terms(numbers(WIDTH, 3), QUERIES, KEYS)
    key_term = key_term + window_terms(numbers(KEYS).softmax(-1), numbers(WIDTH, 3))
    hidden = (query @ layer.query_weight.T + query_term)[:, None] + key @ layer.key_weight.T + key_term
    wanted = torch.tanh(hidden) @ layer.weight
    torch.testing.assert_close(layer(query_term=query_term, key_term=key_term)(query, key), wanted)


def test_the_scale_of_a_cosine_stays_above_zero() -> None:
    layer = CosineScore(HEADS, scale=0.5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=10.0)
    query = torch.randn(HEADS, QUERIES, KEY_WIDTH)
    for _ in range(20):
        optimizer.zero_grad()
        layer()(query, query).diagonal(dim1=-2, dim2=-1).sum().backward()
        optimizer.step()
    assert (layer.log_scale.exp() > 0).all()
    assert (layer.log_scale.exp() < 0.1).all()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("additive", "AdditiveScore(query_width=3, key_width=13, width=11)"),
        ("additive heads", "AdditiveScore(query_width=3, key_width=13, width=11, heads=2, bias=False)"),
        ("bilinear heads", "BilinearScore(query_width=3, key_width=13, heads=2)"),
        ("cosine heads", "CosineScore(heads=2)"),
        ("scaled dot", "ScaledDotScore()"),
        ("location", "LocationScore(query_width=3, places=17)"),
        ("importance rows", "ImportanceScore(key_width=13, width=11, rows=5, bias=False)"),
    ],
)
def test_they_print_what_they_are(name: str, text: str) -> None:
    assert repr(MADE[name][0]()) == text


def test_shared_key_heads_are_printed() -> None:
    assert "heads=6, key_heads=2" in repr(AdditiveScore(3, 3, 5, 6, key_heads=2))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: AdditiveScore(3, 0, 5), "key_width: came 0, wanted a positive whole number"),
        (lambda: AdditiveScore(3, 5, 5.0), "width: came 5.0, wanted a positive whole number"),
        (lambda: BilinearScore(-1, 5), "query_width: came -1, wanted a positive whole number"),
        (lambda: CosineScore(scale=0.0), "scale: came 0.0, wanted a positive number"),
        (lambda: CosineScore(epsilon=0.0), "epsilon: came 0.0, wanted a positive length"),
        (lambda: ImportanceScore(3, 5, 0), "rows: came 0, wanted a positive whole number"),
    ],
)
def test_errors_say_what_came_and_what_was_wanted(call, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call()
