"""Biases against their formulas: T5's buckets as published, ALiBi's slopes, distances, rules and sums."""

import math
from collections.abc import Callable

import pytest
import torch

import regard
from regard.core.biases import Dense, Turned, alibi_slopes, as_bias
from tests.plain import t5_bucket

DEVICE = torch.device("cpu")


def whole(bias: regard.core.biases.Bias, *shape: int) -> torch.Tensor:
    return bias.tile(range(shape[-2]), range(shape[-1]), torch.Size(shape), DEVICE)


# What T5 gives its relative positions with 32 buckets and a distance of 128: of each bucket, the nearest distance.
PUBLISHED = {
    True: [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91],
    False: [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113],
}


@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_buckets_begin_where_the_published_ones_do(bidirectional: bool) -> None:
    bias = regard.t5_buckets(torch.arange(32.0), bidirectional=bidirectional)
    found = bias.bucket(-torch.arange(300)).tolist()
    begins = [found.index(bucket) for bucket in range(16 if bidirectional else 32)]
    assert begins == PUBLISHED[bidirectional]
    assert found == sorted(found)
    ahead = bias.bucket(torch.arange(1, 300)).tolist()
    assert ahead == ([16 + bucket for bucket in found[1:]] if bidirectional else [0] * 299)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (4, 128), (16, 64)])
def test_t5_buckets_are_a_plain_function(bidirectional: bool, buckets: int, farthest: int) -> None:
    bias = regard.t5_buckets(torch.arange(float(buckets)), bidirectional=bidirectional, farthest=farthest)
    ahead = range(-400, 401)
    wanted = [t5_bucket(distance, buckets, bidirectional, farthest) for distance in ahead]
    assert bias.bucket(torch.tensor(ahead)).tolist() == wanted


def test_t5_bias_is_the_table_at_the_bucket() -> None:
    table = torch.randn(3, 32, dtype=torch.float64)
    found = whole(regard.t5_buckets(table), 3, 5, 7)
    for i in range(5):
        for j in range(7):
            bucket = t5_bucket(j - i - 2, 32, True, 128)  # the last query stands at the last key
            assert torch.equal(found[:, i, j], table[:, bucket])
    start = whole(regard.t5_buckets(table, align="start"), 3, 5, 7)
    assert torch.equal(start[:, 4, 1], table[:, t5_bucket(1 - 4, 32, True, 128)])


def test_alibi_s_slopes_are_the_paper_s() -> None:
    """For eight heads 1/2 to 1/256; for twelve those, and every second one of sixteen's."""
    torch.testing.assert_close(alibi_slopes(8), 2.0 ** -torch.arange(1.0, 9))
    sixteen = [2 ** (-0.5 * head) for head in range(1, 17)]
    torch.testing.assert_close(alibi_slopes(16), torch.tensor(sixteen))
    torch.testing.assert_close(alibi_slopes(12), torch.tensor([2.0**-h for h in range(1, 9)] + sixteen[0:8:2]))
    assert alibi_slopes(1).tolist() == [2.0**-8]
    for heads in range(1, 40):
        assert len(alibi_slopes(heads)) == heads


def test_alibi_is_a_penalty_by_distance() -> None:
    found = whole(regard.alibi(2), 2, 3, 5)
    slopes = [2.0**-4, 2.0**-8]
    wanted = [[[-s * abs(j - i - 2) for j in range(5)] for i in range(3)] for s in slopes]
    torch.testing.assert_close(found, torch.tensor(wanted))
    assert whole(regard.alibi(torch.tensor(0.5), align="start"), 3, 5)[2].tolist() == [-1.0, -0.5, 0, -0.5, -1.0]


def test_alibi_keeps_single_steps_in_half_types() -> None:
    """A thousand keys away, bfloat16 knows no distance but multiples of four: the product is made in float32."""
    slopes = torch.tensor([0.5], dtype=torch.bfloat16)
    found = whole(regard.alibi(slopes), 1, 1, 1003)[0, 0]
    assert torch.equal(found, -0.5 * torch.arange(1002, -1, -1.0))


def test_relative_is_the_table_at_the_distance() -> None:
    table = torch.randn(2, 7)
    found = whole(regard.relative(table), 2, 11, 13)
    for i in range(11):
        for j in range(13):
            place = max(-3, min(3, j - i - 2)) + 3
            assert torch.equal(found[:, i, j], table[:, place])
    assert whole(regard.relative(torch.tensor([1.0, 2.0, 3.0]), align="start"), 2, 3).tolist() == [[2, 3, 3], [1, 2, 3]]
    assert whole(regard.relative(torch.tensor([5.0])), 2, 3).tolist() == [[5.0] * 3] * 2


def test_a_rule_gets_positions_and_its_tensors() -> None:
    weight = torch.randn(2, dtype=torch.float64, requires_grad=True)
    bias = regard.rule(lambda i, j, w: w[:, None, None] * (i - 2 * j), weight)
    tile = bias.tile(range(3, 5), range(1, 4), torch.Size((2, 7, 11)), DEVICE)
    wanted = [[[w * (i - 2 * j) for j in range(1, 4)] for i in range(3, 5)] for w in weight.tolist()]
    torch.testing.assert_close(tile, torch.tensor(wanted, dtype=torch.float64))
    assert torch.autograd.grad(tile.sum(), weight)[0].shape == (2,)
    assert torch.equal(bias.mapped(lambda tensor, own: tensor * 2).tensors[0], 2 * weight)


