"""The tiled road is the definition: values, everything seen and every gradient, whatever the blocks."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import regard
from regard.core.biases import Bias
from regard.core.masks import Mask
from regard.kernels import recomputed, walk

B, H, G, Q, D, V, F = 2, 4, 2, 7, 5, 3, 6


@dataclass
class Choice:
    """One way to attend, with the tensors whose gradients are compared."""

    name: str
    what: object
    leaves: tuple[Tensor, ...] = ()


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def scores() -> list[Choice]:
    weight, query_weight, key_weight, bias = leaf(H, F), leaf(H, F, D), leaf(G, F, D), leaf(H, F)
    alone, matrix, scale, own = leaf(D), leaf(H, D, D), leaf(H), leaf(D)
    return [
        Choice("scaled dot", regard.scaled_dot()),
        Choice("learned scale", regard.dot(scale), (scale,)),
        Choice("cosine", regard.cosine(2.0)),
        Choice("bilinear", regard.bilinear(matrix), (matrix,)),
        Choice("distance", regard.squared_distance(0.3)),
        Choice("dictionary", regard.soft_dictionary()),
        Choice(
            "additive",
            regard.additive(weight, query_weight, key_weight, bias),
            (weight, query_weight, key_weight, bias),
        ),
        Choice("tanh", regard.additive(alone), (alone,)),
        Choice("own", lambda query, key: torch.sin((query * own) @ key.mT), (own,)),
    ]


def normalisers() -> list[Choice]:
    order = (1.2 + torch.rand(H, dtype=torch.float64)).requires_grad_()
    warmth = (0.5 + torch.rand(H, dtype=torch.float64)).requires_grad_()
    share = (0.5 + torch.rand(1, dtype=torch.float64)).requires_grad_()
    return [
        Choice("softmax", regard.softmax()),
        Choice("softmax 0.7", regard.softmax(0.7)),
        Choice("learned temperature", regard.softmax(warmth), (warmth,)),
        Choice("sparsemax", regard.sparsemax()),
        Choice("learned entmax", regard.entmax(order), (order,)),
        Choice("hard", regard.hard()),
        Choice("sampled", regard.hard(sampled=True)),
        Choice("straight through", regard.hard(sampled=True, estimate="straight-through")),
        Choice("gumbel", regard.gumbel(0.5)),
        Choice("edited", regard.edited(regard.softmax(), lambda weights: weights * share), (share,)),
    ]


def masks(keys: int) -> list[Choice]:
    return [
        Choice("all", None),
        Choice("causal", regard.causal()),
        Choice("lengths", regard.lengths(torch.tensor([0, keys // 2]), torch.tensor([3, 7]))),
        Choice("causal lengths", regard.causal() & regard.lengths(torch.tensor([keys - 2, 4]))),
        Choice("window or prefix", regard.window(2) | regard.prefix(1)),
        Choice("any", regard.allow(torch.rand(H, Q, keys) > 0.4)),
    ]


def biases(keys: int) -> list[Choice]:
    table, dense, hidden = leaf(H, 5), leaf(B, 1, Q, keys), leaf(H, 1, 1)
    return [
        Choice("none", None),
        Choice("relative", regard.relative(table), (table,)),
        Choice("dense", dense, (dense,)),
        Choice("alibi", regard.alibi(H)),
        Choice("sum", regard.relative(table) + dense, (table, dense)),
        Choice("closure", regard.rule(lambda i, j: torch.sin(i * 1.0 + j) * hidden), (hidden,)),
    ]


def sees(keys: int) -> list[Choice]:
    share = torch.rand(B, H, Q, dtype=torch.float64)
    everything = [
        regard.Entropy(), regard.LogSumExp(), regard.Received(), regard.Received(share), regard.Map((3, 4)),
        regard.Top(3), regard.Weights([1, -1, 1]), regard.Tile(range(2, 5), range(1, min(8, keys))),
    ]  # fmt: skip
    return [Choice("nothing", None), Choice("everything", everything)]


def tensors(seen: object) -> list[Tensor]:
    values: list[Tensor] = []
    for value in seen.values():  # type: ignore[attr-defined]
        values += list(value) if isinstance(value, tuple) else [value]
    return values


def compare(choices: list[Choice], keys: int, dropout: float) -> None:
    score, normalise, mask, bias, see = choices
    query, key, value = leaf(B, H, Q, D), leaf(B, G, keys, D), leaf(B, G, keys, V)
    leaves = (query, key, value, *(tensor for choice in choices for tensor in choice.leaves))
    answers = []
    for road in ("definition", "tiled"):
        generator = torch.Generator().manual_seed(5)
        answer = regard.attend(
            query, key, value, score=score.what, normalise=normalise.what, mask=mask.what, bias=bias.what,
            see=see.what, dropout=dropout, grouped=True, generator=generator, backend=road,
        )  # fmt: skip
        found = [answer] if see.what is None else [answer[0], *tensors(answer[1])]
        mixing = torch.Generator().manual_seed(3)
        loss = torch.zeros((), dtype=torch.float64)
        for tensor in found:
            if tensor.is_floating_point():
                part = tensor.where(tensor.isfinite(), 0.0)
                loss = loss + (part * torch.randn(part.shape, generator=mixing, dtype=part.dtype)).sum()
        answers.append((found, torch.autograd.grad(loss, leaves, allow_unused=True)))
    (found, slopes), (ours, our_slopes) = answers
    for wanted, got in zip(found, ours, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-9, rtol=1e-9, msg=lambda text: f"{names(choices)}: {text}")
    for wanted, got, of in zip(slopes, our_slopes, leaves, strict=True):
        zero = torch.zeros_like(of)
        torch.testing.assert_close(
            zero if got is None else got, zero if wanted is None else wanted, atol=1e-8, rtol=1e-8,
            msg=lambda text: f"{names(choices)}, a gradient: {text}",
        )  # fmt: skip


def names(choices: list[Choice]) -> str:
    return ", ".join(choice.name for choice in choices)


@pytest.mark.parametrize("cache", [64, 4000, 2**18])
@pytest.mark.parametrize("keys", [11, 307])
def test_tiled_is_the_definition(cache: int, keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "CACHE", cache)
    monkeypatch.setattr(recomputed, "CACHE", cache * 8)
    pick = random.Random(cache * keys)
    every: list[list[Choice]] = [scores(), normalisers(), masks(keys), biases(keys), sees(keys)]
    done: set[str] = set()
    for _ in range(60 if keys == 11 else 20):
        choices = [pick.choice(some) for some in every]
        compare(choices, keys, pick.choice([0.0, 0.3]))
        done |= {choice.name for choice in choices}
    if keys == 11:
        assert done >= {choice.name for some in every for choice in some}


@pytest.mark.parametrize("make", [regard.squared_distance, regard.soft_dictionary, regard.scaled_dot])
@pytest.mark.parametrize("offset", [0.0, 10.0, 100.0])
def test_distances_survive_an_offset(make: Callable[[], object], offset: float) -> None:
    query, key, value = torch.randn(31, 13) + offset, torch.randn(157, 13) + offset, torch.randn(157, 3)
    score = make()
    if score.__class__.__name__ == "Dot":
        query, key = query - offset, key - offset
    found = regard.attend(query, key, value, score=score, backend="tiled")
    wide = [side.double() for side in (query, key, value)]
    exact = regard.attend(*wide, score=score, backend="definition")
    torch.testing.assert_close(found.double(), exact, atol=1e-5, rtol=1e-5)


def test_differentiating_twice_says_what_to_do() -> None:
    query = torch.randn(3, 157, 7, requires_grad=True)
    context = regard.attend(query, query, query, score=regard.additive(torch.randn(7)), backend="tiled")
    (slope,) = torch.autograd.grad(context.sum(), query, create_graph=True)
    with pytest.raises(RuntimeError, match=r"cannot be differentiated twice. Remedy: backend='definition'"):
        slope.sum().backward()


def test_inputs_changed_in_place_are_noticed() -> None:
    query = torch.randn(157, 7)
    key = torch.randn(157, 7, requires_grad=True)
    moved = key * 1.0
    context = regard.attend(query, moved, moved, normalise=regard.sparsemax(), backend="tiled")
    moved.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        context.sum().backward()


@pytest.mark.parametrize("queries", [0, 1, 5])
@pytest.mark.parametrize("keys", [0, 1, 7])
@pytest.mark.parametrize("batch", [(), (3,), (0,)])
def test_nothing_and_one(queries: int, keys: int, batch: tuple[int, ...]) -> None:
    mask: Mask | None = regard.causal() if keys else None
    bias: Bias | None = None
    pairs = (regard.scaled_dot(), regard.squared_distance(), regard.soft_dictionary(), regard.additive(torch.ones(5)))
    for score, normalise in itertools.product(pairs, (regard.softmax(), regard.entmax(1.5), regard.hard())):
        query, key = (
            torch.randn(*batch, queries, 5, requires_grad=True),
            torch.randn(*batch, keys, 5, requires_grad=True),
        )
        see = [regard.Entropy(), regard.LogSumExp(), regard.Top(2), regard.Received(), regard.Map(4)]
        answers = []
        for road in ("definition", "tiled"):
            context, seen = regard.attend(
                query, key, key, score=score, normalise=normalise, mask=mask, bias=bias, see=see, backend=road
            )
            slopes = torch.autograd.grad(context.sum() + seen.entropy.sum(), (query, key))
            answers.append([context, *tensors(seen), *slopes])
        for wanted, got in zip(*answers, strict=True):
            torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("place", range(len(scores())))
def test_a_batch_that_only_the_values_have(place: int) -> None:
    choice = scores()[place]
    heads = (H,) if choice.name in ("learned scale", "bilinear", "additive") else ()
    query, key, value = leaf(*heads, Q, D), leaf(*heads, 137, D), leaf(B, *(1 for _ in heads), 137, V)
    if choice.name == "additive":
        weight = leaf(F)
        choice = Choice("additive", regard.additive(weight, leaf(F, D), leaf(F, D)), (weight,))
    answers = []
    for road in ("definition", "tiled"):
        context = regard.attend(query, key, value, score=choice.what, dropout=0.2, backend=road,
                                generator=torch.Generator().manual_seed(1))  # fmt: skip
        slopes = torch.autograd.grad(context.square().sum(), (query, key, value, *choice.leaves))
        answers.append((context, *slopes))
    for wanted, got in zip(*answers, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-9, rtol=1e-9)
