"""Blocks dealt out to threads: the same answer with any number of them, every time, and no trace left behind."""

import threading
from collections.abc import Iterator
from threading import Event

import pytest
import torch

import regard
from regard.kernels import walk, workers
from tests.kernels.test_tiled import biases, compare, masks, normalisers, scores, sees


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three workers, whatever the size of the call, and small blocks for them."""
    monkeypatch.setattr(workers, "WORTH", 0)
    monkeypatch.setattr(walk, "CACHE", 400)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("keys", [11, 307])
@pytest.mark.parametrize("place", range(9))
def test_three_workers_are_the_definition(place: int, keys: int) -> None:
    choices = [
        some[place % len(some)] for some in (scores(), normalisers(), masks(keys), biases(keys)[::-1], sees(keys))
    ]
    compare(choices, keys, dropout=0.0 if place % 2 else 0.3)
    compare(
        [scores()[place % 7], normalisers()[0], masks(keys)[place % 6], *(c(keys)[0] for c in (biases, sees))],
        keys,
        0.0,
    )


@pytest.mark.usefixtures("three")
def test_a_result_repeats_bit_by_bit() -> None:
    query, key, value = (torch.randn(5, n, 7, requires_grad=True) for n in (131, 307, 307))
    weight = torch.randn(7, requires_grad=True)
    answers = []
    for _ in range(20):
        context = regard.attend(query, key, value, score=regard.additive(weight), backend="tiled")
        answers.append((context, *torch.autograd.grad(context.square().sum(), (query, key, value, weight))))
    for answer in answers[1:]:
        assert all(torch.equal(first, other) for first, other in zip(answers[0], answer, strict=True))


def test_what_is_small_or_elsewhere_stays_with_one() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(5)
    try:
        cpu = torch.device("cpu")
        assert workers.worth(workers.WORTH - 1, 0, cpu) == 1
        assert workers.worth(workers.WORTH, 0, cpu) == 5
        assert workers.worth(workers.WORTH, workers.SPARE // 2, cpu) == 2
        assert workers.worth(workers.WORTH, 2 * workers.SPARE, cpu) == 1
        assert workers.worth(workers.WORTH, 0, torch.device("cuda")) == 1
        inside = workers.together(lambda _number, _stop: (torch.get_num_threads(), threading.current_thread().name), 2)
        assert [number for number, _ in inside] == [1, 1]
        assert all(name.startswith("regard") for _, name in inside)
        assert torch.get_num_threads() == 5
    finally:
        torch.set_num_threads(before)


def test_when_one_fails_the_others_stop_and_the_error_arrives() -> None:
    stopped = Event()

    def task(number: int, stop: Event) -> int:
        if number == 0:
            raise ValueError("the first one's own words")
        if stop.wait(10):
            stopped.set()
        return number

    with pytest.raises(ValueError, match="the first one's own words"):
        workers.together(task, 2)
    assert stopped.wait(10)
