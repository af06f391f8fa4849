"""The route table: which road, why, and what a road that was asked for by name says when it cannot serve."""

import pytest
import torch

import regard
from regard.kernels.route import FEW, SMALL, RefusedError

q, k, v = torch.randn(2, 3, 101, 8), torch.randn(2, 3, 131, 8), torch.randn(2, 3, 131, 5)
additive = regard.additive(torch.randn(8))

REFUSALS = [
    ({"score": additive}, "the score's pair form is TanhPair, not a dot product"),
    ({"normalise": regard.sparsemax()}, "the normaliser is EntmaxNormaliser, not softmax with a fixed temperature"),
    ({"normalise": regard.softmax(torch.ones(3))}, "the normaliser is Softmax, not softmax with a fixed temperature"),
    ({"see": regard.Entropy()}, "it gives no weights, and something is to be seen"),
    ({"dropout": 0.1}, "its dropout draws another mask than the other roads"),
    ({"bias": regard.alibi(3)}, "the bias is a rule, and it takes only tensors"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSALS)
def test_fused_refuses_by_name_and_auto_goes_on(options: dict[str, object], reason: str) -> None:
    with pytest.raises(RefusedError) as error:
        regard.attend(q, k, v, backend="fused", **options)
    assert str(error.value) == (
        f"backend: 'fused' cannot serve this call: {reason}. Remedy: backend='auto', which takes "
        f"{regard.route(q, k, v, **options).road!r} here."
    )
    assert ("fused", reason) in regard.route(q, k, v, **options).passed
    assert regard.attend(q, k, v, **options) is not None


def test_auto_takes_the_road_that_it_names() -> None:
    assert regard.route(q, k, v).road == "fused"
    assert regard.route(q, k, v, mask=regard.causal() & regard.lengths(torch.tensor([3, 7]))).road == "fused"
    assert regard.route(q, k, v, score=additive).road == "tiled"
    assert regard.route(q[..., :5, :], k[..., :7, :], v[..., :7, :], score=additive).road == "definition"
    assert regard.route(q[:1, :1, :1], k, v, score=additive).road == "definition"


def test_what_is_small_goes_by_the_definition() -> None:
    width = 2
    several = SMALL // (width * 64)
    made = [torch.empty(n, width) for n in (64, several, several + 1)]
    score = regard.additive(torch.randn(width))
    assert regard.route(made[0], made[1], made[1], score=score).road == "definition"
    assert regard.route(made[0], made[2], made[2], score=score).road == "tiled"
    one, many = torch.empty(1, width), torch.empty(FEW // width + 1, width)
    assert regard.route(one, many[1:], many[1:], score=score).road == "definition"
    assert regard.route(one, many, many, score=score).road == "tiled"


def test_a_mask_that_would_be_held_whole_goes_by_tiles() -> None:
    long = torch.empty(1, 1, 20011, 2)
    route = regard.route(long, long, long, mask=regard.window(256))
    assert route.road == "tiled"
    assert route.passed == (("fused", "its mask and bias would be held whole, 400,440,121 numbers"),)
    assert regard.route(long, long, long, mask=regard.causal()).road == "fused"
    assert regard.route(long, long, long, mask=regard.lengths(torch.tensor([7]))).road == "fused"


def test_meta_tensors_and_transforms_go_by_the_definition() -> None:
    meta = torch.empty(2, 307, 7, device="meta")
    score = regard.additive(torch.empty(7, device="meta"))
    assert regard.route(meta, meta, meta, score=score).road == "definition"
    assert regard.attend(meta, meta, meta, score=score).shape == (2, 307, 7)
    with pytest.raises(RefusedError, match=r"a torch\.func transform is active"):
        torch.func.vmap(lambda x: regard.attend(x, x, x, score=additive, backend="tiled"))(q[0])


def test_a_route_reads_as_a_sentence() -> None:
    text = str(regard.route(q, k, v, score=additive))
    assert text == (
        "tiled: any score and any normaliser, a tile at a time\n"
        "  not fused: the score's pair form is TanhPair, not a dot product"
    )


def test_what_attend_refuses_route_refuses_with_the_same_words() -> None:
    texts = []
    for call in (regard.attend, regard.route):
        with pytest.raises(ValueError) as error:
            call(q, k, v, backend="fuse")
        texts.append(str(error.value))
    assert texts == ["backend: came 'fuse'. Did you mean 'fused'? Known: auto, definition, fused, tiled."] * 2


@pytest.mark.parametrize("empty", [(0, 3, 7, 5), (2, 0, 7, 5), (2, 3, 0, 5), (2, 3, 7, 0)])
def test_nothing_is_left_to_the_definition(empty: tuple[int, ...]) -> None:
    side = torch.empty(empty)
    assert regard.route(side, side, side).road != "fused"
    assert regard.attend(side, side, side).shape == empty
