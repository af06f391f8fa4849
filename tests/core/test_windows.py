"""Causal masks, windows and prefixes, drawn; and as what they are elsewhere in PyTorch."""

import pytest
import torch

import regard
from regard.core.windows import Window, align_offset
from tests.core.drawings import drawing

DRAWN = {
    "causal() 5 5": (regard.causal(), (5, 5), "█····\n██···\n███··\n████·\n█████"),
    "causal() 2 5": (regard.causal(), (2, 5), "████·\n█████"),
    "causal() 5 2": (regard.causal(), (5, 2), "··\n··\n··\n█·\n██"),
    "causal('start') 2 5": (regard.causal("start"), (2, 5), "█····\n██···"),
    "causal('start') 5 2": (regard.causal("start"), (5, 2), "█·\n██\n██\n██\n██"),
    "window(1) 5 5": (regard.window(1), (5, 5), "██···\n███··\n·███·\n··███\n···██"),
    "window(1, right=0) 5 5": (regard.window(1, right=0), (5, 5), "█····\n██···\n·██··\n··██·\n···██"),
    "window(0, right=2) 3 5": (regard.window(0, right=2), (3, 5), "··███\n···██\n····█"),
    "window(0) 3 5": (regard.window(0, align="start"), (3, 5), "█····\n·█···\n··█··"),
    "prefix(2) 3 5": (regard.prefix(2), (3, 5), "██···\n██···\n██···"),
    "prefix(0) 2 3": (regard.prefix(0), (2, 3), "···\n···"),
    "prefix(7) 2 3": (regard.prefix(7), (2, 3), "███\n███"),
    "left only 5 5": (Window(1, None), (5, 5), "█████\n█████\n·████\n··███\n···██"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_itself(name: str) -> None:
    mask, shape, wanted = DRAWN[name]
    assert mask.draw(*shape) == drawing(wanted)


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (2, 7), (7, 2), (1, 1), (1, 5), (0, 3), (3, 0)])
def test_causal_from_the_start_is_pytorch_s_is_causal(queries: int, keys: int) -> None:
    wanted = torch.ones(queries, keys, dtype=torch.bool).tril()
    assert torch.equal(regard.causal("start").dense(queries, keys), wanted)
    aligned = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    assert torch.equal(regard.causal().dense(queries, keys), aligned)


@pytest.mark.parametrize(
    "mask", [regard.causal(), regard.window(2), regard.window(3, right=1), Window(1, None)], ids=repr
)
@pytest.mark.parametrize("shape", [(11, 11), (5, 13), (13, 5)])
def test_every_tile_and_span(mask: Window, shape: tuple[int, int]) -> None:
    """All tiles of all sizes are parts of the whole; and a span is tight."""
    dense, size = mask.dense(*shape), torch.Size(shape)
    for top in range(0, shape[0], 2):
        for height in (1, 3, 5):
            rows = range(top, min(top + height, shape[0]))
            seen = dense[rows.start : rows.stop].any(0).nonzero().flatten().tolist()
            span = mask.span(rows, size)
            assert set(seen) <= set(span)
            assert len(span) == (max(seen) - min(seen) + 1 if seen else 0), f"{mask} {rows} {span}"
            for left in range(0, shape[1], 3):
                columns = range(left, min(left + 4, shape[1]))
                part = dense[rows.start : rows.stop, columns.start : columns.stop]
                tile = mask.tile(rows, columns, size, torch.device("cpu"))
                assert torch.equal(torch.full_like(part, tile) if isinstance(tile, bool) else tile, part)


def test_all_and_none_are_said() -> None:
    size, device = torch.Size((100, 100)), torch.device("cpu")
    assert regard.causal().tile(range(50, 60), range(40, 51), size, device) is True
    assert regard.causal().tile(range(50, 60), range(60, 70), size, device) is False
    assert regard.window(5).tile(range(50, 51), range(45, 56), size, device) is True
    assert regard.window(5).tile(range(50, 51), range(44, 56), size, device) is not True
    assert regard.window(5).tile(range(50, 51), range(30, 45), size, device) is False
    assert regard.prefix(50).tile(range(9), range(40, 50), size, device) is True
    assert regard.prefix(50).tile(range(9), range(50, 60), size, device) is False
    assert regard.prefix(50).tile(range(9), range(49, 51), size, device).tolist() == [[True, False]]
    assert regard.prefix(50).span(range(9), size) == range(50)
    assert regard.prefix(500).span(range(9), size) == range(100)


def test_where_the_diagonal_is() -> None:
    assert align_offset("end", torch.Size((2, 3, 7))) == 4
    assert align_offset("end", torch.Size((2, 7, 3))) == -4
    assert align_offset("start", torch.Size((2, 3, 7))) == 0


def test_an_alignment_is_kept_by_its_name() -> None:
    assert (regard.causal().align, regard.causal("start").align) == ("end", "start")
    assert (regard.window(2).align, regard.window(2, align="start").align) == ("end", "start")
