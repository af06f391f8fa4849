"""The fused road keeps the contract around PyTorch's kernel: empty rows, NaN behind masks, broadcasting, groups."""

import pytest
import torch
from torch import Tensor

import regard
from regard.core.masks import Mask

BATCHES = [((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (5, 1)), ((2, 5, 3), (2, 5, 3))]


def masks() -> list[Mask | None]:
    return [
        None,
        regard.causal(),
        regard.causal("start"),
        regard.window(2),
        regard.prefix(4) & ~regard.window(1),
        regard.allow(torch.rand(7, 11) > 0.7),
        regard.allow(torch.zeros(7, 11, dtype=torch.bool)),
    ]


def both(*sides: Tensor, **options: object) -> None:
    leaves = [side.requires_grad_() for side in sides]
    answers = []
    for road in ("definition", "fused"):
        context = regard.attend(*sides, backend=road, **options)
        torch.manual_seed(1)
        answers.append((context, torch.autograd.grad(context, leaves, torch.randn_like(context))))
    torch.testing.assert_close(answers[1][0], answers[0][0], atol=1e-10, rtol=1e-9)
    for wanted, got in zip(answers[0][1], answers[1][1], strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-10, rtol=1e-9)


@pytest.mark.parametrize("place", range(len(masks())))
@pytest.mark.parametrize(("of_query", "of_key"), BATCHES)
def test_fused_is_the_definition(of_query: tuple[int, ...], of_key: tuple[int, ...], place: int) -> None:
    query = torch.randn(*of_query, 7, 5, dtype=torch.float64)
    key, value = (torch.randn(*of_key, 11, width, dtype=torch.float64) for width in (5, 3))
    both(query, key, value, mask=masks()[place])
    both(query, key, value, mask=masks()[place], bias=torch.randn(7, 11, dtype=torch.float64))


def test_grouped_heads_with_lengths_and_bias() -> None:
    query, key, value = (torch.randn(2, heads, n, 5, dtype=torch.float64) for heads, n in ((6, 7), (3, 11), (3, 11)))
    mask = regard.lengths(torch.tensor([0, 4])) & regard.allow(torch.rand(6, 7, 11) > 0.3)
    bias = torch.randn(6, 1, 11, dtype=torch.float64)
    both(query, key, value, mask=mask, grouped=True)
    both(query, key, value, mask=mask, bias=bias, grouped=True)
    both(query, key, value, bias=bias.masked_fill(torch.rand(6, 1, 11) > 0.5, -torch.inf), grouped=True)


@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("road", ["definition", "tiled", "fused", "auto"])
def test_nan_reaches_exactly_the_rows_that_may_see_it(where: str, number: float, road: str) -> None:
    sides = {name: torch.randn(2, 7, 5, dtype=torch.float64) for name in ("query", "key", "value")}
    clean = {name: side.clone().requires_grad_() for name, side in sides.items()}
    sides[where][1, 4, 2] = number
    dirty = {name: side.requires_grad_() for name, side in sides.items()}
    mask = regard.causal() & regard.lengths(torch.tensor([7, 6]))
    ours = regard.attend(**dirty, mask=mask, backend=road)
    wanted = regard.attend(**clean, mask=mask, backend="definition")
    lost = torch.zeros(2, 7, dtype=torch.bool)
    lost[1, 4 : 5 if where == "query" else 7] = True
    assert torch.equal(ours.isnan().all(-1), lost)
    torch.testing.assert_close(ours[~lost], wanted[~lost])
    upstream = torch.randn_like(wanted)
    slopes = torch.autograd.grad(ours, list(dirty.values()), upstream)  # from every row, the lost ones too
    exact = torch.autograd.grad(wanted, list(clean.values()), upstream.masked_fill(lost[..., None], 0.0))
    for name, got, want in zip(dirty, slopes, exact, strict=True):
        assert got.isfinite().all(), name
        keep = torch.ones(2, 7, dtype=torch.bool)
        keep[1, 4] = False  # the token itself: its gradient is zero
        torch.testing.assert_close(got[keep], want[keep])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_types_are_as_good_as_pytorch(dtype: torch.dtype) -> None:
    query, key, value = (torch.randn(3, 4, 31, 16).to(dtype) for _ in range(3))
    exact = regard.attend(query.double(), key.double(), value.double(), mask=regard.causal(), backend="definition")
    plain = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    for road in ("definition", "tiled", "fused"):
        ours = regard.attend(query, key, value, mask=regard.causal(), backend=road)
        assert ours.dtype == dtype
        error, allowed = ((found.double() - exact).abs().max().item() for found in (ours, plain))
        assert error <= max(2 * allowed, 1e-5)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_sides_that_float16_cannot_hold(temperature: float) -> None:
    """A learned scale multiplies the query, here beyond 65,504; the scores themselves are small."""
    query, key, value = torch.randn(3, 7, 5) * 1e4, torch.randn(3, 11, 5) * 1e-4, torch.randn(3, 11, 2)
    sides = [side.half() for side in (query, key, value)]
    bias = torch.randn(7, 11).half()
    for scale in (torch.tensor([-40.0, 17.0, 23.0]), torch.tensor([0.5, 1.0, -1.0])):
        exact, ours = (
            regard.attend(*of, score=regard.dot(scale.to(of[0].dtype)), normalise=regard.softmax(temperature),
                          bias=bias.to(of[0].dtype), backend=road)
            for of, road in (([side.double() for side in sides], "definition"), (sides, "fused"))
        )  # fmt: skip
        assert ours.dtype == torch.float16
        torch.testing.assert_close(ours.double(), exact, atol=2e-3, rtol=2e-3)
