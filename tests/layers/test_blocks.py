"""Transformer blocks against PyTorch's, step by step, and with parts of one's own."""

import re

import pytest
import torch
from hypothesis import given, strategies
from torch import Tensor, nn

from regard.core.see import Entropy, Weights
from regard.core.sequences import lengths
from regard.core.windows import causal
from regard.layers import (
    Attention,
    BilinearScore,
    MultiHeadAttention,
    PostNorm,
    PreNorm,
    RotaryPositions,
    TransformerBlock,
)

BATCH, LENGTH, SOURCE, HEADS, WIDTH, HIDDEN = 2, 5, 7, 3, 12, 17
RESIDUALS = {"pre-norm": PreNorm, "post-norm": PostNorm}


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def block(residual: type[nn.Module] = PreNorm, *, cross: bool = False, **options: object) -> TransformerBlock:
    return TransformerBlock(
        MultiHeadAttention(WIDTH, HEADS, **options),
        nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, WIDTH)),
        [residual(nn.LayerNorm(WIDTH)) for _ in range(2 + cross)],
        cross=MultiHeadAttention(WIDTH, HEADS) if cross else None,
    ).double()


def from_torch(layer: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> TransformerBlock:
    decoder = isinstance(layer, nn.TransformerDecoderLayer)
    norms = [layer.norm1, layer.norm2, *([layer.norm3] if decoder else [])]
    for norm in norms:  # so that one in another's place is seen
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    residual = PreNorm if layer.norm_first else PostNorm
    return TransformerBlock(
        MultiHeadAttention.from_torch(layer.self_attn),
        nn.Sequential(layer.linear1, nn.ReLU(), layer.linear2),
        [residual(norm) for norm in norms],
        cross=MultiHeadAttention.from_torch(layer.multihead_attn) if decoder else None,
    )


def close(ours: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(ours, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_block_is_pytorchs(norm_first: bool) -> None:
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=norm_first).double()
    tokens, counts = numbers(BATCH, LENGTH, WIDTH), torch.tensor([LENGTH, 3])
    padding = torch.arange(LENGTH) >= counts[:, None]
    output = from_torch(theirs)(tokens, mask=lengths(keys=counts))
    wanted = theirs(tokens, src_key_padding_mask=padding)
    close(output, wanted)
    close(torch.autograd.grad(output.square().sum(), tokens)[0], torch.autograd.grad(wanted.square().sum(), tokens)[0])


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_decoder_block_is_pytorchs(norm_first: bool) -> None:
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=norm_first).double()
    tokens, source, counts = numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, SOURCE, WIDTH), torch.tensor([4, SOURCE])
    output = from_torch(theirs)(tokens, source, mask=causal(), source_mask=lengths(keys=counts))
    wanted = theirs(
        tokens, source, tgt_mask=torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1),
        memory_key_padding_mask=torch.arange(SOURCE) >= counts[:, None],
    )  # fmt: skip
    close(output, wanted)
    for ours, of_torch in zip(
        torch.autograd.grad(output.square().sum(), [tokens, source]),
        torch.autograd.grad(wanted.square().sum(), [tokens, source]),
        strict=True,
    ):
        close(ours, of_torch)


@pytest.mark.parametrize("residual", RESIDUALS)
@given(first=strategies.integers(1, LENGTH - 1))
def test_step_by_step_is_all_at_once(residual: str, first: int) -> None:
    made = block(RESIDUALS[residual], cross=True, positions=RotaryPositions())
    tokens, source = numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, SOURCE, WIDTH)
    whole = made(tokens, source, mask=causal())
    remembered = made.cross.remember(source)
    begun, past = made.step(tokens[:, :first], None, remembered)
    outputs = [begun]
    for token in tokens[:, first:].split(1, 1):
        output, past = made.step(token, past, remembered)
        outputs.append(output)
    assert len(past) == LENGTH
    close(torch.cat(outputs, 1), whole)


def test_what_each_attention_saw() -> None:
    made, tokens, source = block(cross=True), numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, SOURCE, WIDTH)
    output, (own, other) = made(tokens, source, mask=causal(), see=[Weights(), Entropy()])
    close(output, made(tokens, source, mask=causal()))
    assert own.weights.shape == (BATCH, HEADS, LENGTH, LENGTH)
    assert own.weights.triu(1).abs().max() == 0
    assert other.weights.shape == (BATCH, HEADS, LENGTH, SOURCE)
    assert len(block()(tokens, see=Entropy())[1]) == 1


