"""Batches: every example once, within the budget, in an order that a seed repeats and processes share."""

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from regard.data.batches import batches, share, shuffled

lengths_of = st.lists(st.integers(1, 60), max_size=200)


@given(lengths=lengths_of, tokens=st.integers(1, 300), seed=st.integers(0, 99), examples=st.none() | st.integers(1, 9))
def test_every_example_comes_once_and_within_the_budget(
    lengths: list[int], tokens: int, seed: int, examples: int | None
) -> None:
    found = batches(lengths, tokens, seed=seed, examples=examples)
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= tokens
        assert examples is None or len(batch) <= examples


@given(lengths=lengths_of, seed=st.integers(0, 99), epoch=st.integers(0, 5))
def test_a_seed_repeats_and_another_does_not(lengths: list[int], seed: int, epoch: int) -> None:
    found = batches(lengths, 100, seed=seed, epoch=epoch)
    assert found == batches(lengths, 100, seed=seed, epoch=epoch)
    if len(found) > 20:
        assert found != batches(lengths, 100, seed=seed, epoch=epoch + 1)
        assert found != batches(lengths, 100, seed=seed + 1, epoch=epoch)


@given(batch=st.lists(st.integers(), max_size=40), world=st.integers(1, 7))
def test_processes_share_a_batch(batch: list[int], world: int) -> None:
    parts = [share(batch, rank, world) for rank in range(world)]
    assert sorted(index for part in parts for index in part) == sorted(batch)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_there_is_little_padding() -> None:
    chance = random.Random(3)
    lengths = [chance.randint(1, 80) for _ in range(20_000)]
    found = batches(lengths, 2000, seed=1)
    padded = sum(len(batch) * max(lengths[index] for index in batch) for batch in found)
    assert padded < 1.05 * sum(lengths)
    alone = [len(batch) for batch in found if max(lengths[index] for index in batch) <= 40]
    assert sum(alone) / len(alone) > 45, "short ones fill their batches"


def test_examples_meet_others_in_the_next_epoch() -> None:
    lengths = [7] * 1000
    first, second = ({frozenset(batch) for batch in batches(lengths, 70, seed=1, epoch=epoch)} for epoch in (0, 1))
    assert len(first) == 100
    assert not first & second
    assert not first & {frozenset(batch) for batch in batches(lengths, 70, seed=2)}


def test_examples_of_all_lengths_meet_others_too() -> None:
    """They are sorted within pools: sorted as a whole, every epoch would have the same batches."""
    lengths = list(range(1, 3001))
    first, second = ({frozenset(batch) for batch in batches(lengths, 3000, seed=1, epoch=epoch)} for epoch in (0, 1))
    together = {batch for batch in first & second if len(batch) > 1}
    assert len(together) < len(first) / 20


def test_batches_do_not_come_by_length() -> None:
    lengths = [1 + index % 50 for index in range(5000)]
    longest = [max(lengths[index] for index in batch) for batch in batches(lengths, 500, seed=1)]
    up = sum(one < other for one, other in pairwise(longest))
    assert 0.4 < up / len(longest) < 0.6


def test_an_order_is_what_it_was() -> None:
    """Written down, so that a run that goes on under another version finds its examples."""
    assert shuffled(10, 7, 0, 0) == SHUFFLED
    assert batches([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], 10, seed=7) == CUT


SHUFFLED = [0, 7, 8, 9, 3, 4, 6, 1, 2, 5]
CUT = [[3, 1, 6], [7], [5], [0, 9], [4], [2, 8]]


@pytest.mark.parametrize(("tokens", "examples"), [(0, None), (5, 0)])
def test_budgets_are_checked(tokens: int, examples: int | None) -> None:
    with pytest.raises(ValueError, match=rf"^tokens: came {tokens}, examples: {examples}; wanted one or more\. Remedy"):
        batches([1], tokens, seed=0, examples=examples)


@pytest.mark.parametrize(("rank", "world"), [(2, 2), (-1, 2), (0, 0)])
def test_ranks_are_checked(rank: int, world: int) -> None:
    wanted = f"rank: came {rank} of {world} processes, wanted 0 to {world - 1}. Remedy: torchrun sets both."
    with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
        share([1], rank, world)
