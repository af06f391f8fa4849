"""Shapes and sentences; the errors are in test_errors_of_calls."""

import pytest
import torch
from hypothesis import given, strategies as st

from regard.core.shapes import (
    broadcast,
    check_part,
    describe,
    fits,
    join_heads,
    may_look,
    nearest,
    split_heads,
    wide,
)


def test_describe() -> None:
    assert describe(torch.zeros(2, 5, dtype=torch.bfloat16)) == "bfloat16[2, 5]"
    assert describe(torch.tensor(3)) == "int64[]"
    assert describe(None) == "None"
    assert describe("a word") == "str"


def test_nearest() -> None:
    assert nearest("tild", ["tiled", "fused"]) == " Did you mean 'tiled'? Known: fused, tiled."
    assert nearest("tried out", ["tiled"]) == " Did you mean 'tiled'? Known: tiled.", "half alike is near enough"
    assert nearest("xyz", ["tiled", "fused"]) == " Known: fused, tiled."


def test_wide() -> None:
    assert wide(torch.zeros(1, dtype=torch.float16)).dtype == torch.float32
    assert wide(torch.zeros(1, dtype=torch.bfloat16)).dtype == torch.float32
    for dtype in (torch.float32, torch.float64):
        tensor = torch.zeros(1, dtype=dtype)
        assert wide(tensor) is tensor


@pytest.mark.parametrize(
    ("shapes", "wanted"),
    [
        ([(2, 3), (2, 3)], (2, 3)),
        ([(2, 3), (3,)], (2, 3)),
        ([(), ()], ()),
        ([(2, 1), (1, 3), ()], (2, 3)),
        ([(0,), (1,)], (0,)),
    ],
)
def test_broadcast(shapes: list[tuple[int, ...]], wanted: tuple[int, ...]) -> None:
    assert broadcast("all", [(str(i), torch.Size(shape)) for i, shape in enumerate(shapes)]) == wanted


sizes = st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4).map(tuple)


@given(st.lists(sizes, min_size=1, max_size=4))
def test_broadcast_is_torch_s(shapes: list[tuple[int, ...]]) -> None:
    named = [(str(place), torch.Size(shape)) for place, shape in enumerate(shapes)]
    try:
        wanted = torch.broadcast_shapes(*shapes)
    except RuntimeError:
        with pytest.raises(ValueError, match="do not broadcast"):
            broadcast("all", named)
    else:
        assert broadcast("all", named) == wanted


@pytest.mark.parametrize(
    ("shape", "whole", "wanted"),
    [
        ((3,), (2, 3), True),
        ((1, 3), (2, 3), True),
        ((), (2, 3), True),
        ((2,), (2, 3), False),
        ((2, 2, 3), (2, 3), False),
        ((3, 1), (1, 1), False),
        ((0, 1), (0, 5), True),
    ],
)
def test_fits(shape: tuple[int, ...], whole: tuple[int, ...], wanted: bool) -> None:
    assert fits(shape, whole) is wanted


@pytest.mark.parametrize("shape", [(4,), (1,), (7, 4), (2, 1, 4), (3, 1, 1, 4)])
def test_parts_may_widen_the_batch(shape: tuple[int, ...]) -> None:
    check_part("bias", torch.zeros(shape), (4,), "query", torch.zeros(2, 7, 5, 3))


@pytest.mark.parametrize("shape", [(5,), (3, 4), (3, 7, 4), ()])
def test_parts_that_do_not_go_with_the_batch(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^bias: came "):
        check_part("bias", torch.zeros(shape), (4,), "query", torch.zeros(2, 7, 5, 3))


def test_heads_are_split_and_joined() -> None:
    tensor = torch.randn(2, 6, 5, 3)
    apart = split_heads(tensor, 2, 3)
    assert apart.shape == (2, 2, 3, 5, 3)
    assert torch.equal(apart[:, 1, 2], tensor[:, 5])
    assert torch.equal(join_heads(apart, 2), tensor)
    assert split_heads(torch.zeros(2, 1, 5, 3), 2, 3).shape == (2, 1, 1, 5, 3)
    assert split_heads(torch.zeros(5, 3), 2, 3).shape == (5, 3)
    assert split_heads(torch.zeros(6), 0, 2).shape == (3, 2)


def test_looking_at_numbers() -> None:
    assert may_look(torch.zeros(3))
    assert not may_look(torch.zeros(3, device="meta"))
    looked = []
    torch.func.vmap(lambda tensor: (looked.append(may_look(tensor)), tensor)[1])(torch.zeros(3))
    assert looked == [False]
