"""MultiHeadAttention: heads by hand, caches, shared heads, parts, graphs, padding, errors."""

import copy
import itertools
import re

import pytest
import torch
from hypothesis import given, strategies
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from regard.core.biases import alibi, relative
from regard.core.entmax import sparsemax
from regard.core.scores import dot
from regard.core.see import Entropy, Weights
from regard.core.sequences import lengths
from regard.core.windows import causal, window
from regard.layers import (
    AdditiveScore,
    AlibiPositions,
    BucketedPositions,
    CosineScore,
    LearnedEntmax,
    LearnedTemperature,
    LocationScore,
    MultiHeadAttention,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)

BATCH, HEADS, EACH, LENGTH, KEYS = 2, 3, 4, 7, 11
WIDTH = HEADS * EACH

POSITIONS = {
    "none": lambda: None,
    "rotary": RotaryPositions,
    "relative": lambda: RelativePositions(3, HEADS),
    "buckets": lambda: BucketedPositions(HEADS, 8, farthest=6),
    "alibi": lambda: AlibiPositions(HEADS),
}


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def layer(width: int = WIDTH, heads: int = HEADS, **options: object) -> MultiHeadAttention:
    made = MultiHeadAttention(width, heads, **options).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def close(ours: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(ours, wanted, rtol=1e-9, atol=1e-12)


def test_each_head_by_hand() -> None:
    """Head h has its own slice of every projection, and the output adds them up."""
    attention = layer(score=AdditiveScore(EACH, EACH, 5, HEADS))
    query, key = numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, KEYS, WIDTH)
    output, seen = attention(query, key, see=Weights())
    total = attention.output.bias.expand(BATCH, LENGTH, WIDTH)
    score = attention.score
    for head in range(HEADS):
        mine = slice(head * EACH, (head + 1) * EACH)
        q, k, v = (
            tensor @ part.weight[mine].T + part.bias[mine]
            for tensor, part in ((query, attention.query), (key, attention.key), (key, attention.value))
        )
        hidden = (q @ score.query_weight[head].T)[:, :, None] + (k @ score.key_weight[head].T)[:, None]
        weights = (torch.tanh(hidden + score.bias[head]) @ score.weight[head]).softmax(-1)
        close(seen.weights[:, head], weights)
        total = total + weights @ v @ attention.output.weight[:, mine].T
    close(output, total)


@pytest.mark.parametrize("positions", POSITIONS)
@given(cut=strategies.lists(strategies.integers(1, LENGTH - 1), max_size=4, unique=True))
def test_step_by_step_is_all_at_once(positions: str, cut: list[int]) -> None:
    """Decoding with a cache, in steps of any size, equals the causal pass over the whole."""
    attention, tokens = layer(positions=POSITIONS[positions]()), numbers(BATCH, LENGTH, WIDTH)
    whole = attention(tokens, mask=causal())
    past, outputs, ends = None, [], [0, *sorted(cut), LENGTH]
    for start, stop in itertools.pairwise(ends):
        new = tokens[:, start:stop]
        past = attention.remember(new, after=past)
        outputs.append(attention(new, past, mask=causal()))
    assert len(past) == LENGTH
    close(torch.cat(outputs, 1), whole)


