"""NaN and infinity: which tokens hold them, how they are taken out, and where they are put back."""

import pytest
import torch

import regard
from regard.core.finite import poison, unsound, without


def test_tokens_that_hold_nan_or_infinity() -> None:
    tensor = torch.tensor([[1.0, 2.0], [torch.nan, 2.0], [1.0, torch.inf], [-torch.inf, torch.nan]])
    assert unsound(tensor).tolist() == [False, True, True, True]
    assert without(tensor, unsound(tensor)).tolist() == [[1.0, 2.0], [0, 0], [0, 0], [0, 0]]
    assert unsound(torch.zeros(2, 3, 0)).shape == (2, 3)
    assert unsound(torch.ones(2, 3, 0)).dtype == torch.bool
    assert unsound(torch.zeros(2, 3, 0, device="meta")).device.type == "meta"


def test_what_is_taken_out_learns_nothing() -> None:
    tensor = torch.tensor([[1.0, 2.0], [torch.nan, 2.0]], requires_grad=True)
    without(tensor, unsound(tensor)).sum().backward()
    assert tensor.grad.tolist() == [[1, 1], [0, 0]]


def test_poisoned_places_pass_no_gradient_on() -> None:
    tensor = torch.ones(2, 3, requires_grad=True)
    poisoned = poison(tensor, torch.tensor([[True], [False]]))
    assert poisoned[0].isnan().all()
    assert poisoned[1].tolist() == [1, 1, 1]
    poisoned.sum().backward()
    assert tensor.grad.tolist() == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("road", ["definition", "tiled", "fused"])
@pytest.mark.parametrize("what", [torch.nan, torch.inf, -torch.inf])
def test_one_broken_value_breaks_the_rows_that_see_it(road: str, what: float) -> None:
    """Key 3 is broken; under a causal mask, queries 0 to 2 do not see it and 3 and later do."""
    query, key, value = (torch.randn(2, 7, 5, requires_grad=True) for _ in range(3))
    broken = value.detach().clone()
    broken[0, 3, 1] = what
    broken.requires_grad_()
    sound = regard.attend(query, key, value, mask=regard.causal(), backend=road)
    context = regard.attend(query, key, broken, mask=regard.causal(), backend=road)
    assert context[0, 3:].isnan().all()
    torch.testing.assert_close(context[0, :3], sound[0, :3])
    torch.testing.assert_close(context[1], sound[1], atol=10, rtol=10)
    assert torch.isfinite(context[1]).all()
    context[:, :3].sum().backward()
    for tensor in (query, key, broken):
        assert torch.isfinite(tensor.grad).all()


def test_pytorch_s_own_attention_leaks() -> None:
    """Why the roads do this at all: a NaN in a masked value comes through PyTorch's kernel."""
    query, key, value = torch.randn(1, 1, 2, 3), torch.randn(1, 1, 5, 3), torch.randn(1, 1, 5, 3)
    value[..., 4, :] = torch.nan
    mask = torch.tensor([True, True, True, True, False]).expand(2, 5)
    leaked = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert leaked.isnan().any()
    assert not regard.attend(query, key, value, mask=mask).isnan().any()


def test_without_a_mask_everything_is_seen() -> None:
    query, key = torch.randn(2, 5, 3), torch.randn(2, 7, 3)
    key[0, 3] = torch.nan
    context = regard.attend(query, key, torch.randn(2, 7, 3))
    assert context[0].isnan().all()
    assert not context[1].isnan().any()


@pytest.mark.parametrize("road", ["definition", "tiled"])
def test_what_is_seen_of_a_broken_row_is_nan_where_it_looks_and_zero_where_it_cannot(road: str) -> None:
    query, key = torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    key[0, 3, 1] = torch.nan
    things = [regard.Weights(), regard.Entropy(), regard.LogSumExp()]
    _, seen = regard.attend(query, key, torch.randn(2, 5, 7), mask=regard.causal(), see=things, backend=road)
    assert seen.weights[0, 3, :4].isnan().all()
    assert seen.weights[0, 3, 4:].tolist() == [0]
    assert seen.weights[0, 4].isnan().all()
    for value in (seen.entropy, seen.logsumexp):
        assert value.isnan().tolist() == [[False] * 3 + [True] * 2, [False] * 5]
    assert not seen.weights[0, :3].isnan().any()
    assert not seen.weights[1].isnan().any()
