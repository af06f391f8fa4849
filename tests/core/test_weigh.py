"""The definition against PyTorch's own attention in float64, and its gradients, first and second."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import scaled_dot_product_attention as pytorch

import regard
from regard.core.hard import Hard
from regard.core.normalisers import Normaliser
from regard.core.problem import prepare
from regard.core.weigh import attended_rows
from tests.cases import Kinds, draw

B, H, N, M, D, E = 2, 3, 5, 7, 11, 13


def three(heads: int = H, key_heads: int = H) -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((B, heads, N, D), (B, key_heads, M, D), (B, key_heads, M, E))
    query, key, value = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    return query, key, value


@pytest.mark.parametrize("road", ["definition", "tiled", "fused", "auto"])
def test_scaled_dot_product_attention_is_pytorch_s(road: str) -> None:
    query, key, value = three()
    found = regard.attend(query, key, value, backend=road)
    torch.testing.assert_close(found, pytorch(query, key, value))
    causal = regard.attend(query, key, value, mask=regard.causal("start"), backend=road)
    torch.testing.assert_close(causal, pytorch(query, key, value, is_causal=True))
    mask = torch.rand(B, 1, N, M) < 0.7
    mask[..., 0] = True
    torch.testing.assert_close(
        regard.attend(query, key, value, mask=mask, backend=road), pytorch(query, key, value, attn_mask=mask)
    )
    bias = torch.randn(H, N, M, dtype=torch.float64)
    torch.testing.assert_close(
        regard.attend(query, key, value, bias=bias, backend=road), pytorch(query, key, value, attn_mask=bias)
    )
    scaled = regard.attend(query, key, value, score=regard.dot(0.3), backend=road)
    torch.testing.assert_close(scaled, pytorch(query, key, value, scale=0.3))


@pytest.mark.parametrize("road", ["definition", "tiled", "fused", "auto"])
def test_grouped_heads_are_pytorch_s(road: str) -> None:
    query, key, value = three(6, 2)
    found = regard.attend(query, key, value, grouped=True, backend=road)
    torch.testing.assert_close(found, pytorch(query, key, value, enable_gqa=True))
    shared = value[:, :1]
    found = regard.attend(query, key, shared, grouped=True, backend=road)
    torch.testing.assert_close(found, pytorch(query, key, shared.expand_as(value), enable_gqa=True))


@pytest.mark.parametrize("road", ["definition", "tiled", "fused", "auto"])
def test_gradients_are_pytorch_s(road: str) -> None:
    query, key, value = (tensor.requires_grad_() for tensor in three())
    bias = torch.randn(H, N, M, dtype=torch.float64, requires_grad=True)
    push = torch.randn(B, H, N, E, dtype=torch.float64)
    held = (query, key, value, bias)
    ours = torch.autograd.grad((regard.attend(query, key, value, bias=bias, backend=road) * push).sum(), held)
    theirs = torch.autograd.grad((pytorch(query, key, value, attn_mask=bias) * push).sum(), held)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_weigh_is_softmax_of_the_scores() -> None:
    query, key, _ = three()
    wanted = torch.softmax(query @ key.mT / D**0.5, -1)
    torch.testing.assert_close(regard.weigh(query, key), wanted)
    shared = regard.weigh(torch.randn(B, 6, N, D), torch.randn(B, 2, M, D), grouped=True)
    assert shared.shape == (B, 6, N, M)
    assert regard.weigh(query[0, 0], key[0, 0]).shape == (N, M)


def test_a_bias_widens_nothing() -> None:
    query, key, value = (tensor.float() for tensor in three())
    context, seen = regard.attend(query, key, value, bias=torch.randn(N, M, dtype=torch.float64), see=regard.Weights())
    assert context.dtype == seen.weights.dtype == torch.float32
    half = regard.attend(query.half(), key.half(), value.half(), dropout=0.3, backend="definition")
    assert half.dtype == torch.float16


@pytest.mark.parametrize("normalise", [regard.softmax(), regard.hard(sampled=True), regard.gumbel()], ids=repr)
def test_blocks_of_rows_and_columns_are_those_of_the_whole(normalise: Normaliser) -> None:
    """With what is drawn, for dropout too, and columns left out that no row of the block can reach."""
    query, key, value = three()
    things = [regard.Entropy(), regard.LogProbability() if isinstance(normalise, Hard) else regard.LogSumExp()]
    problem = prepare(
        query, key, value, score=regard.dot(), normalise=normalise, mask=regard.window(1), dropout=0.4, see=things,
        generator=torch.Generator().manual_seed(5),
    )  # fmt: skip
    whole, seen = attended_rows(problem, range(N), range(M))
    for rows in (range(3), range(3, 4), range(4, 5)):
        part, found = attended_rows(problem, rows, problem.span(rows))
        torch.testing.assert_close(part, whole[..., rows.start : rows.stop, :])
        for (one,), (other,) in zip(found, seen, strict=True):
            torch.testing.assert_close(one, other[..., rows.start : rows.stop])


def test_only_reachable_columns_are_made() -> None:
    query, key, value = three()
    problem = prepare(query, key, value, score=regard.dot(), normalise=regard.softmax(), mask=regard.window(1))
    assert problem.span(range(4, 5)) == range(5, 7)


def test_weights_of_another_type_are_taken() -> None:
    query, key, value = (tensor.float() for tensor in three())
    for dtype in (torch.float64, torch.bfloat16):
        found = regard.attend(query, key, value, normalise=lambda scores, mask, to=dtype: scores.softmax(-1).to(to))
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, pytorch(query, key, value), rtol=2e-2, atol=2e-2)


def test_gather_is_the_weighted_sum() -> None:
    weights, (_, _, value) = torch.rand(B, H, N, M, dtype=torch.float64), three()
    torch.testing.assert_close(regard.gather(weights, value), weights @ value)
    many = torch.rand(B, 6, N, M, dtype=torch.float64)
    few = value[:, :2]
    wanted = many @ few.repeat_interleave(3, 1)
    torch.testing.assert_close(regard.gather(many, few, grouped=True), wanted)
    half = regard.gather(weights.float(), value.bfloat16())
    assert half.dtype == torch.bfloat16
    of_half = regard.gather(weights.bfloat16(), value.float())
    torch.testing.assert_close(of_half, weights.bfloat16().float() @ value.float())


def test_a_key_of_weight_zero_adds_nothing_whatever_it_holds() -> None:
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], requires_grad=True)
    value = torch.tensor([[1.0], [2.0], [torch.nan]])
    context = regard.gather(weights, value)
    assert context[0].item() == 1.5
    assert context[1].isnan().all()
    context[0].sum().backward()
    assert torch.isfinite(weights.grad).all()


def test_multi_head_attention_is_pytorch_s() -> None:
    """With the same parameters, split into heads by hand, float64."""
    layer = torch.nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    tokens = torch.randn(2, 7, 12, dtype=torch.float64)
    wanted, weights = layer(tokens, tokens, tokens, average_attn_weights=False)
    sides = torch.nn.functional.linear(tokens, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1)
    query, key, value = (side.unflatten(-1, (3, 4)).transpose(1, 2) for side in sides)
    context, seen = regard.attend(query, key, value, see=regard.Weights())
    torch.testing.assert_close(seen.weights, weights)
    torch.testing.assert_close(layer.out_proj(context.transpose(1, 2).flatten(2)), wanted)


NORMALISERS = [
    "softmax", "softmax at a temperature", "softmax at a learned temperature", "sparsemax", "entmax",
    "entmax of a learned order", "gumbel", "given", "edited", "own",
]  # fmt: skip


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("score", ["scaled dot", "additive", "cosine with a learned scale", "squared distance"])
def test_gradcheck_of_the_definition(score: str, normaliser: str) -> None:
    """Of every leaf, through context, entropy and what keys receive; first and second."""
    kinds = Kinds(
        scores=(score,), normalisers=(normaliser,), masks=("tensor", "causal"), biases=("relative", "tensor"),
        dtypes=(torch.float64,), batches=((2,), ()), queries=(3,), keys=(2, 3), orders=(1.0, 1.3, 1.5, 2.0, 2.2),
        grouped=(False,), wild=0.0, long=0.0, dropout=0.3,
    )  # fmt: skip
    case = draw(7, kinds)
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in case.leaves().items()}

    def results(*held: Tensor) -> tuple[Tensor, ...]:
        other = case.with_leaves(dict(zip(leaves, held, strict=True)))
        context, seen = other.attend("definition", [regard.Entropy(), regard.Received()])
        return context, seen.entropy, seen.received

    assert gradcheck(results, tuple(leaves.values()), fast_mode=True)
    assert gradgradcheck(results, tuple(leaves.values()), fast_mode=True, atol=1e-4)


def test_the_default_is_scaled_dot_and_softmax() -> None:
    query, key, value = three()
    wanted = regard.attend(query, key, value, score=regard.scaled_dot(), normalise=regard.softmax())
    torch.testing.assert_close(regard.attend(query, key, value), wanted)


@pytest.mark.parametrize("queries", [0, 1, 5])
@pytest.mark.parametrize("keys", [0, 1])
def test_lengths_zero_and_one(queries: int, keys: int) -> None:
    query, key = torch.randn(2, queries, 3), torch.randn(2, keys, 3)
    things = [regard.Weights(), regard.Entropy(), regard.Received(), regard.Top(2), regard.Map(3), regard.LogSumExp()]
    for normalise in (regard.softmax(), regard.sparsemax(), regard.entmax(1.5), regard.hard(), regard.gumbel()):
        context, seen = regard.attend(query, key, key, normalise=normalise, see=things)
        assert torch.equal(context, key.expand(2, queries, 3) if keys else torch.zeros(2, queries, 3))
        assert torch.equal(seen.weights, torch.ones(2, queries, keys))
        assert seen.entropy.abs().sum() == 0
        assert torch.equal(seen.received, torch.full((2, keys), float(queries)))
        assert seen.top.indices[..., 0].tolist() == [[0 if keys else -1] * queries] * 2
        assert seen.map.shape == (2, min(3, queries), keys)
