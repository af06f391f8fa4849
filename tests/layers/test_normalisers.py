"""Learned normalisers: an order that can become softmax, a temperature that stays above zero."""

import re

import pytest
import torch
from hypothesis import given, strategies
from torch import nn

from regard.core.entmax import entmax, sparsemax
from regard.core.normalisers import softmax
from regard.layers import Attention, LearnedEntmax, LearnedTemperature

HEADS, QUERIES, KEYS = 3, 5, 7


def scores() -> torch.Tensor:
    return 3 * torch.randn(2, HEADS, QUERIES, KEYS, dtype=torch.float64)


@given(alpha=strategies.floats(1.01, 1.99))
def test_it_starts_where_it_is_told(alpha: float) -> None:
    layer = LearnedEntmax(HEADS, alpha=alpha).double()
    torch.testing.assert_close(layer.alpha, torch.full((HEADS,), alpha, dtype=torch.float64), rtol=0, atol=1e-6)
    given_scores = scores()
    torch.testing.assert_close(layer()(given_scores), entmax(alpha)(given_scores), rtol=0, atol=1e-4)


def test_each_head_goes_from_softmax_to_sparsemax() -> None:
    layer, given_scores = LearnedEntmax(HEADS).double(), scores()
    with torch.no_grad():
        layer.order.copy_(torch.tensor([-40.0, 0.0, 40.0]))
    weights = layer()(given_scores)
    for head, wanted in enumerate((softmax(), entmax(1.5), sparsemax())):
        torch.testing.assert_close(weights[:, head], wanted(given_scores[:, head]), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("target", "low", "high"), [(softmax(), 1.0, 1.1), (sparsemax(), 1.85, 2.0)])
def test_it_learns_to_become_either(target, low: float, high: float) -> None:
    layer, given_scores = LearnedEntmax(HEADS), scores().float()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    wanted = target(given_scores)
    first = None
    for _ in range(150):
        loss = (layer()(given_scores) - wanted).square().sum()
        first = loss.item() if first is None else first
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < first / 50
    assert (layer.alpha >= low).all()
    assert (layer.alpha <= high).all()


def test_a_temperature_divides_the_scores() -> None:
    layer, given_scores = LearnedTemperature(HEADS, temperature=2.0).double(), scores()
    torch.testing.assert_close(layer()(given_scores), torch.softmax(given_scores / 2, -1), rtol=0, atol=1e-7)
    layer()(given_scores)[..., 0].sum().backward()
    assert layer.log_temperature.grad.shape == (HEADS,)
    assert layer.log_temperature.grad.abs().min() > 0


def test_one_for_all_heads() -> None:
    for layer in (LearnedEntmax().double(), LearnedTemperature().double()):
        assert next(layer.parameters()).shape == ()
        query, key = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(2, 7, 3, dtype=torch.float64)
        attention = Attention(normalise=layer)
        attention(query, key).sum().backward()
        assert next(layer.parameters()).grad is not None


def test_state_goes_round() -> None:
    for one, other in ((LearnedEntmax(HEADS), LearnedEntmax(HEADS)), (LearnedTemperature(), LearnedTemperature())):
        nn.init.normal_(next(one.parameters()))
        other.load_state_dict(one.state_dict())
        torch.testing.assert_close(dict(one.state_dict()), dict(other.state_dict()), rtol=0, atol=0)


def test_they_print_what_they_are() -> None:
    assert repr(LearnedEntmax(3, most=4.0)) == "LearnedEntmax(heads=3, most=4.0)"
    assert repr(LearnedTemperature()) == "LearnedTemperature()"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: LearnedEntmax(alpha=2.0), "alpha: came 2.0, wanted a start between 1 and most=2.0, both left out"),
        (lambda: LearnedEntmax(alpha=1.0), "alpha: came 1.0, wanted a start between 1 and most=2.0"),
        (lambda: LearnedEntmax(most=1.0), "most: came 1.0, wanted above 1"),
        (lambda: LearnedEntmax(0), "heads: came 0, wanted a positive whole number"),
        (lambda: LearnedTemperature(temperature=0.0), "temperature: came 0.0, wanted a positive number"),
    ],
)
def test_errors_say_what_came_and_what_was_wanted(call, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call()
