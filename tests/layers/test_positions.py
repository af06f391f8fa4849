"""Positions: the rotary law, sinusoids by formula, biases by distance, starts and ends."""

import math
import re

import pytest
import torch
from hypothesis import given, strategies
from torch import Tensor, nn

from regard.core.masks import allow
from regard.core.windows import causal
from regard.layers import (
    AlibiPositions,
    BucketedPositions,
    LearnedPositions,
    MultiHeadAttention,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)

HEADS, LENGTH, WIDTH = 3, 7, 10


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def tile(part: RelativePositions | BucketedPositions | AlibiPositions, queries: int, keys: int) -> Tensor:
    shape = torch.Size((2, HEADS, queries, keys))
    return part.bias().tile(range(queries), range(keys), shape, torch.device("cpu"))


@given(place=strategies.integers(0, 5000), distance=strategies.integers(-500, 500), moved=strategies.integers(0, 5000))
def test_a_rotary_score_depends_on_the_distance_alone(place: int, distance: int, moved: int) -> None:
    """Angles are float32, so the law holds to the spacing of float32 at the largest position."""
    part, query, key = RotaryPositions(), numbers(1, 1, 1, WIDTH), numbers(1, 1, 1, WIDTH)

    def score(start: int) -> Tensor:
        start += 500
        return (part.turned_keys(query, start) * part.turned_keys(key, start + distance)).sum()

    spacing = 2.0**-24 * 11000
    allowed = 4 * spacing * (query.norm() * key.norm()).item()
    torch.testing.assert_close(score(place), score(place + moved), rtol=0, atol=allowed)


