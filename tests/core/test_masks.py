"""Masks that combine, print and draw themselves; the smaller kinds are in test_windows and test_sequences."""

from functools import partial

import pytest
import torch

import regard
from regard.core.masks import Turned, as_mask
from tests.core.drawings import drawing

DEVICE = torch.device("cpu")


def parity(i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    return (i + j) % 2 == 0


@pytest.mark.parametrize(
    ("mask", "wanted"),
    [
        (
            regard.causal() & regard.window(2),
            """
            █·····
            ██····
            ███···
            ·███··
            ··███·
            ···███
            """,
        ),
        (
            regard.causal() | regard.prefix(3),
            """
            ███···
            ███···
            ███···
            ████··
            █████·
            ██████
            """,
        ),
        (
            ~(regard.causal() | regard.prefix(3)),
            """
            ···███
            ···███
            ···███
            ····██
            ·····█
            ······
            """,
        ),
        (
            regard.allow(parity) & ~regard.prefix(2),
            """
            ··█·█·
            ···█·█
            ··█·█·
            ···█·█
            ··█·█·
            ···█·█
            """,
        ),
        (
            regard.causal() & torch.tensor([True, True, False, True, True, True]),
            """
            █·····
            ██····
            ██····
            ██·█··
            ██·██·
            ██·███
            """,
        ),
    ],
    ids=lambda part: "drawn" if isinstance(part, str) else repr(part),
)
def test_draws_itself(mask: regard.core.masks.Mask, wanted: str) -> None:
    assert mask.draw(6, 6) == drawing(wanted)
    assert mask.draw(2, 3, 6, 6) == drawing(wanted)


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (regard.causal(), "causal()"),
        (regard.causal("start"), "causal(align='start')"),
        (regard.window(2), "window(2)"),
        (regard.window(2, right=0), "window(2, right=0)"),
        (regard.window(2, right=5, align="start"), "window(2, right=5, align='start')"),
        (regard.prefix(3), "prefix(3)"),
        (regard.lengths(torch.tensor([3, 5])), "lengths(keys=[3, 5])"),
        (regard.lengths(queries=torch.tensor(3)), "lengths(queries=3)"),
        (regard.lengths(torch.tensor([3]), torch.tensor([2])), "lengths(keys=[3], queries=[2])"),
        (regard.documents(torch.tensor([0, 0, 1])), "documents(int64[3])"),
        (regard.documents(torch.tensor([0, 0, 1]), torch.tensor([1])), "documents(int64[3], queries=int64[1])"),
        (regard.allow(parity), "allow(parity)"),
        (regard.allow(partial(parity)), "allow(function)"),
        (regard.allow(torch.ones(2, 3, dtype=torch.bool)), "allow(bool[2, 3])"),
        (regard.causal() & regard.window(2) & regard.prefix(1), "causal() & window(2) & prefix(1)"),
        (regard.causal() & (regard.window(2) | regard.prefix(1)), "causal() & (window(2) | prefix(1))"),
        ((regard.causal() & regard.window(2)) | regard.prefix(1), "(causal() & window(2)) | prefix(1)"),
        (~regard.causal(), "~causal()"),
        (~(regard.causal() | regard.prefix(1)), "~(causal() | prefix(1))"),
        (Turned(regard.prefix(1)), "turned(prefix(1))"),
    ],
    ids=lambda case: None if isinstance(case, str) else repr(case),
)
def test_prints_as_it_was_written(mask: regard.core.masks.Mask, text: str) -> None:
    assert repr(mask) == text


def test_all_or_nothing_ends_the_question() -> None:
    """What is settled on one side is not asked on the other."""

    def never(i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        raise AssertionError("asked")

    shape, rows = torch.Size((6, 6)), range(2)
    nothing, everything = regard.prefix(0), regard.prefix(6)
    assert (nothing & regard.allow(never)).tile(rows, range(6), shape, DEVICE) is False
    assert (everything | regard.allow(never)).tile(rows, range(6), shape, DEVICE) is True
    assert (~nothing).tile(rows, range(6), shape, DEVICE) is True
    part = regard.allow(parity)
    for both in (everything & part, part & everything, nothing | part, part | nothing):
        assert torch.equal(both.dense(6, 6), part.dense(6, 6))
    for neither in (part & nothing, nothing & part):
        assert not neither.dense(6, 6).any()
    for all_of_it in (part | everything, everything | part):
        assert all_of_it.dense(6, 6).all()


def test_span_of_combinations() -> None:
    shape = torch.Size((11, 11))
    rows = range(5, 7)
    near, first = regard.window(1), regard.prefix(3)
    assert near.span(rows, shape) == range(4, 8)
    assert (near & first).span(rows, shape) == range(4, 4)
    assert (near | first).span(rows, shape) == range(8)
    assert (near | regard.prefix(0)).span(rows, shape) == range(4, 8)
    assert (regard.prefix(0) | near).span(rows, shape) == range(4, 8)
    assert len((regard.prefix(0) | regard.prefix(0)).span(rows, shape)) == 0
    assert (near | regard.window(2)).span(rows, shape) == range(3, 9)
    for everything in (~near, regard.allow(parity), Turned(near)):
        assert everything.span(rows, torch.Size((13, 11))) == range(11)


@pytest.mark.parametrize("shape", [(), (7,), (1,), (5, 7), (5, 1), (1, 7), (3, 1, 7), (2, 3, 5, 7), (2, 1, 1, 1)])
def test_any_tensor_that_broadcasts(shape: tuple[int, ...]) -> None:
    tensor = torch.rand(shape) < 0.5
    mask = as_mask(tensor)
    assert torch.equal(mask.dense(2, 3, 5, 7), tensor.expand(2, 3, 5, 7))
    size, rows, columns = torch.Size((2, 3, 5, 7)), range(1, 4), range(2, 7)
    tile = mask.tile(rows, columns, size, DEVICE)
    assert torch.equal(tile.expand(2, 3, 3, 5), tensor.expand(2, 3, 5, 7)[..., 1:4, 2:7])


def test_a_rule_may_say_all_or_none() -> None:
    assert regard.allow(lambda i, j: True).tile(range(2), range(3), torch.Size((5, 7)), DEVICE) is True
    assert not regard.allow(lambda i, j: False).dense(5, 7).any()


def test_a_rule_may_differ_by_head() -> None:
    reach = torch.tensor([0, 2])[:, None, None]
    mask = regard.allow(lambda i, j: (i - j).abs() <= reach)
    assert torch.equal(mask.dense(2, 5, 7)[1], regard.window(2, align="start").dense(5, 7))


def test_a_mask_is_kept() -> None:
    mask = regard.causal()
    assert as_mask(mask) is mask
    assert regard.causal() == regard.causal()
    assert regard.window(2) != regard.window(3)


def test_turned_is_the_transpose() -> None:
    mask = regard.lengths(torch.tensor([3, 5])) & regard.causal()
    assert torch.equal(Turned(mask).dense(2, 7, 5), mask.dense(2, 5, 7).mT)
    assert Turned(regard.prefix(9)).tile(range(3), range(2), torch.Size((7, 5)), DEVICE) is True
