"""Decoding against enumeration, against itself, and against what other sentences and padding might do to it."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import stats
from torch import Tensor

from regard.decoding import Hypothesis, Penalty, Step, beam, forced, greedy, sample
from regard.decoding.paths import highest, taken
from tests.decoding.toy import END, State, Toy

seeds = st.integers(0, 10**6)
penalties = st.builds(Penalty, length=st.sampled_from([0.0, 0.6, 1.0]), coverage=st.sampled_from([0.0, 0.2]))


def close(one: Hypothesis, other: Hypothesis, tolerance: float = 1e-9) -> None:
    assert one.tokens == other.tokens
    assert one.ended == other.ended
    assert one.log_probability == pytest.approx(other.log_probability, abs=tolerance)
    assert one.score == pytest.approx(other.score, abs=tolerance)


def by_hand(toy: Toy, row: int, tokens: tuple[int, ...], penalty: Penalty) -> float:
    """The score of a sentence with the token that ends, one step at a time."""
    state, last = toy.start([row])
    total, received = 0.0, [0.0] * int(toy.lengths[row])
    for token in (*tokens, END):
        logits, state, weights = toy.step(state, last)
        total += torch.log_softmax(logits[0], -1)[token].item()
        received = [have + more for have, more in zip(received, weights[0].tolist(), strict=False)]
        last = torch.tensor([token])
    covered = sum(math.log(min(weight, 1.0)) for weight in received)
    return total / ((5 + len(tokens) + 1) / 6) ** penalty.length + penalty.coverage * covered


@given(seed=seeds, row=st.integers(0, 63), penalty=penalties)
@settings(max_examples=30)
def test_a_wide_beam_finds_the_best_there_is(seed: int, row: int, penalty: Penalty) -> None:
    toy = Toy(seed, 4)
    state, first = toy.start([row])
    (found,) = beam(
        toy.step, state, first, end=END, longest=4, width=300, best=5, penalty=penalty, source=state.words
    )  # fmt: skip
    every = [tokens for length in range(4) for tokens in product((0, 1, 3), repeat=length)]
    ranked = sorted(((by_hand(toy, row, tokens, penalty), tokens) for tokens in every), reverse=True)
    assert [one.tokens for one in found] == [tokens for _, tokens in ranked[:5]]
    assert [one.score for one in found] == pytest.approx([score for score, _ in ranked[:5]], abs=1e-9)


@given(seed=seeds, longest=st.integers(1, 12))
@settings(max_examples=50)
def test_a_beam_of_one_is_greedy(seed: int, longest: int) -> None:
    toy = Toy(seed, 11)
    rows = list(range(9))
    ones = beam(toy.step, *toy.start(rows), end=END, longest=longest, width=1)
    for (one,), other in zip(ones, greedy(toy.step, *toy.start(rows), end=END, longest=longest), strict=True):
        close(one, other)
        assert torch.equal(one.weights, other.weights)


@given(seed=seeds, padding=st.integers(0, 5), width=st.sampled_from([1, 2, 5]), penalty=penalties)
@settings(max_examples=25)
def test_nothing_else_in_the_batch_changes_a_sentence(seed: int, padding: int, width: int, penalty: Penalty) -> None:
    """Alone, among 64, under padding, in another order: in float32, where sums of a batch round differently."""
    toy = Toy(seed, 13, dtype=torch.float32)
    rows = list(range(64))
    longest = 2 * toy.lengths + 3
    options = {"end": END, "width": width, "best": min(width, 2), "penalty": penalty}
    state, first = toy.start(rows, padding)
    together = beam(toy.step, state, first, longest=longest, source=state.words, **options)
    for row in (0, 17, 63):
        state, first = toy.start([row])
        (alone,) = beam(toy.step, state, first, longest=longest[[row]], source=state.words, **options)
        assert len(alone) == len(together[row])
        for one, other in zip(alone, together[row], strict=True):
            close(one, other, 1e-5)
            length = int(toy.lengths[row])
            torch.testing.assert_close(one.weights[:, :length], other.weights[:, :length], atol=1e-5, rtol=0)
            assert other.weights[:, length:].abs().sum() == 0


@given(seed=seeds, penalty=penalties)
@settings(max_examples=25)
def test_forced_scoring_gives_the_numbers_of_the_search(seed: int, penalty: Penalty) -> None:
    toy = Toy(seed, 11)
    rows = list(range(9))
    state, first = toy.start(rows)
    found = beam(toy.step, state, first, end=END, longest=9, best=3, penalty=penalty, source=state.words)
    for rank in range(3):
        ended = [row for row in rows if len(found[row]) > rank and found[row][rank].ended]
        if not ended:
            continue
        state, first = toy.start(ended)
        again = forced(
            toy.step, state, first, [found[row][rank].tokens for row in ended], end=END, penalty=penalty,
            source=state.words,
        )  # fmt: skip
        for row, one in zip(ended, again, strict=True):
            close(one, found[row][rank])
            width = one.weights.shape[1]
            torch.testing.assert_close(one.weights, found[row][rank].weights[:, :width], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("length", [0.0, 0.8])
def test_a_wider_beam_is_no_worse_on_the_whole(length: float) -> None:
    """Of the sentences that every width brings to an end."""
    toy = Toy(3, 11, sharp=1.0)
    rows, penalty = list(range(64)), Penalty(length)
    several = [
        [found[0] for found in beam(toy.step, *toy.start(rows), end=END, longest=25, width=width, penalty=penalty)]
        for width in (1, 3, 9, 27)
    ]
    ended = [row for row in rows if all(found[row].ended for found in several)]
    scores = [sum(found[row].score for row in ended) for found in several]
    assert len(ended) > 20
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]


def level(state: Tensor, tokens: Tensor) -> Step:
    """Every token alike, always."""
    return Step(torch.zeros(len(tokens), 5), state)


def test_ties_go_to_the_lowest_token() -> None:
    state, first = torch.zeros(2, 1), torch.ones(2, dtype=torch.long)
    assert [one.tokens for one in greedy(level, state, first, end=4, longest=3)] == [(0, 0, 0)] * 2
    found = beam(level, state, first, end=0, longest=3, width=3, best=3)
    assert [[one.tokens for one in several] for several in found] == [[(), (1,), (1, 1)]] * 2
    cut = beam(level, state, first, end=4, longest=2, width=4, best=4)
    assert [one.tokens for one in cut[0]] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert not any(one.ended for one in cut[0])


def test_what_ended_comes_before_what_was_cut() -> None:
    """However likely: a sentence without an end is no sentence."""
    logits = torch.tensor([[3.0, 0.0, -1.0]])

    def step(state: Tensor, tokens: Tensor) -> Step:
        return Step(logits.expand(len(tokens), 3), state)

    (found,) = beam(step, torch.zeros(1), torch.ones(1, dtype=torch.long), end=2, longest=2, width=4, best=4)
    assert [one.ended for one in found] == [True, True, False, False]
    assert [one.tokens for one in found] == [(), (0,), (0, 0), (0, 1)]


def test_each_sentence_has_its_own_bound() -> None:
    state, first = torch.zeros(3, 1), torch.ones(3, dtype=torch.long)
    for found in (
        greedy(level, state, first, end=4, longest=torch.tensor([1, 4, 2])),
        [several[0] for several in beam(level, state, first, end=4, longest=torch.tensor([1, 4, 2]), width=1)],
    ):
        assert [len(one.tokens) for one in found] == [1, 4, 2]
        assert found[1].log_probability == pytest.approx(-4 * math.log(5))
        assert found[0].weights is None


def test_sentences_that_are_done_cost_nothing() -> None:
    toy = Toy(5, 11)
    rows = list(range(20))
    state, first = toy.start(rows)
    found = beam(toy.step, state, first, end=END, longest=30, width=4)
    assert toy.asked < 4 * sum(2 + max(len(one.tokens) for one in several) * 3 for several in found)


def test_no_sentences() -> None:
    state, first = torch.zeros(0, 1), torch.zeros(0, dtype=torch.long)
    assert greedy(level, state, first, end=4, longest=3) == []
    assert beam(level, state, first, end=4, longest=3) == []
    assert forced(level, state, first, [], end=4) == []
    assert sample(level, state, first, end=4, longest=3) == []


def drawn(count: int, **options: object) -> Tensor:
    """How often each of five tokens comes first, of so many sentences."""
    logits = torch.tensor([0.5, -1.0, 1.5, 0.0, -3.0])

    def step(state: Tensor, tokens: Tensor) -> Step:
        return Step(logits.expand(len(tokens), 5), state)

    first = torch.ones(count, dtype=torch.long)
    found = sample(
        step, torch.zeros(count), first, end=4, longest=1, generator=torch.Generator().manual_seed(3), **options
    )
    return torch.bincount(torch.tensor([one.tokens[0] if one.tokens else 4 for one in found]), minlength=5)


LOGITS = torch.tensor([0.5, -1.0, 1.5, 0.0, -3.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, LOGITS),
        ({"temperature": 0.5}, LOGITS * 2),
        ({"top": 2}, LOGITS.masked_fill(torch.tensor([0, 1, 0, 1, 1]).bool(), -torch.inf)),
        ({"top": 9}, LOGITS),
        ({"share": 0.75}, LOGITS.masked_fill(torch.tensor([0, 1, 0, 1, 1]).bool(), -torch.inf)),
        ({"share": 0.3}, LOGITS.masked_fill(torch.tensor([1, 1, 0, 1, 1]).bool(), -torch.inf)),
    ],
)
def test_tokens_are_drawn_by_their_probabilities(options: dict[str, float], wanted: Tensor) -> None:
    counts, shares = drawn(20_000, **options), torch.softmax(wanted, -1) * 20_000
    assert counts[shares == 0].sum() == 0
    held = shares > 0
    if held.sum() > 1:
        assert stats.chisquare(counts[held].double().numpy(), shares[held].numpy(), sum_check=False).pvalue > 1e-4


def test_draws_repeat_and_do_not_depend_on_the_others() -> None:
    toy = Toy(3, 11, sharp=0.3)

    def of(rows: list[int], seed: int) -> list[tuple[int, ...]]:
        generator = torch.Generator().manual_seed(seed)
        return [one.tokens for one in sample(toy.step, *toy.start(rows), end=END, longest=12, generator=generator)]

    assert of([1, 2, 3], 7) == of([1, 2, 3], 7)
    assert of([1, 2, 3], 7) != of([1, 2, 3], 8)
    assert of([1, 2, 3], 7)[1] == of([9, 2, 8, 4], 7)[1]


def test_rows_are_taken_from_any_state() -> None:
    tensor, rows = torch.arange(6).reshape(3, 2), torch.tensor([2, 0, 0])
    state = {
        "a": [tensor, None, 7],
        "b": (tensor, "name"),
        "c": State(tensor, tensor, tensor),
        "d": Step(tensor, tensor),
    }
    found = taken(state, rows)
    for part in (found["a"][0], found["b"][0], found["c"].words, found["d"].state):
        assert torch.equal(part, tensor[rows])
    assert found["a"][1:] == [None, 7]
    assert found["b"][1] == "name"
    assert isinstance(found["d"], Step)
    with pytest.raises(
        TypeError, match=r"^state: it holds set, wanted tensors in tuples, lists, dictionaries or dataclass"
    ):
        taken([{1}], rows)


@given(
    values=st.lists(st.lists(st.integers(-3, 3), min_size=6, max_size=6), min_size=1, max_size=4),
    count=st.integers(1, 6),
)
def test_the_highest_are_those_of_a_stable_sort(values: list[list[int]], count: int) -> None:
    numbers = torch.tensor(values, dtype=torch.float64).masked_fill(torch.tensor(values) == -3, -torch.inf)
    wanted = [sorted(range(6), key=lambda place, row=row: (-row[place], place))[:count] for row in numbers.tolist()]
    assert highest(numbers, count).tolist() == wanted


def test_errors_say_what_to_do() -> None:
    toy = Toy(3, 11)
    state, first = toy.start([1, 2])
    with pytest.raises(
        ValueError, match=r"^best: came 3 of a beam of width 2, wanted 1 to 2\. Remedy: a wider beam\.$"
    ):
        beam(toy.step, state, first, end=END, longest=3, width=2, best=3)
    with pytest.raises(
        ValueError, match=r"^source: came None, with a coverage penalty; wanted where words stand\. Remedy"
    ):
        beam(toy.step, state, first, end=END, longest=3, penalty=Penalty(coverage=0.2))
    with pytest.raises(ValueError, match=r"^weights: the step gave None, with a coverage penalty\. Remedy"):
        beam(level, torch.zeros(2), first, end=4, longest=3, penalty=Penalty(coverage=0.2), source=state.words)
    for longest in (0, torch.tensor([3, 0]), torch.tensor([3])):
        with pytest.raises(
            ValueError, match=r"^longest: came \[.*\], wanted a positive number for each of 2 sentences"
        ):
            greedy(toy.step, state, first, end=END, longest=longest)
    for name in ("length", "coverage"):
        with pytest.raises(ValueError, match=rf"^{name}: came -1, wanted zero or more\. Remedy: 0 for none\.$"):
            Penalty(**{name: -1})
    for options in ({"temperature": 0.0}, {"top": 0}, {"share": 0.0}, {"share": 1.1}):
        with pytest.raises(ValueError, match=r"^temperature: came .*, top: .*, share: .*; wanted a positive number"):
            sample(toy.step, state, first, end=END, longest=3, **options)
