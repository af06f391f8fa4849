"""What is seen, against loops over dense weights; and in blocks of rows as the roads see it."""

import math
from itertools import pairwise

import pytest
import torch
from torch.autograd import gradcheck

import regard
from regard.core.see import Best, Rows, Thing, bins, largest, rows_before
from regard.core.seen import combine

QUERIES, KEYS = 11, 13


def rows() -> Rows:
    """Weights [2 11 13] of softmax with holes, where the third query of the second sequence sees nothing."""
    scores = torch.randn(2, QUERIES, KEYS, dtype=torch.float64)
    scores = scores.masked_fill(torch.rand(scores.shape) < 0.3, -torch.inf)
    scores[1, 2] = -torch.inf
    normalise = regard.softmax(0.5)
    return Rows(normalise(scores), scores, 0, QUERIES, normalise)


def value(thing: Thing, of: Rows) -> object:
    return thing.finish(thing.part(of), of.queries)


def block(of: Rows, start: int, stop: int) -> Rows:
    return Rows(of.weights[:, start:stop], of.scores[:, start:stop], start, of.queries, of.normalise)


SHARE = torch.rand(QUERIES, dtype=torch.float64)
THINGS = [
    regard.Weights(),
    regard.Weights([7, -1, 0, 7, 3]),
    regard.Weights([]),
    regard.Weights([9, 4, 1, 5, 2]),
    regard.Entropy(),
    regard.Received(),
    regard.Received(SHARE),
    regard.Top(3),
    regard.Top(17),
    regard.Map(4),
    regard.Map((3, 5)),
    regard.Map(99),
    regard.Tile(range(2, 9), range(3, 11)),
    regard.Tile(range(0), range(KEYS)),
    regard.Tile(range(QUERIES), range(5, 5)),
    regard.LogSumExp(),
]


@pytest.mark.parametrize("thing", THINGS, ids=[f"{place} {thing.name}" for place, thing in enumerate(THINGS)])
@pytest.mark.parametrize("edges", [(0, 11), (0, 4, 11), (0, 1, 2, 9, 11), (0, 5, 5, 11)])
def test_blocks_of_rows_make_the_whole(thing: Thing, edges: tuple[int, ...]) -> None:
    of = rows()
    whole = value(thing, of)
    blocks = [block(of, start, stop) for start, stop in pairwise(edges)]
    parts = combine(thing, [thing.part(part) for part in blocks])
    assert len(parts) == thing.pieces
    merged = thing.finish(parts, of.queries)
    for one, other in zip(*((v if isinstance(v, Best) else (v,)) for v in (merged, whole)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12, equal_nan=True)
    if thing.merge == "rows":
        for part in blocks:
            before = rows_before(thing, part.start, of.queries)
            piece = thing.part(part)[0]
            held = combine(thing, [thing.part(p) for p in blocks])[0]
            assert torch.equal(held.narrow(thing.dimension, before, piece.shape[thing.dimension]), piece)


def test_weights_of_chosen_queries() -> None:
    of = rows()
    assert torch.equal(value(regard.Weights(), of), of.weights)
    assert torch.equal(value(regard.Weights([7, -1, 0, 7]), of), of.weights[:, [7, -1, 0, 7]])
    assert torch.equal(value(regard.Weights([0, 1, 2]), of), of.weights[:, :3])
    assert regard.Weights(range(2)).chosen(5) == [0, 1]


def test_entropy_is_a_sum() -> None:
    of = rows()
    wanted = [[-math.fsum(p * math.log(p) for p in row if p) for row in one] for one in of.weights.tolist()]
    torch.testing.assert_close(value(regard.Entropy(), of), torch.tensor(wanted, dtype=torch.float64))
    assert value(regard.Entropy(), of)[1, 2] == 0


def test_entropy_has_gradients_at_zero_weights() -> None:
    weights = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    of = Rows(weights, torch.zeros(3, 3), 0, 3, regard.sparsemax())
    (found,) = torch.autograd.grad(value(regard.Entropy(), of).sum(), weights)
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found[0], torch.tensor([math.log(2) - 1, math.log(2) - 1, 0.0]))


