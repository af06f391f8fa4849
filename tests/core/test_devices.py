"""Everything is made where the keys are: on the meta device, no operation may give a tensor of any other."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from regard.core.additive import position_terms

META = torch.device("meta")


class OnMeta(TorchDispatchMode):
    def __torch_dispatch__(
        self,
        function: Callable[..., object],
        types: object,
        arguments: tuple[object, ...] = (),
        options: dict[str, object] | None = None,
    ) -> object:
        made = function(*arguments, **options or {})
        for tensor in made if isinstance(made, tuple | list) else [made]:
            assert not isinstance(tensor, Tensor) or tensor.device == META, f"{function} made one on {tensor.device}"
        return made


@pytest.fixture(autouse=True)
def on_meta() -> Iterator[None]:
    with OnMeta():
        yield


def sides(device: torch.device = META) -> list[Tensor]:
    return [torch.randn(2, 3, n, width, device=device) for n, width in ((5, 4), (7, 4), (7, 11))]


def parity(query: Tensor, key: Tensor) -> Tensor:
    return (query + key) % 2 == 0


def away(query: Tensor, key: Tensor) -> Tensor:
    return -(query - key).abs().float()


IDS = torch.tensor([0, 0, 1, 1, 1, 2, 2])
TENSOR = regard.allow(torch.rand(5, 7) > 0.5)
MASKS = [
    regard.causal(),
    regard.causal("start"),
    regard.window(2),
    regard.window(1, right=0),
    regard.prefix(3),
    regard.prefix(0),
    regard.lengths(torch.tensor([4, 7])),
    regard.lengths(torch.tensor([4, 7]), torch.tensor([5, 3])),
    regard.documents(IDS, IDS[:5]),
    TENSOR,
    regard.allow(parity),
    regard.causal() & regard.lengths(torch.tensor([4, 7])) | ~regard.prefix(2),
]
BIASES: list[Callable[[], object]] = [
    lambda: torch.randn(5, 7, device=META),
    lambda: regard.alibi(3),
    lambda: regard.alibi(torch.randn(3, device=META)),
    lambda: regard.relative(torch.randn(3, 9, device=META)),
    lambda: regard.t5_buckets(torch.randn(3, 32, device=META)),
    lambda: regard.rule(away),
    lambda: regard.alibi(3) + regard.relative(torch.randn(3, 9, device=META)),
]
NORMALISERS = [
    regard.softmax(0.5),
    regard.sparsemax(),
    regard.entmax(1.3),
    regard.hard(),
    regard.hard(sampled=True),
    regard.gumbel(0.5),
]
SEE = [regard.Weights([1, 0, 1]), regard.Entropy(), regard.Received(), regard.Top(3), regard.Map(2), regard.LogSumExp()]


@pytest.mark.parametrize("road", ["definition", "fused"])
@pytest.mark.parametrize("mask", MASKS, ids=repr)
def test_masks(mask: object, road: str) -> None:
    assert regard.attend(*sides(), mask=mask, backend=road).device == META


@pytest.mark.parametrize("make", BIASES, ids=["tensor", "alibi", "slopes", "relative", "buckets", "rule", "sum"])
def test_biases(make: Callable[[], object]) -> None:
    assert regard.attend(*sides(), bias=make(), backend="definition").device == META


@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
def test_normalisers_dropout_and_what_is_seen(normalise: object) -> None:
    context, seen = regard.attend(
        *sides(), normalise=normalise, mask=regard.causal(), dropout=0.2, see=SEE, backend="definition"
    )
    assert context.device == META
    for value in (
        seen.weights,
        seen.entropy,
        seen.received,
        seen.top.values,
        seen.top.indices,
        seen.map,
        seen.logsumexp,
    ):
        assert value.device == META


def test_masks_and_biases_turned_around() -> None:
    """Co-attention asks for both directions of what depends on position."""
    query, key, value = sides()
    found = regard.coattend(
        query, key, torch.randn(2, 3, 5, 11, device=META), value, mask=regard.causal(), bias=regard.alibi(3)
    )
    assert [side.device for side in found[:2]] == [META, META]


def test_whole_masks() -> None:
    assert regard.causal().dense(5, 7, device=META).device == META
    assert regard.prefix(99).dense(5, 7, device="meta").device == META
    assert TENSOR.dense(5, 7, device="meta").device == META


def test_terms_of_positions() -> None:
    for term in position_terms(torch.randn(4, 3, device=META), 5, 7):
        assert term.device == META


def test_what_is_drawn() -> None:
    scores = torch.randn(2, 5, 7, device=META)
    for normalise in (regard.hard(sampled=True), regard.gumbel(), regard.gumbel(straight_through=True)):
        assert normalise(scores).device == META
    assert regard.gumbel().drawn(torch.arange(2, device=META), 5, None).seed.device == META
    assert regard.hard(sampled=True).drawn(torch.arange(2, device=META), 5, None).chosen.device == META