@pytest.mark.parametrize("shape", [(), (7,), (1,), (5, 7), (5, 1), (1, 7), (3, 1, 7), (2, 3, 5, 7), (2, 1, 1, 1)])
def test_any_tensor_that_broadcasts(shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape)
    bias = as_bias(tensor)
    assert torch.equal(whole(bias, 2, 3, 5, 7).expand(2, 3, 5, 7), tensor.expand(2, 3, 5, 7))
    tile = bias.tile(range(1, 4), range(2, 7), torch.Size((2, 3, 5, 7)), DEVICE)
    assert torch.equal(tile.expand(2, 3, 3, 5), tensor.expand(2, 3, 5, 7)[..., 1:4, 2:7])


def test_biases_add_up() -> None:
    tensor, table = torch.randn(5, 7), torch.randn(3, 5)
    total = regard.relative(table) + tensor + regard.alibi(3)
    wanted = whole(regard.relative(table), 3, 5, 7) + tensor + whole(regard.alibi(3), 3, 5, 7)
    torch.testing.assert_close(whole(total, 3, 5, 7), wanted)
    half = regard.alibi(torch.tensor(1.0, dtype=torch.bfloat16)) + torch.tensor(1e-3, dtype=torch.bfloat16)
    assert whole(half, 1, 1001).dtype == torch.float32


@pytest.mark.parametrize(
    "bias",
    [
        Dense(torch.randn(3, 5, 7)),
        regard.relative(torch.randn(3, 9)),
        regard.alibi(torch.rand(3)),
        regard.t5_buckets(torch.randn(3, 8)),
        regard.rule(lambda i, j, w: w * (i - j), torch.randn(3, 1, 1)),
        regard.alibi(torch.rand(3)) + torch.randn(3, 5, 7),
        Turned(regard.relative(torch.randn(3, 9))),
        regard.relative(torch.randn(3, 3), align="start"),
        regard.alibi(torch.rand(3), align="start"),
        regard.t5_buckets(torch.randn(3, 8), bidirectional=False, farthest=5, align="start"),
    ],
    ids=lambda bias: type(bias).__name__,
)
def test_parts_and_changes(bias: regard.core.biases.Bias) -> None:
    shape = (3, 5, 7)
    everything = whole(bias, *shape)
    for rows in (range(5), range(2, 4), range(3, 3)):
        for columns in (range(7), range(1, 6), range(7, 7)):
            tile = bias.tile(rows, columns, torch.Size(shape), DEVICE)
            assert torch.equal(tile, everything[..., rows.start : rows.stop, columns.start : columns.stop])
    turned = Turned(bias).tile(range(1, 6), range(2, 4), torch.Size((3, 7, 5)), DEVICE)
    assert torch.equal(turned, everything[..., 2:4, 1:6].mT)
    events: list[bool] = []

    def doubled(tensor: torch.Tensor, own: int) -> torch.Tensor:
        events.append(own == tensor.dim())
        return tensor * 2

    torch.testing.assert_close(whole(bias.mapped(doubled), *shape), 2 * everything)
    assert events
    assert all(events), "no dimension of a bias is a batch of its own"


def test_a_number_of_heads_stands_for_their_slopes() -> None:
    counted, given = regard.alibi(6, align="start"), regard.alibi(alibi_slopes(6), align="start")
    assert torch.equal(whole(counted, 6, 5, 7), whole(given, 6, 5, 7))
    assert counted.mapped(lambda tensor, own: tensor * 2) is counted, "it holds no tensor"
    assert whole(regard.alibi(1), 1, 1, 3).tolist() == [[[-2 / 256, -1 / 256, 0]]], "one head's slope is 2^-8"


def test_gradients_reach_every_table() -> None:
    query, key = torch.randn(3, 5, 2, dtype=torch.float64), torch.randn(3, 7, 2, dtype=torch.float64)
    table = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    buckets = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    slopes = torch.rand(3, dtype=torch.float64, requires_grad=True)
    dense = torch.randn(3, 1, 7, dtype=torch.float64, requires_grad=True)

    def context(*held: torch.Tensor) -> torch.Tensor:
        bias = regard.relative(held[0]) + regard.t5_buckets(held[1]) + regard.alibi(held[2]) + held[3]
        return regard.attend(query, key, key, bias=bias, backend="definition")

    assert torch.autograd.gradcheck(context, (table, buckets, slopes, dense))


@pytest.mark.parametrize("make", [regard.relative, lambda table: regard.t5_buckets(table, bidirectional=False)])
def test_pairs_add_up_in_the_table_s_gradient(make: Callable[[torch.Tensor], regard.core.biases.Bias]) -> None:
    """In bfloat16, 256 and one are 256: added up in it, the thousands of pairs of one distance would be lost."""
    tables = [torch.zeros(2, 5, dtype=dtype, requires_grad=True) for dtype in (torch.bfloat16, torch.float64)]
    for table in tables:
        whole(make(table), 2, 61, 67).sum().backward()
    torch.testing.assert_close(tables[0].grad.double(), tables[1].grad, rtol=2**-8, atol=0)
    assert tables[1].grad.max() > 1000


def test_a_far_bucket_needs_a_logarithm() -> None:
    """By the formula: 8 + 8 log(d/8)/log(16), rounded down, for 16 buckets a side."""
    bias = regard.t5_buckets(torch.zeros(32))
    for distance in range(8, 128):
        wanted = min(8 + int(8 * math.log(distance / 8) / math.log(16)), 15)
        assert bias.bucket(torch.tensor([-distance])).item() == wanted