def test_entropy_of_certainty_is_zero_and_not_minus_zero() -> None:
    of = Rows(torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2), 0, 1, regard.hard())
    assert math.copysign(1, value(regard.Entropy(), of).item()) == 1


def test_what_keys_receive() -> None:
    of = rows()
    torch.testing.assert_close(value(regard.Received(), of), of.weights.sum(1))
    wanted = torch.einsum("bqk,q->bk", of.weights, SHARE)
    torch.testing.assert_close(value(regard.Received(SHARE), of), wanted)
    per_sequence = torch.rand(2, QUERIES, dtype=torch.float64)
    torch.testing.assert_close(
        value(regard.Received(per_sequence), of), torch.einsum("bqk,bq->bk", of.weights, per_sequence)
    )
    assert (
        value(regard.Received(SHARE), Rows(of.weights.float(), of.scores, 0, QUERIES, of.normalise)).dtype
        == torch.float32
    )
    plain = regard.Received()
    assert plain.mapped(lambda tensor, own: tensor * 2) is plain
    assert torch.equal(regard.Received(SHARE).mapped(lambda tensor, own: tensor * own).weights, SHARE)


def test_top_is_sorted_with_the_lowest_index_on_ties() -> None:
    weights = torch.tensor([[0.2, 0.3, 0.2, 0.3], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    of = Rows(weights, torch.zeros(3, 4), 0, 3, regard.sparsemax())
    best = value(regard.Top(3), of)
    assert best.indices.tolist() == [[1, 3, 0], [1, -1, -1], [-1, -1, -1]]
    torch.testing.assert_close(best.values, torch.tensor([[0.3, 0.3, 0.2], [1.0, 0, 0], [0.0, 0, 0]]))
    wide = value(regard.Top(6), of)
    assert wide.indices[0].tolist() == [1, 3, 0, 2, -1, -1]
    assert wide.values[0, 4:].tolist() == [0, 0]


def ranked_alike(keys: int, ranks: range) -> torch.Tensor:
    """Different weights in any order, but those of these ranks are alike."""
    ranked = torch.rand(keys).sort(descending=True).values
    ranked[ranks.start : ranks.stop] = ranked[ranks.start].item()
    return ranked[torch.randperm(keys)]


@pytest.mark.parametrize(
    ("k", "ranks"),
    [
        (7, range(2, 4)),
        (16, range(16)),
        (7, range(5, 7)),
        (7, range(6, 8)),
        (5, range(3, 9)),
    ],
)
@pytest.mark.parametrize("rows", [1, 5])
def test_ties_are_found_where_they_lie(rows: int, k: int, ranks: range) -> None:
    """`topk` puts equal weights in any order, inside the best and across the border: seen in the last of some rows."""
    surprises = 0
    for _ in range(40):
        weights = torch.stack([*(torch.rand(64) for _ in range(rows - 1)), ranked_alike(64, ranks)])[None]
        wanted = weights.sort(dim=-1, descending=True, stable=True).indices[..., :k]
        surprises += not torch.equal(weights.topk(k, -1).indices, wanted)
        assert torch.equal(largest(weights, k), wanted)
    assert surprises > 5  # else this would show nothing


def test_the_values_of_top_have_gradients() -> None:
    weights = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    of = Rows(weights, torch.zeros(3, 5), 0, 3, regard.sparsemax())
    best = value(regard.Top(2), of)
    (found,) = torch.autograd.grad(best.values.sum(), weights)
    assert torch.equal(found, torch.zeros(3, 5, dtype=torch.float64).scatter(-1, best.indices, 1.0))


@pytest.mark.parametrize("size", [(3, 4), (1, 1), (11, 13), (20, 2), (5, 13)])
def test_a_map_is_averaged_by_cells(size: tuple[int, int]) -> None:
    of = rows()
    found = value(regard.Map(size), of)
    high, wide = min(size[0], QUERIES), min(size[1], KEYS)
    assert found.shape == (2, high, wide)
    for b in range(2):
        for r in range(high):
            inside = [i for i in range(QUERIES) if i * high // QUERIES == r and bool(of.alive[b, i])]
            for c in range(wide):
                keys = [j for j in range(KEYS) if j * wide // KEYS == c]
                total = sum(of.weights[b, i, j].item() for i in inside for j in keys)
                assert found[b, r, c].item() == pytest.approx(total / max(len(inside), 1), abs=1e-12)
    assert regard.Map(5).sizes(3, 9) == (3, 5)


@pytest.mark.parametrize(("count", "size"), [(7, 3), (3, 3), (10, 4), (1, 1), (0, 0), (5, 1)])
def test_bins_are_even(count: int, size: int) -> None:
    found = bins(count, size, torch.device("cpu"))
    assert found.tolist() == sorted(found.tolist())
    counts = torch.bincount(found, minlength=size).tolist()
    assert len(counts) == size
    assert not count or max(counts) - min(counts) <= 1


def test_the_log_sum_exp_is_of_scores_over_the_temperature() -> None:
    of = rows()
    wanted = torch.logsumexp(of.scores / 0.5, -1)
    found = value(regard.LogSumExp(), of)
    torch.testing.assert_close(found, wanted)
    assert found[1, 2] == -torch.inf
    other = Rows(of.weights, of.scores, 0, QUERIES, regard.sparsemax())
    torch.testing.assert_close(value(regard.LogSumExp(), other), torch.logsumexp(of.scores, -1))
    assert (
        value(regard.LogSumExp(), Rows(torch.zeros(2, 0, 5), torch.zeros(2, 0, 5), 0, 0, regard.softmax())).numel() == 0
    )
    empty = Rows(torch.zeros(2, 3, 0), torch.zeros(2, 3, 0), 0, 3, regard.softmax())
    assert value(regard.LogSumExp(), empty).tolist() == [[-torch.inf] * 3] * 2


def test_the_log_probability_of_a_hard_choice() -> None:
    query, key = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(2, 7, 3, dtype=torch.float64)
    mask = regard.lengths(torch.tensor([4, 7]), torch.tensor([5, 2]))
    see = [regard.LogProbability(), regard.Weights()]
    generator = torch.Generator().manual_seed(3)
    _, seen = regard.attend(
        query, key, key, normalise=regard.hard(sampled=True), mask=mask, see=see, generator=generator
    )
    softmax = regard.weigh(query, key, mask=mask)
    alive = mask.dense(2, 5, 7).any(-1)
    wanted = (seen.weights * softmax).sum(-1)
    torch.testing.assert_close(seen.log_probability[alive].exp(), wanted[alive])
    assert seen.log_probability[~alive].tolist() == [0, 0, 0]


def test_gradients_of_statistics() -> None:
    query = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    key = torch.randn(2, 5, 2, dtype=torch.float64, requires_grad=True)
    things = [regard.Entropy(), regard.Received(), regard.Map(2), regard.LogSumExp(), regard.Tile(range(2), range(3))]
    for normalise in (regard.softmax(), regard.sparsemax(), regard.entmax(1.5)):

        def seen(q: torch.Tensor, k: torch.Tensor, normalise: object = normalise) -> tuple[torch.Tensor, ...]:
            _, found = regard.attend(q, k, k, normalise=normalise, see=things, backend="definition")
            return tuple(found.values())

        assert gradcheck(seen, (query, key))


def test_where_rows_of_parts_stand() -> None:
    assert rows_before(regard.Entropy(), 5, 11) == 5
    assert rows_before(regard.Weights([7, 2, -1, 2]), 5, 11) == 1
    assert rows_before(regard.Tile(range(3, 6), range(1)), 4, 11) == 1
    assert rows_before(regard.Tile(range(3, 6), range(1)), 9, 11) == 3
    assert rows_before(regard.Tile(range(3, 6), range(1)), 1, 11) == 0
