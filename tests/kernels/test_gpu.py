"""The roads on a GPU: the definition in float64 on the CPU is the truth there too."""

import pytest
import torch

import regard

pytestmark = pytest.mark.gpu

SCORES = ["scaled dot", "cosine", "additive", "distance", "dictionary", "own"]
NORMALISERS = [regard.softmax(), regard.sparsemax(), regard.entmax(1.3), regard.entmax(4.0), regard.hard()]


def score_of(name: str, width: int, device: torch.device, dtype: torch.dtype) -> object:
    weight = torch.linspace(-1, 1, width, dtype=torch.float64).to(device, dtype)
    return {
        "scaled dot": regard.scaled_dot(),
        "cosine": regard.cosine(3.0),
        "additive": regard.additive(weight),
        "distance": regard.squared_distance(0.1),
        "dictionary": regard.soft_dictionary(),
        "own": lambda query, key: torch.sin(query @ key.mT),
    }[name]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("normalise", NORMALISERS, ids=lambda normalise: repr(normalise)[:24])
@pytest.mark.parametrize("road", ["definition", "tiled"])
def test_every_road_is_the_definition(name: str, normalise: object, road: str) -> None:
    device = torch.device("cuda")
    exact = [torch.randn(2, 3, n, w, dtype=torch.float64) for n, w in ((61, 13), (307, 13), (307, 7))]
    mask = regard.causal() & regard.lengths(torch.tensor([0, 211]))
    see = [regard.Entropy(), regard.LogSumExp(), regard.Received(), regard.Map(17), regard.Top(3), regard.Weights([5])]
    wanted, seen = regard.attend(
        *exact, score=score_of(name, 13, torch.device("cpu"), torch.float64), normalise=normalise, mask=mask,
        bias=regard.alibi(3), see=see, backend="definition",
    )  # fmt: skip
    sides = [side.to(device) for side in exact]
    ours, our_seen = regard.attend(
        *sides, score=score_of(name, 13, device, torch.float64), normalise=normalise,
        mask=regard.causal() & regard.lengths(torch.tensor([0, 211], device=device)),
        bias=regard.alibi(3), see=see, backend=road,
    )  # fmt: skip
    torch.testing.assert_close(ours.cpu(), wanted, atol=1e-9, rtol=1e-9)
    for thing in ("entropy", "logsumexp", "received", "map", "weights"):
        torch.testing.assert_close(getattr(our_seen, thing).cpu(), getattr(seen, thing), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("road", ["fused", "tiled", "definition"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("grouped", [False, True])
def test_empty_rows_and_nan_behind_masks(road: str, dtype: torch.dtype, grouped: bool) -> None:
    device = torch.device("cuda")
    sides = [
        torch.randn(2, h, 64, 64, device=device, dtype=dtype) for h in (4, 2 if grouped else 4, 2 if grouped else 4)
    ]
    for side in sides[1:]:
        side[0, :, 40:] = torch.nan
    leaves = [side.requires_grad_() for side in sides]
    mask = regard.lengths(torch.tensor([40, 0], device=device), torch.tensor([64, 64], device=device))
    context = regard.attend(*leaves, mask=mask, grouped=grouped, backend=road)
    assert context.isfinite().all()
    assert (context[1] == 0).all()
    slopes = torch.autograd.grad(context.float().sum(), leaves)
    assert all(slope.isfinite().all() for slope in slopes)
    assert all((slope[1] == 0).all() for slope in slopes)
    wide = [side.detach().double().nan_to_num().cpu() for side in sides]
    exact = regard.attend(*wide, mask=regard.lengths(torch.tensor([40, 0])), grouped=grouped, backend="definition")
    plain = torch.nn.functional.scaled_dot_product_attention(
        *(side[:1, :, : 64 if place == 0 else 40] for place, side in enumerate(sides)), enable_gqa=grouped
    )
    allowed = 2 * (plain.double().cpu() - exact[:1]).abs().max().item()
    assert (context.double().cpu() - exact).abs().max().item() <= max(allowed, 1e-5)


def test_gradients_of_the_additive_score() -> None:
    device = torch.device("cuda")
    exact = [torch.randn(3, n, 13, dtype=torch.float64, requires_grad=True) for n in (61, 307, 307)]
    weight = torch.randn(13, dtype=torch.float64, requires_grad=True)
    slopes = []
    for place, road in ((torch.device("cpu"), "definition"), (device, "tiled")):
        sides = [side.to(place) for side in exact]
        context = regard.attend(*sides, score=regard.additive(weight.to(place)), dropout=0.2, backend=road,
                                generator=torch.Generator().manual_seed(7))  # fmt: skip
        upstream = torch.linspace(-1, 1, context.numel(), dtype=torch.float64).reshape(context.shape).to(place)
        slopes.append(torch.autograd.grad(context, [*exact, weight], upstream))
    for wanted, got in zip(*slopes, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-9, rtol=1e-8)


def test_long_text_in_little_memory() -> None:
    device = torch.device("cuda")
    see = [regard.Entropy(), regard.Received(), regard.Map(256)]

    def both_ways(length: int) -> tuple[int, regard.Seen]:
        sides = [torch.randn(1, length, 64, device=device, requires_grad=True) for _ in range(3)]
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        context, seen = regard.attend(*sides, mask=regard.causal(), see=see)
        torch.autograd.grad(context.sum() + seen.entropy.sum(), sides)
        return torch.cuda.max_memory_allocated() - before, seen

    both_ways(256)  # libraries take room of their own at their first call
    taken, seen = both_ways(32768)
    assert taken < 2**30  # the matrix alone would be 4 GiB
    torch.testing.assert_close(seen.received.sum(), torch.tensor(32768.0, device=device), rtol=1e-4, atol=0)
