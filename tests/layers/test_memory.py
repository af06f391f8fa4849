"""The soft dictionary: exact at an exact match, inverse-distance otherwise, a value that is never changed."""

import re

import pytest
import torch
from hypothesis import given, strategies
from torch import Tensor, nn

from regard.core.distances import soft_dictionary
from regard.core.see import Weights
from regard.layers import Attention, BilinearScore, CosineScore, Memory

BATCH, QUERIES, ENTRIES, WIDTH, VALUE_WIDTH = 2, 5, 7, 3, 11


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def test_an_exact_match_gives_the_exact_value() -> None:
    keys, values = numbers(ENTRIES, WIDTH), numbers(ENTRIES, VALUE_WIDTH)
    memory = Memory(Attention(soft_dictionary(2.0, epsilon=1e-12))).write(keys, values)
    torch.testing.assert_close(memory[keys], values, rtol=0, atol=1e-15)
    torch.testing.assert_close(memory[keys[3]], values[3], rtol=0, atol=1e-15)


@given(near=strategies.floats(1e-9, 1e-6), seed=strategies.integers(0, 99))
def test_a_near_miss_gives_nearly_the_value(near: float, seed: int) -> None:
    torch.manual_seed(seed)
    keys, values = torch.arange(ENTRIES, dtype=torch.float64)[:, None], numbers(ENTRIES, VALUE_WIDTH)
    memory = Memory(Attention(soft_dictionary(epsilon=1e-24))).write(keys, values)
    torch.testing.assert_close(memory[keys + near], values, rtol=0, atol=100 * near)


def test_it_is_the_mean_by_inverse_distance() -> None:
    keys, values, query = numbers(ENTRIES, WIDTH), numbers(ENTRIES, VALUE_WIDTH), numbers(QUERIES, WIDTH)
    memory = Memory(Attention(soft_dictionary(epsilon=1e-30))).write(keys, values)
    for asked, answer in zip(query, memory[query], strict=True):
        share = [
            1 / sum((a - k) ** 2 for a, k in zip(asked.tolist(), key.tolist(), strict=True)) ** 0.5 for key in keys
        ]
        wanted = sum(s * value for s, value in zip(share, values, strict=True)) / sum(share)
        torch.testing.assert_close(answer, wanted)


def test_two_keys_at_the_same_distance_weigh_the_same() -> None:
    memory = Memory().write(torch.tensor([[-1.0], [1.0]]), torch.tensor([[10.0], [20.0]]))
    assert memory[torch.zeros(1)].item() == 15.0
    assert memory[torch.tensor([[0.5]])].item() > 15.0


def test_writing_gives_a_new_memory_and_leaves_the_old() -> None:
    keys, values, query = numbers(ENTRIES, WIDTH), numbers(ENTRIES, VALUE_WIDTH), numbers(QUERIES, WIDTH)
    empty = Memory()
    first = empty.write(keys[:3], values[:3])
    before = first[query]
    second = first.write(keys[3], values[3]).write(keys[4:], values[4:])
    assert (len(empty), len(first), len(second)) == (0, 3, ENTRIES)
    torch.testing.assert_close(first[query], before, rtol=0, atol=0)
    torch.testing.assert_close(second[query], Memory().write(keys, values)[query])
    torch.testing.assert_close(torch.stack(second.keys()), keys, rtol=0, atol=0)
    torch.testing.assert_close(torch.stack(second.values()), values, rtol=0, atol=0)
    with pytest.raises(AttributeError, match="cannot assign to field"):
        first.written = None
    with pytest.raises(TypeError, match=r"^memory: it is never changed\. Remedy: memory = memory\.write\(key, value\)"):
        first[keys[0]] = values[0]


def test_it_looks_like_a_dict() -> None:
    keys, values = numbers(ENTRIES, WIDTH), numbers(ENTRIES, VALUE_WIDTH)
    memory = Memory().write(keys, values)
    assert list(memory.values())[2] is not None
    torch.testing.assert_close(torch.stack(list(memory)), keys, rtol=0, atol=0)
    torch.testing.assert_close(torch.stack(memory.keys()), keys, rtol=0, atol=0)
    torch.testing.assert_close(torch.stack([value for _, value in memory.items()]), values, rtol=0, atol=0)
    assert keys[4] in memory
    assert keys[4] + 1e-9 not in memory
    assert keys[0] not in Memory()
    assert (list(Memory()), Memory().values(), Memory().items()) == ([], (), ())
    assert bool(memory)
    assert not Memory()
    assert repr(memory) == "Memory(7 written, score=DictionaryPair, normalise=Softmax)"


def test_a_batch_of_memories() -> None:
    keys, values, query = (
        numbers(BATCH, ENTRIES, WIDTH),
        numbers(BATCH, ENTRIES, VALUE_WIDTH),
        numbers(BATCH, QUERIES, WIDTH),
    )
    memory = Memory().write(keys, values)
    assert len(memory) == ENTRIES
    for n in range(BATCH):
        torch.testing.assert_close(memory[query][n], Memory().write(keys[n], values[n])[query[n]])
    assert keys[:, 2] in memory
    assert keys[0, 2] not in memory
    assert next(iter(memory)).shape == (BATCH, WIDTH)


class Counted(nn.Linear):
    """A projection that counts its calls."""

    calls = 0

    def forward(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(tokens)


def test_keys_and_values_are_projected_once_and_projections_learn() -> None:
    key, value, query = Counted(WIDTH, 13), Counted(VALUE_WIDTH, 17), Counted(WIDTH, 13)
    layer = Attention(CosineScore(), key=key, value=value, query=query).double()
    keys, values, asked = numbers(ENTRIES, WIDTH), numbers(ENTRIES, VALUE_WIDTH), numbers(QUERIES, WIDTH)
    memory = Memory(layer).write(keys, values)
    answers = [memory[one] for one in asked]
    assert (key.calls, value.calls, query.calls) == (1, 1, QUERIES)
    torch.testing.assert_close(torch.stack(answers), layer(asked, keys, values))
    torch.stack(answers).sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())


def test_a_look_can_be_masked_and_seen() -> None:
    keys, values, query = numbers(ENTRIES, WIDTH), numbers(ENTRIES, VALUE_WIDTH), numbers(QUERIES, WIDTH)
    memory = Memory(Attention(BilinearScore(WIDTH, WIDTH)).double()).write(keys, values)
    hidden = torch.arange(ENTRIES) != 2
    answer, seen = memory.look(query, mask=hidden, see=Weights())
    assert seen.weights[:, 2].abs().max() == 0
    torch.testing.assert_close(answer, seen.weights @ values)
    one, seen = memory.look(query[0], mask=hidden, see=Weights())
    torch.testing.assert_close(one, answer[0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: Memory()[torch.zeros(3)], LookupError, "memory: nothing is written yet. Remedy: memory = memory.wr"),
        (lambda m: m[[0.0]], TypeError, "query: came list, wanted a torch.Tensor"),
        (lambda m: m["key"], TypeError, "query: came str, wanted a torch.Tensor"),
        (lambda m: m[torch.zeros(4)], ValueError, "its width is 4; wanted width 3"),
        (lambda m: m.write(torch.zeros(2, 3), torch.zeros(3, 1)), ValueError, "value: came float32[3, 1] for key flo"),
        (lambda m: "key" in m, TypeError, "key: came str, wanted a tensor [width]"),
    ],
)
def test_errors_say_what_came_and_what_was_wanted(call, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call(Memory().write(torch.zeros(2, 3), torch.zeros(2, 1)))
