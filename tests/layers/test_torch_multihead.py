"""MultiHeadAttention against torch.nn.MultiheadAttention: output, weights and every gradient, in float64."""

import pytest
import torch
from torch import Tensor, nn

from regard.core.see import Weights
from regard.core.sequences import lengths
from regard.core.windows import causal
from regard.layers import MultiHeadAttention

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7
WIDTH, KEY_WIDTH, VALUE_WIDTH = 33, 13, 17

NAMES = ("query", "key", "value")


def pair(**options: object) -> tuple[nn.MultiheadAttention, MultiHeadAttention]:
    """PyTorch's layer, with biases that are not zero, and ours of the same parameters."""
    theirs = nn.MultiheadAttention(WIDTH, HEADS, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return theirs, MultiHeadAttention.from_torch(theirs)


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def turned(theirs: nn.MultiheadAttention, tensor: Tensor) -> Tensor:
    return tensor if theirs.batch_first else tensor.transpose(0, 1)


def gradients(theirs: nn.MultiheadAttention) -> dict[str, Tensor]:
    """PyTorch's gradients by our names."""
    if theirs._qkv_same_embed_dim:
        weights = theirs.in_proj_weight.grad.chunk(3)
    else:
        weights = [getattr(theirs, f"{name[0]}_proj_weight").grad for name in NAMES]
    found = {f"{name}.weight": weight for name, weight in zip(NAMES, weights, strict=True)}
    found["output.weight"] = theirs.out_proj.weight.grad
    if theirs.in_proj_bias is not None:
        found |= {f"{n}.bias": b for n, b in zip(NAMES, theirs.in_proj_bias.grad.chunk(3), strict=True)}
        found["output.bias"] = theirs.out_proj.bias.grad
    return found


def same(theirs: nn.MultiheadAttention, ours: MultiHeadAttention, inputs: list[Tensor], hidden: dict, mask) -> None:
    """Output, weights and the gradients of inputs and parameters are the same."""
    query, key, value = inputs if len(inputs) == 3 else inputs * 3
    wanted, wanted_weights = theirs(
        turned(theirs, query), turned(theirs, key), turned(theirs, value), average_attn_weights=False, **hidden
    )
    wanted = turned(theirs, wanted)
    given = (query,) if len(inputs) == 1 else (query, key, value)
    output, seen = ours(*given, mask=mask, see=Weights())
    close(output, wanted)
    close(seen.weights, wanted_weights)
    toward, toward_weights = torch.randn_like(wanted), torch.randn_like(wanted_weights)
    ((wanted * toward).sum() + (wanted_weights * toward_weights).sum()).backward()
    by_torch = [tensor.grad.clone() for tensor in inputs]
    for tensor in inputs:
        tensor.grad = None
    ((output * toward).sum() + (seen.weights * toward_weights).sum()).backward()
    for tensor, gradient in zip(inputs, by_torch, strict=True):
        close(tensor.grad, gradient)
    of_parameters = gradients(theirs)
    assert of_parameters.keys() == dict(ours.named_parameters()).keys()
    for name, parameter in ours.named_parameters():
        close(parameter.grad, of_parameters[name])


def close(ours: Tensor, theirs: Tensor) -> None:
    assert torch.isfinite(theirs).all()
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_self_attention(batch_first: bool, bias: bool) -> None:
    theirs, ours = pair(batch_first=batch_first, bias=bias)
    same(theirs, ours, [numbers(BATCH, QUERIES, WIDTH)], {}, None)


@pytest.mark.parametrize("batch_first", [True, False])
def test_cross_attention_of_other_widths(batch_first: bool) -> None:
    theirs, ours = pair(batch_first=batch_first, kdim=KEY_WIDTH, vdim=VALUE_WIDTH)
    inputs = [numbers(BATCH, QUERIES, WIDTH), numbers(BATCH, KEYS, KEY_WIDTH), numbers(BATCH, KEYS, VALUE_WIDTH)]
    same(theirs, ours, inputs, {}, None)


def test_causal() -> None:
    theirs, ours = pair(batch_first=True)
    ahead = torch.ones(QUERIES, QUERIES, dtype=torch.bool).triu(1)
    same(theirs, ours, [numbers(BATCH, QUERIES, WIDTH)], {"attn_mask": ahead}, causal())


def test_padding() -> None:
    theirs, ours = pair(batch_first=True)
    counts = torch.tensor([KEYS, 4])
    padding = torch.arange(KEYS) >= counts[:, None]
    inputs = [numbers(BATCH, QUERIES, WIDTH), numbers(BATCH, KEYS, WIDTH), numbers(BATCH, KEYS, WIDTH)]
    same(theirs, ours, inputs, {"key_padding_mask": padding}, lengths(keys=counts))


def test_causal_and_padding() -> None:
    theirs, ours = pair(batch_first=False)
    counts = torch.tensor([2, QUERIES])
    hidden = {
        "attn_mask": torch.ones(QUERIES, QUERIES, dtype=torch.bool).triu(1),
        "key_padding_mask": torch.arange(QUERIES) >= counts[:, None],
    }
    same(theirs, ours, [numbers(BATCH, QUERIES, WIDTH)], hidden, causal() & lengths(keys=counts))


def test_a_float_mask_is_a_bias() -> None:
    theirs, ours = pair(batch_first=True)
    query, bias = numbers(BATCH, QUERIES, WIDTH), numbers(QUERIES, QUERIES).detach()
    wanted, _ = theirs(query, query, query, attn_mask=bias)
    close(ours(query, bias=bias), wanted)


def test_without_a_batch() -> None:
    theirs, ours = pair(batch_first=True)
    query, key = numbers(QUERIES, WIDTH), numbers(KEYS, WIDTH)
    wanted, _ = theirs(query, key, key)
    close(ours(query, key), wanted)


def test_a_model_of_theirs_loads_into_ours() -> None:
    """By the names of parameters, with a prefix, and back out under our own names."""
    theirs = nn.ModuleDict({"look": nn.MultiheadAttention(WIDTH, HEADS, kdim=KEY_WIDTH, vdim=VALUE_WIDTH)})
    ours = nn.ModuleDict({"look": MultiHeadAttention(WIDTH, HEADS, key_width=KEY_WIDTH, value_width=VALUE_WIDTH)})
    state = theirs.state_dict()
    before = list(state)
    ours.load_state_dict(state)
    assert list(state) == before, "the state that was passed is left as it was"
    torch.testing.assert_close(ours["look"].key.weight, theirs["look"].k_proj_weight)
    torch.testing.assert_close(ours["look"].value.bias, theirs["look"].in_proj_bias[2 * WIDTH :])
    again = nn.ModuleDict({"look": MultiHeadAttention(WIDTH, HEADS, key_width=KEY_WIDTH, value_width=VALUE_WIDTH)})
    again.load_state_dict(ours.state_dict())
    torch.testing.assert_close(dict(again.state_dict()), dict(ours.state_dict()), rtol=0, atol=0)


def test_from_torch_keeps_type_mode_and_dropout_and_shares_nothing() -> None:
    theirs = nn.MultiheadAttention(WIDTH, HEADS, dropout=0.25, dtype=torch.bfloat16).eval()
    ours = MultiHeadAttention.from_torch(theirs)
    assert ours.dropout == 0.25
    assert not ours.training
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.bfloat16}
    with torch.no_grad():
        ours.query.weight.zero_()
    assert theirs.in_proj_weight.abs().min() >= 0
    assert theirs.in_proj_weight[:WIDTH].abs().max() > 0


def test_learned_keys_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"add_bias_kv: the state holds bias_k and bias_v, .* is not served here"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(WIDTH, HEADS, add_bias_kv=True))


def test_a_zero_key_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"add_zero_attn: .* is not served here. Remedy: append the zero key"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(WIDTH, HEADS, add_zero_attn=True))