def test_one_token_at_a_time_with_its_gradients() -> None:
    attention, tokens = layer(key_heads=1, positions=RotaryPositions()), numbers(BATCH, LENGTH, WIDTH)
    parameters = [*attention.parameters(), tokens]
    toward = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    wanted = torch.autograd.grad((attention(tokens, mask=causal()) * toward).sum(), parameters)
    past, outputs = None, []
    for token in tokens.split(1, 1):
        past = attention.remember(token, after=past)
        outputs.append(attention(token, past))  # one query sees all that is remembered, mask or no mask
    found = torch.autograd.grad((torch.cat(outputs, 1) * toward).sum(), parameters)
    for ours, theirs in zip(found, wanted, strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("key_heads", [1, 2, 3, 6])
def test_shared_heads_are_repeated_heads(key_heads: int) -> None:
    heads, each = 6, 5
    attention = layer(heads * each, heads, key_heads=key_heads)
    query, key = numbers(BATCH, LENGTH, heads * each), numbers(BATCH, KEYS, heads * each)
    assert attention.key.weight.shape == (key_heads * each, heads * each)

    def apart(tensor: Tensor, count: int) -> Tensor:
        return tensor.unflatten(-1, (count, each)).transpose(1, 2).repeat_interleave(heads // count, 1)

    context = scaled_dot_product_attention(
        apart(attention.query(query), heads),
        apart(attention.key(key), key_heads),
        apart(attention.value(key), key_heads),
    )
    close(attention(query, key), attention.output(context.transpose(1, 2).flatten(-2)))


def test_shared_heads_with_a_score_of_parameters() -> None:
    """The key's matrix of the score is shared too."""
    attention = layer(score=AdditiveScore(EACH, EACH, 5, HEADS, key_heads=1), key_heads=1)
    score, tokens = attention.score, numbers(BATCH, LENGTH, WIDTH)
    assert score.key_weight.shape == (1, 5, EACH)
    apart = copy.deepcopy(attention)
    apart.key_heads = HEADS
    with torch.no_grad():
        apart.score.key_weight = nn.Parameter(score.key_weight.expand(HEADS, 5, EACH).clone())
        for ours, theirs in ((apart.key, attention.key), (apart.value, attention.value)):
            ours.weight = nn.Parameter(theirs.weight.repeat(HEADS, 1))
            ours.bias = nn.Parameter(theirs.bias.repeat(HEADS))
    close(attention(tokens), apart(tokens))


def test_shared_heads_with_scores_and_normalisers_of_their_own() -> None:
    attention = layer(
        score=AdditiveScore(EACH, EACH, 5, HEADS, key_heads=1), key_heads=1, normalise=LearnedEntmax(HEADS)
    )
    with torch.no_grad():
        attention.normalise.order.copy_(torch.tensor([-30.0, 0.0, 30.0]))
    _, seen = attention(numbers(BATCH, LENGTH, WIDTH) * 30, see=Weights())
    sparse = (seen.weights == 0).double().mean((0, 2, 3))
    assert sparse[0] == 0 < sparse[1] < sparse[2]


@pytest.mark.parametrize("positions", ["relative", "alibi", "buckets"])
def test_positions_and_a_bias_add_up(positions: str) -> None:
    part, tokens, bias = POSITIONS[positions](), numbers(BATCH, LENGTH, WIDTH), numbers(HEADS, LENGTH, LENGTH)[None]
    part.requires_grad_(False)
    for parameter in part.parameters():
        nn.init.normal_(parameter)
    attention = layer(positions=part)
    plain = copy.deepcopy(attention)
    plain.positions = None
    dense = part.bias().tile(range(LENGTH), range(LENGTH), torch.Size((BATCH, HEADS, LENGTH, LENGTH)), bias.device)
    close(attention(tokens), plain(tokens, bias=part.bias()))
    close(attention(tokens, bias=bias), plain(tokens, bias=dense + bias))
    assert not torch.allclose(attention(tokens), plain(tokens))


def test_each_head_may_be_as_sharp_as_it_likes() -> None:
    attention, tokens = layer(score=dot(1.0), normalise=LearnedTemperature(HEADS)), numbers(BATCH, LENGTH, WIDTH)
    with torch.no_grad():
        attention.normalise.log_temperature.copy_(torch.tensor([1e2, 1e1, 1e0]).log())
    spread = attention(tokens, see=Entropy())[1].entropy.mean((0, 2))
    assert spread[0] > spread[1] > spread[2]


def test_learned_scale_and_sparse_weights() -> None:
    attention, tokens = layer(score=CosineScore(HEADS), normalise=sparsemax()), numbers(BATCH, LENGTH, WIDTH)
    _, seen = attention(tokens, mask=window(2), see=Weights())
    query, key = (
        nn.functional.normalize(part(tokens).unflatten(-1, (HEADS, EACH)).transpose(1, 2), dim=-1)
        for part in (attention.query, attention.key)
    )
    scores = query @ key.mT * attention.score.log_scale.exp()[:, None, None]
    close(seen.weights, sparsemax()(scores, window(2).dense(LENGTH, LENGTH)))


@pytest.mark.parametrize("score", ["dot", "additive"])
def test_nan_in_padding_reaches_no_parameter(score: str) -> None:
    attention = layer(score=AdditiveScore(EACH, EACH, 5, HEADS) if score == "additive" else dot(0.5))
    tokens, counts = numbers(BATCH, LENGTH, WIDTH), torch.tensor([LENGTH, 4])
    real = torch.arange(LENGTH) < counts[:, None]

    def gradients(fill: float) -> list[Tensor]:
        padded = tokens.detach().masked_fill(~real[..., None], fill).requires_grad_()
        loss = attention(padded, mask=lengths(keys=counts))[real].square().sum()
        return list(torch.autograd.grad(loss, [*attention.parameters(), padded]))

    for ours, theirs in zip(gradients(torch.nan), gradients(0.0), strict=True):
        assert torch.isfinite(theirs).all()
        close(ours, theirs)


def test_a_sentence_of_nothing_but_padding_gives_the_output_bias() -> None:
    attention = layer()
    output = attention(numbers(BATCH, LENGTH, WIDTH), mask=lengths(keys=torch.tensor([0, LENGTH])))
    close(output[0], attention.output.bias.expand(LENGTH, WIDTH))


def test_dropout_in_training_only() -> None:
    attention, tokens = layer(dropout=0.5), numbers(BATCH, LENGTH, WIDTH)
    one, other = (attention(tokens, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    close(one, other)
    attention.eval()
    close(attention(tokens), attention(tokens))
    assert not torch.allclose(one, attention(tokens))


def test_the_same_generator_gives_the_same_layer() -> None:
    one, other = (MultiHeadAttention(WIDTH, HEADS, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    torch.testing.assert_close(dict(one.state_dict()), dict(other.state_dict()), rtol=0, atol=0)
    assert one.query.bias.abs().max() == 0
    assert one.query.weight.abs().max() <= (6 / (2 * WIDTH)) ** 0.5


def test_state_goes_round() -> None:
    parts = {"score": AdditiveScore(EACH, EACH, 5, HEADS), "positions": RelativePositions(2, HEADS)}
    one, other = layer(**parts), layer(**copy.deepcopy(parts))
    other.load_state_dict(one.state_dict())
    tokens = numbers(BATCH, LENGTH, WIDTH)
    close(other(tokens), one(tokens))


def test_any_leading_dimensions() -> None:
    attention, tokens = layer(positions=RotaryPositions()), numbers(2, 5, LENGTH, WIDTH)
    close(attention(tokens, mask=causal())[1, 3], attention(tokens[1, 3], mask=causal()))


COMPILED = {
    "plain": ({}, {}),
    "causal": ({}, {"mask": causal()}),
    "causal and rotary": ({"positions": RotaryPositions()}, {"mask": causal()}),
    "padding": ({}, {"mask": lengths(keys=torch.tensor([LENGTH, 4]))}),
    "grouped and relative": ({"key_heads": 1, "positions": RelativePositions(3, HEADS)}, {"mask": window(2)}),
    "additive": ({"score": AdditiveScore(EACH, EACH, 5, HEADS)}, {"mask": causal()}),
    "sparse": ({"normalise": LearnedEntmax(HEADS)}, {"mask": causal()}),
}


# PyTorch's own tracer makes instances of autograd functions, which PyTorch deprecates.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("case", COMPILED)
def test_one_graph(case: str, backend: str) -> None:
    torch._dynamo.reset()
    parts, options = COMPILED[case]
    attention = layer(**copy.deepcopy(parts))
    tokens = numbers(BATCH, LENGTH, WIDTH)
    wanted = attention(tokens, **options)
    wanted_gradients = torch.autograd.grad(wanted.square().sum(), [tokens, *attention.parameters()])
    compiled = torch.compile(attention, fullgraph=True, backend=backend)
    output = compiled(tokens, **options)
    close(output, wanted)
    for ours, theirs in zip(
        torch.autograd.grad(output.square().sum(), [tokens, *attention.parameters()]), wanted_gradients, strict=True
    ):
        close(ours, theirs)


def test_a_decoding_step_in_one_graph() -> None:
    torch._dynamo.reset()
    attention, tokens = layer(positions=RotaryPositions()), numbers(BATCH, LENGTH, WIDTH)

    def step(token: Tensor, past: object) -> tuple[Tensor, object]:
        past = attention.remember(token, after=past)
        return attention(token, past), past

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    past, outputs = None, []
    with torch.no_grad():
        for token in tokens.split(1, 1)[:3]:
            output, past = compiled(token, past)
            outputs.append(output)
        close(torch.cat(outputs, 1), attention(tokens[:, :3], mask=causal()))


def test_autocast() -> None:
    attention = MultiHeadAttention(WIDTH, HEADS, positions=RotaryPositions())
    tokens = torch.randn(BATCH, LENGTH, WIDTH)
    wanted = copy.deepcopy(attention).double()(tokens.double(), mask=causal())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = attention(tokens, mask=causal())
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.double(), wanted, rtol=0.05, atol=0.02)


def test_it_prints_what_it_is() -> None:
    text = repr(MultiHeadAttention(12, 4, key_heads=2, positions=AlibiPositions(4), dropout=0.5))
    assert "width=12, heads=4, key_heads=2, score=Dot, normalise=Softmax, dropout=0.5" in text
    assert "AlibiPositions(heads=4, align=end)" in text


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: MultiHeadAttention(12, 5), ValueError, "heads: came 5 for width 12; wanted a number that divides it"),
        (lambda: MultiHeadAttention(12, 0), ValueError, "heads: came 0, wanted a positive whole number"),
        (lambda: MultiHeadAttention(12, 4, key_heads=3), ValueError, "key_heads: came 3 for 4 heads; wanted a number"),
        (
            lambda: MultiHeadAttention(12, 4, positions=SinusoidalPositions(12)),
            TypeError,
            "positions: came SinusoidalPositions, wanted a position part such as RotaryPositions()",
        ),
        (lambda: MultiHeadAttention(12, 4, dropout=-1.0), ValueError, "dropout: came -1.0, wanted a share"),
        (
            lambda: MultiHeadAttention(12, 4)(torch.zeros(2, 7, 11)),
            ValueError,
            "query: came float32[2, 7, 11], its width is 11; wanted width 12, the layer's width",
        ),
        (
            lambda: MultiHeadAttention(12, 4, key_width=5)(torch.zeros(2, 7, 12)),
            ValueError,
            "key: came float32[2, 7, 12], its width is 12; wanted width 5, the layer's key_width",
        ),
        (
            lambda: MultiHeadAttention(12, 4)(torch.zeros(4, 7, 12), mask=torch.ones(4, 7, 7, dtype=torch.bool)),
            ValueError,
            "with as many dimensions it would line up with the heads. Wanted [q, k], or [*batch, heads or 1, q, k].",
        ),
        (
            lambda: MultiHeadAttention(12, 4)(torch.zeros(4, 7, 12), bias=torch.zeros(4, 7, 7)),
            ValueError,
            "bias: came float32[4, 7, 7] for query float32[4, 7, 12]",
        ),
        (lambda: MultiHeadAttention(12, 4)(None), TypeError, "query: came None, wanted a torch.Tensor"),
    ],
)
def test_errors_say_what_came_and_what_was_wanted(call, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_masks_that_say_where_the_heads_are() -> None:
    attention, tokens = layer(), numbers(BATCH, LENGTH, WIDTH)
    mask = torch.rand(BATCH, LENGTH, LENGTH) < 0.7
    mask[..., 0] = True
    wanted = torch.stack([attention(tokens[n], mask=mask[n]) for n in range(BATCH)])
    close(attention(tokens, mask=mask.unsqueeze(-3)), wanted)
    close(attention(tokens, mask=mask[:1]), attention(tokens, mask=mask[0]))
    close(attention(tokens, bias=alibi(HEADS)), layer_with_alibi(attention)(tokens))
    close(attention(tokens, bias=relative(torch.zeros(3))), attention(tokens))


def layer_with_alibi(attention: MultiHeadAttention) -> MultiHeadAttention:
    other = copy.deepcopy(attention)
    other.positions = AlibiPositions(HEADS).double()
    return other


def test_a_location_score_remembers_all_at_once() -> None:
    attention = MultiHeadAttention(WIDTH, HEADS, score=LocationScore(EACH, 23))
    past = attention.remember(torch.zeros(2, WIDTH))
    with pytest.raises(ValueError, match="after: a location score knows keys by their index"):
        attention.remember(torch.zeros(2, WIDTH), after=past)
