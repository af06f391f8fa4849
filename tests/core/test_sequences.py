"""Lengths and documents line up with the leading batch dimensions, and with nothing else."""

import pytest
import torch

import regard
from tests.core.drawings import drawing


def test_lengths_are_drawn() -> None:
    mask = regard.lengths(torch.tensor([2, 4]), torch.tensor([3, 1]))
    dense = mask.dense(2, 3, 5)
    assert regard.allow(dense[0]).draw(3, 5) == drawing("██···\n██···\n██···")
    assert regard.allow(dense[1]).draw(3, 5) == drawing("████·\n·····\n·····")
    assert regard.lengths(torch.tensor([2])).draw(1, 3, 5) == drawing("██···\n██···\n██···")
    assert regard.lengths(queries=torch.tensor([2])).draw(1, 3, 5) == drawing("█████\n█████\n·····")
    assert regard.lengths().draw(2, 3) == drawing("███\n███")


@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 1), (1,), (1, 3), ()])
def test_lengths_line_up_with_the_first_dimensions(shape: tuple[int, ...]) -> None:
    count = torch.randint(0, 8, shape)
    dense = regard.lengths(count).dense(2, 3, 5, 7)
    for b in range(2):
        for h in range(3):
            index = tuple(0 if size == 1 else place for size, place in zip(shape, (b, h), strict=False))
            wanted = torch.arange(7) < count[index]
            assert torch.equal(dense[b, h], wanted.expand(5, 7))


def test_as_many_sequences_as_heads() -> None:
    """Where lengths could fall onto the heads without a word, they fall onto the sequences."""
    dense = regard.lengths(torch.tensor([1, 3])).dense(2, 2, 1, 3)
    assert dense[0].tolist() == [[[True, False, False]]] * 2
    assert dense[1].tolist() == [[[True, True, True]]] * 2


def test_documents_are_drawn() -> None:
    mask = regard.documents(torch.tensor([0, 0, 1, 1, 1, 2]))
    assert mask.draw(6, 6) == drawing("██····\n██····\n··███·\n··███·\n··███·\n·····█")
    apart = regard.documents(keys=torch.tensor([0, 0, 1, 7]), queries=torch.tensor([1, 0, 5]))
    assert apart.draw(3, 4) == drawing("··█·\n██··\n····")


def test_documents_of_every_sequence() -> None:
    ids = torch.tensor([[0, 0, 1], [0, 1, 1]])
    dense = regard.documents(ids).dense(2, 5, 3, 3)
    for b in range(2):
        wanted = ids[b][:, None] == ids[b][None]
        assert torch.equal(dense[b], wanted.expand(5, 3, 3))
    tile = regard.documents(ids).tile(range(1, 3), range(2), torch.Size((2, 5, 3, 3)), torch.device("cpu"))
    assert torch.equal(tile.expand(2, 5, 2, 2), dense[..., 1:3, :2])


def test_no_batch() -> None:
    assert regard.lengths(torch.tensor(2)).dense(3, 4)[0].tolist() == [True, True, False, False]


def test_spans_reach_everywhere() -> None:
    shape = torch.Size((2, 5, 7))
    assert regard.lengths(torch.tensor([2, 4])).span(range(2), shape) == range(7)
    assert regard.documents(torch.zeros(2, 7, dtype=torch.long)).span(range(2), shape) == range(7)
