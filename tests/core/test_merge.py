"""Parts of attention put together again: values, gradients, and the order of equal weights."""

from itertools import pairwise

import pytest
import torch

import regard
from regard.core.merge import merge_top
from regard.core.see import Best

SEE = [regard.LogSumExp(), regard.Entropy(), regard.Weights([0, 3]), regard.Top(4)]


def call(query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, regard.Seen]:
    return regard.attend(query, key, key, mask=mask, normalise=regard.softmax(0.7), see=SEE, backend="definition")


@pytest.mark.parametrize("edges", [(0, 13), (0, 5, 13), (0, 0, 1, 6, 13), (0, 13, 13)])
def test_keys_merge_with_their_gradients(edges: tuple[int, ...]) -> None:
    query = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    key = torch.randn(2, 13, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(2, 5, 13) < 0.6
    mask[1, 2] = False
    mask[0, 1, 5:] = False
    blocks = list(pairwise(edges))
    parts = [call(query, key[:, a:b], mask[..., a:b]) for a, b in blocks]
    context, seen = regard.merge_keys(parts, [b - a for a, b in blocks])
    wanted, whole = call(query, key, mask)
    pairs = [
        (context, wanted),
        (seen.entropy, whole.entropy),
        (seen.weights, whole.weights),
        (seen.logsumexp, whole.logsumexp),
        (seen.top.values, whole.top.values),
    ]
    for one, other in pairs:
        torch.testing.assert_close(one, other)
    assert torch.equal(seen.top.indices, whole.top.indices)
    push = torch.randn_like(wanted)
    ours, theirs = (
        torch.autograd.grad(((c * push).sum() + s.entropy.sum()), (query, key))
        for c, s in ((context, seen), (wanted, whole))
    )
    for one, other in zip(ours, theirs, strict=True):
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other)


def test_very_different_parts_do_not_overflow() -> None:
    query, key = torch.tensor([[1.0]]), torch.tensor([[-3e4], [3e4], [3e4 + 1]])
    value = torch.tensor([[1.0], [2.0], [3.0]])
    see = [regard.LogSumExp(), regard.Entropy()]
    parts = [regard.attend(query, key[a:b], value[a:b], score=regard.dot(), see=see) for a, b in ((0, 1), (1, 3))]
    context, seen = regard.merge_keys(parts, [1, 2])
    wanted, whole = regard.attend(query, key, value, score=regard.dot(), see=see)
    torch.testing.assert_close(context, wanted)
    torch.testing.assert_close(seen.entropy, whole.entropy)


def test_weights_sum_to_one_however_large_the_scores() -> None:
    """A log-sum-exp of a million is good to a sixteenth in float32; that must not fall on the sum of the weights."""
    query, key, value = torch.randn(5, 3), torch.randn(11, 3), torch.ones(11, 2)
    things = [regard.LogSumExp(), regard.Weights()]
    parts = [
        regard.attend(query, key[part], value[part], bias=torch.tensor(1e6), see=things)
        for part in (slice(0, 4), slice(4, 11))
    ]
    context, seen = regard.merge_keys(parts, [4, 7])
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones(5))
    torch.testing.assert_close(context, torch.ones(5, 2))


def test_parts_that_weigh_nothing_have_no_best() -> None:
    things = [regard.LogSumExp(), regard.Top(3)]
    query, key = torch.ones(1, 1), torch.tensor([[-3e4], [3e4], [-3e4]])
    parts = [regard.attend(query, key[a:b], key[a:b], see=things) for a, b in ((0, 1), (1, 3))]
    _, seen = regard.merge_keys(parts, [1, 2])
    assert seen.top.values.tolist() == [[1, 0, 0]]
    assert seen.top.indices.tolist() == [[1, -1, -1]]
    assert seen.top.indices.dtype == torch.int64


def test_many_equal_weights_keep_their_order() -> None:
    """More of them than a sort that is not stable leaves in place."""
    several = [Best(torch.full((3, 97), 0.5), torch.arange(97).expand(3, 97)) for _ in range(2)]
    best = merge_top(150, several, torch.full((2, 3), 0.5), [0, 97])
    assert best.indices.tolist() == [list(range(150))] * 3


def test_equal_weights_keep_their_order_over_parts() -> None:
    several = [
        Best(torch.tensor([[0.5, 0.5]]), torch.tensor([[0, 2]])),
        Best(torch.tensor([[0.5, 0.0]]), torch.tensor([[1, -1]])),
    ]
    best = merge_top(3, several, torch.tensor([[0.5], [0.5]]), [0, 3])
    assert best.indices.tolist() == [[0, 2, 4]]
    assert best.values.tolist() == [[0.25, 0.25, 0.25]]
    none = merge_top(4, several, torch.tensor([[0.5], [0.5]]), [0, 3])
    assert none.indices.tolist() == [[0, 2, 4, -1]]


def test_queries_merge() -> None:
    query, key = torch.randn(2, 11, 3), torch.randn(2, 13, 3)
    see = [regard.Entropy(), regard.Received(), regard.Weights(), regard.Top(2), regard.LogSumExp()]
    wanted, whole = regard.attend(query, key, key, see=see, backend="definition")
    cut = [query[:, :4], query[:, 4:4], query[:, 4:]]
    parts = [regard.attend(part, key, key, see=see, backend="definition") for part in cut]
    context, seen = regard.merge_queries(parts)
    torch.testing.assert_close(context, wanted)
    for name in ("entropy", "received", "weights", "logsumexp"):
        torch.testing.assert_close(getattr(seen, name), getattr(whole, name))
    assert torch.equal(seen.top.indices, whole.top.indices)
    one, alone = regard.merge_queries(parts[:1])
    assert torch.equal(one, parts[0][0])
    assert torch.equal(alone.entropy, parts[0][1].entropy)


def test_parts_of_a_half_type_stay_in_it() -> None:
    query, key = torch.randn(5, 3, dtype=torch.bfloat16), torch.randn(13, 3, dtype=torch.bfloat16)
    parts = [regard.attend(query, k, k, see=regard.LogSumExp()) for k in (key[:4], key[4:])]
    context, seen = regard.merge_keys(parts, [4, 9])
    assert context.dtype == torch.bfloat16
    assert seen.logsumexp.dtype == torch.float32
    torch.testing.assert_close(context, regard.attend(query, key, key), rtol=2e-2, atol=2e-2)