def test_rotary_turns_pairs_by_their_frequency() -> None:
    part, key = RotaryPositions(longest=100.0), numbers(1, 1, LENGTH, WIDTH)
    turned = part.turned_keys(key, 5)
    for place in range(LENGTH):
        for pair in range(WIDTH // 2):
            angle = (5 + place) * 100.0 ** (-2 * pair / WIDTH)
            even, odd = key[0, 0, place, 2 * pair : 2 * pair + 2].tolist()
            wanted = [even * math.cos(angle) - odd * math.sin(angle), even * math.sin(angle) + odd * math.cos(angle)]
            assert turned[0, 0, place, 2 * pair : 2 * pair + 2].tolist() == pytest.approx(wanted, abs=1e-5)


def test_rotary_queries_stand_where_they_are_aligned() -> None:
    key = numbers(1, HEADS, 5, WIDTH)
    end, start = RotaryPositions(), RotaryPositions(align="start")
    torch.testing.assert_close(end.turned_queries(key, 11), end.turned_keys(key, 6))
    torch.testing.assert_close(start.turned_queries(key, 11), start.turned_keys(key, 0))
    assert not torch.allclose(end.turned_queries(key, 11), start.turned_queries(key, 11))


def test_rotary_attention_does_not_know_where_a_text_begins() -> None:
    """A text after five tokens that are hidden is the text by itself."""
    layer = MultiHeadAttention(12, HEADS, positions=RotaryPositions()).double()
    tokens, before = numbers(2, LENGTH, 12), numbers(2, 5, 12)
    past = layer.remember(torch.cat([before, tokens], 1))
    own = causal() & allow(lambda i, j: j >= 5)
    alone = layer(tokens, mask=causal())
    torch.testing.assert_close(layer(tokens, past, mask=own), alone, rtol=0, atol=1e-5)
    unturned = layer(tokens, past.mapped(lambda tensor: tensor.roll(1, -2)), mask=own)
    assert not torch.allclose(unturned, alone, rtol=0, atol=1e-2)


def test_sinusoids_are_added_by_their_formula() -> None:
    tokens = numbers(2, LENGTH, WIDTH)
    added = SinusoidalPositions(WIDTH)(tokens, start=3) - tokens
    for place in range(LENGTH):
        for pair in range(WIDTH // 2):
            angle = (3 + place) / 10000 ** (2 * pair / WIDTH)
            assert added[1, place, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert added[1, place, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize(
    "part", [SinusoidalPositions(WIDTH), LearnedPositions(LENGTH, WIDTH)], ids=["sines", "learned"]
)
def test_a_text_in_pieces_is_the_text(part: nn.Module) -> None:
    tokens = numbers(2, LENGTH, WIDTH)
    torch.testing.assert_close(torch.cat([part(tokens[:, :3]), part(tokens[:, 3:], start=3)], 1), part(tokens))


def test_learned_positions_learn_those_that_were_met() -> None:
    part = LearnedPositions(11, WIDTH, generator=torch.Generator().manual_seed(7))
    part(torch.zeros(2, LENGTH, WIDTH), start=1).sum().backward()
    assert part.weight.grad.sum(-1).tolist() == [0.0] + [2.0 * WIDTH] * LENGTH + [0.0] * 3
    again = LearnedPositions(11, WIDTH, generator=torch.Generator().manual_seed(7))
    torch.testing.assert_close(part.weight, again.weight, rtol=0, atol=0)
    assert 0.01 < part.weight.std().item() < 0.04


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (2, 7)])
def test_relative_biases_are_read_by_distance(queries: int, keys: int) -> None:
    part = RelativePositions(2, HEADS)
    assert part.table.abs().max() == 0
    nn.init.normal_(part.table)
    for i in range(queries):
        for j in range(keys):
            ahead = max(-2, min(2, j - i - (keys - queries)))
            torch.testing.assert_close(tile(part, queries, keys)[:, i, j], part.table[:, ahead + 2])


def test_alibi_falls_with_distance_and_is_not_learned() -> None:
    part = AlibiPositions(HEADS)
    assert part.slopes.tolist() == [2**-4, 2**-8, 2**-2]
    assert tile(part, 2, 5)[0, 0].tolist() == [-3 / 16, -2 / 16, -1 / 16, 0, -1 / 16]
    assert not list(part.parameters())
    assert not part.state_dict()


def test_buckets_are_shared_when_far() -> None:
    part = BucketedPositions(HEADS, 8, bidirectional=False, farthest=8)
    nn.init.normal_(part.table)
    row = tile(part, 20, 20)[1, 19]
    assert row[:12].unique().numel() == 1
    assert row[16:].tolist() == part.table[1, :4].flip(0).tolist()


def test_state_goes_round() -> None:
    for one, other in (
        (RelativePositions(2, HEADS), RelativePositions(2, HEADS)),
        (BucketedPositions(HEADS), BucketedPositions(HEADS)),
        (LearnedPositions(5, WIDTH), LearnedPositions(5, WIDTH)),
    ):
        nn.init.normal_(next(one.parameters()))
        other.load_state_dict(one.state_dict())
        torch.testing.assert_close(dict(one.state_dict()), dict(other.state_dict()))


def test_they_print_what_they_are() -> None:
    assert repr(RotaryPositions()) == "RotaryPositions(longest=10000.0, align=end)"
    assert repr(RelativePositions(2, 3)) == "RelativePositions(reach=2, heads=3, align=end)"
    assert repr(LearnedPositions(5, 2)) == "LearnedPositions(places=5, width=2)"
    assert repr(SinusoidalPositions(4)) == "SinusoidalPositions(width=4)"
    assert "buckets=32, bidirectional=True, farthest=128" in repr(BucketedPositions(3))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: SinusoidalPositions(5), "width: came 5, wanted an even number"),
        (
            lambda: SinusoidalPositions(4)(torch.zeros(3, 5)),
            "tokens: came float32[3, 5], its width is 5; wanted width 4",
        ),
        (lambda: LearnedPositions(5, 4)(torch.zeros(3, 4), start=3), "to place 6; these positions know 5 places"),
        (lambda: LearnedPositions(0, 4), "places: came 0, wanted a positive whole number"),
        (lambda: RelativePositions(2, 3, align="middle"), "align: came 'middle', wanted 'end'"),
        (lambda: RotaryPositions(longest=0), "longest: came 0, wanted a positive wavelength"),
        (lambda: RotaryPositions().turned_keys(torch.zeros(3, 5), 0), "tensor: came float32[3, 5] with 3 positions"),
        (lambda: BucketedPositions(3, 7), "table: came float32[3, 7]; wanted"),
    ],
)
def test_errors_say_what_came_and_what_was_wanted(call, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call()