def test_any_attention_is_a_part() -> None:
    """One head, bilinear, in both places; and a residual of one's own, that gates instead of adding."""

    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Parameter(torch.tensor(0.25, dtype=torch.float64))

        def forward(self, tokens, work, generator=None):
            return self.gate * work(tokens) + (1 - self.gate) * tokens

    own, other, forward = (Attention(BilinearScore(WIDTH, WIDTH)), Attention(), nn.Linear(WIDTH, WIDTH))
    made = TransformerBlock(own, forward, [Gated(), Gated(), Gated()], cross=other).double()
    tokens, source = numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, SOURCE, WIDTH)
    hidden = 0.25 * own(tokens, tokens) + 0.75 * tokens
    hidden = 0.25 * other(hidden, source) + 0.75 * hidden
    close(made(tokens, source), 0.25 * forward(hidden) + 0.75 * hidden)


@pytest.mark.parametrize("residual", RESIDUALS)
def test_residual_dropout_is_in_training_only(residual: str) -> None:
    part, tokens = RESIDUALS[residual](nn.Identity(), dropout=0.5), torch.ones(BATCH, 101, WIDTH)
    one, other, third = (part(tokens, torch.neg, torch.Generator().manual_seed(seed)) for seed in (7, 7, 8))
    close(one, other)
    assert not torch.allclose(one, third)
    assert set(one.unique().tolist()) == {-1.0, 1.0}  # 1 - 2 where it is kept, 1 - 0 where it is not
    assert 0.4 < (one == 1).double().mean().item() < 0.6
    assert set(part(tokens, torch.neg).unique().tolist()) == {-1.0, 1.0}
    part.eval()
    assert part(tokens, torch.neg).abs().max() == 0


def test_one_generator_repeats_a_whole_block() -> None:
    made = block(cross=True, dropout=0.5)
    for residual in made.residuals:
        residual.dropout = 0.5
    tokens, source = numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, SOURCE, WIDTH)
    one, other, third = (made(tokens, source, generator=torch.Generator().manual_seed(seed)) for seed in (7, 7, 8))
    close(one, other)
    assert not torch.allclose(one, third)


def test_state_goes_round() -> None:
    one, other = block(cross=True), block(cross=True)
    other.load_state_dict(one.state_dict())
    tokens, source = numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, SOURCE, WIDTH)
    close(other(tokens, source), one(tokens, source))


def test_one_graph() -> None:
    torch._dynamo.reset()
    made, tokens, source = block(cross=True), numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, SOURCE, WIDTH)
    compiled = torch.compile(made, fullgraph=True, backend="aot_eager")
    close(compiled(tokens, source, mask=causal()), made(tokens, source, mask=causal()))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: TransformerBlock(Attention(), nn.Identity(), [PreNorm(nn.Identity())]),
            "residuals: came 1, wanted 2, one each for attention, feed_forward.",
        ),
        (
            lambda: TransformerBlock(Attention(), nn.Identity(), [PreNorm(nn.Identity())] * 2, cross=Attention()),
            "residuals: came 2, wanted 3, one each for attention, cross, feed_forward.",
        ),
        (lambda: block()(numbers(LENGTH, WIDTH), numbers(SOURCE, WIDTH)), "source: this block has no cross-attention"),
        (lambda: block(cross=True)(numbers(LENGTH, WIDTH)), "source: came None, and this block has cross-attention."),
        (lambda: PostNorm(nn.Identity(), dropout=2.0), "dropout: came 2.0, wanted a share between 0 and 1"),
    ],
)
def test_errors_say_what_came_and_what_was_wanted(call, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def test_a_residual_that_does_not_look_cannot_step() -> None:
    class Idle(nn.Module):
        def forward(self, tokens, work, generator=None):
            return tokens

    with pytest.raises(RuntimeError, match="residuals: the first one did not call its work"):
        TransformerBlock(Attention(), nn.Identity(), [Idle(), Idle()]).step(numbers(LENGTH, WIDTH))
