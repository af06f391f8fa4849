"""Attention as a layer: against a loop in Python, remembered keys, dropout, padding that holds NaN, errors."""

import copy
import math
import re

import pytest
import torch
from hypothesis import given, strategies
from torch import Tensor, nn

from regard.core.additive import additive
from regard.core.biases import alibi
from regard.core.entmax import entmax, sparsemax
from regard.core.normalisers import softmax
from regard.core.see import Entropy, Weights
from regard.core.sequences import lengths
from regard.core.weigh import weigh
from regard.core.windows import causal
from regard.kernels.attend import attend
from regard.layers import (
    AdditiveScore,
    Attention,
    BilinearScore,
    CosineScore,
    LearnedEntmax,
    LearnedTemperature,
    LocationScore,
    Remembered,
    ScaledDotScore,
)

BATCH, QUERIES, KEYS = 2, 5, 7
QUERY_WIDTH, KEY_WIDTH, VALUE_WIDTH, WIDTH, OUT = 3, 13, 17, 11, 19

SCORES = {
    "additive": lambda: AdditiveScore(WIDTH, WIDTH, 23),
    "bilinear": lambda: BilinearScore(WIDTH, WIDTH),
    "cosine": CosineScore,
    "location": lambda: LocationScore(WIDTH, 29),
    "scaled dot": lambda: ScaledDotScore(WIDTH),
    "a frozen one": lambda: additive(torch.randn(WIDTH, dtype=torch.float64)),
    "a function": lambda: lambda query, key: -(query.unsqueeze(-2) - key.unsqueeze(-3)).abs().sum(-1),
}
NORMALISERS = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "learned entmax": LearnedEntmax,
    "learned temperature": LearnedTemperature,
    "a function": lambda: lambda scores, mask: torch.softmax(scores.masked_fill(~mask, -1e9), -1),
}


def layer(score: str = "additive", normalise: str = "softmax", **options: object) -> Attention:
    return Attention(
        SCORES[score](), NORMALISERS[normalise](), query=nn.Linear(QUERY_WIDTH, WIDTH), key=nn.Linear(KEY_WIDTH, WIDTH),
        value=nn.Linear(VALUE_WIDTH, WIDTH), output=nn.Linear(WIDTH, OUT), **options,
    ).double()  # fmt: skip


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    return numbers(BATCH, QUERIES, QUERY_WIDTH), numbers(BATCH, KEYS, KEY_WIDTH), numbers(BATCH, KEYS, VALUE_WIDTH)


def close(ours: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(ours, wanted, rtol=1e-9, atol=1e-12)


def test_additive_against_a_loop_in_python() -> None:
    """Bahdanau's formula, number by number, without a tensor operation."""
    score = AdditiveScore(QUERY_WIDTH, KEY_WIDTH, WIDTH).double()
    nn.init.normal_(score.bias)
    query, key, value = inputs()
    context, seen = Attention(score)(query, key, value, see=Weights())
    w, w_q, w_k, b = (p.tolist() for p in (score.weight, score.query_weight, score.key_weight, score.bias))
    for n in range(BATCH):
        q, k, v = query[n].tolist(), key[n].tolist(), value[n].tolist()
        for i in range(QUERIES):
            scores = []
            for j in range(KEYS):
                total = 0.0
                for unit in range(WIDTH):
                    inside = b[unit]
                    inside += sum(w_q[unit][f] * q[i][f] for f in range(QUERY_WIDTH))
                    inside += sum(w_k[unit][f] * k[j][f] for f in range(KEY_WIDTH))
                    total += w[unit] * math.tanh(inside)
                scores.append(math.exp(total))
            weights = [s / sum(scores) for s in scores]
            assert seen.weights[n, i].tolist() == pytest.approx(weights, rel=1e-12)
            wanted = [sum(weights[j] * v[j][f] for j in range(KEYS)) for f in range(VALUE_WIDTH)]
            assert context[n, i].tolist() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("normalise", NORMALISERS)
@pytest.mark.parametrize("score", SCORES)
def test_a_layer_is_its_projections_and_attend(score: str, normalise: str) -> None:
    attention = layer(score, normalise)
    query, key, value = inputs()
    mask = lengths(keys=torch.tensor([KEYS, 4]))
    frozen = attention.score() if isinstance(attention.score, nn.Module) else attention.score
    rows = attention.normalise() if isinstance(attention.normalise, nn.Module) else attention.normalise
    context = attend(
        attention.query(query), attention.key(key), attention.value(value), score=frozen, normalise=rows, mask=mask
    )
    close(attention(query, key, value, mask=mask), attention.output(context))


@pytest.mark.parametrize("score", SCORES)
def test_remembered_keys_are_the_keys(score: str) -> None:
    attention, (query, key, value) = layer(score), inputs()
    mask = lengths(keys=torch.tensor([3, KEYS]))
    toward = torch.randn(BATCH, QUERIES, OUT, dtype=torch.float64)
    at_once = attention(query, key, value, mask=mask)
    parameters = [*attention.parameters(), query, key, value]
    wanted = torch.autograd.grad((at_once * toward).sum(), parameters, allow_unused=True)
    past = attention.remember(key, value)
    assert isinstance(past, Remembered)
    assert len(past) == KEYS
    steps = [
        attention(query[:, i : i + 1], past, mask=mask) for i in range(QUERIES)
    ]  # one query at a time, as a decoder does
    close(torch.cat(steps, 1), at_once)
    found = torch.autograd.grad((torch.cat(steps, 1) * toward).sum(), parameters, allow_unused=True)
    for ours, theirs in zip(found, wanted, strict=True):
        if ours is not None or theirs is not None:
            close(ours, theirs)


def test_nothing_is_stored_between_calls() -> None:
    attention, (query, key, value) = layer(), inputs()
    before = copy.copy(attention.__dict__)
    attention(query, attention.remember(key, value))
    assert attention.__dict__.keys() == before.keys()
    assert all(attention.__dict__[name] is before[name] for name in before)
    with pytest.raises(AttributeError, match="cannot assign to field"):
        attention.remember(key, value).key = key


def test_more_can_be_remembered_after() -> None:
    attention, (query, key, value) = layer(), inputs()
    past = attention.remember(key[:, :3], value[:, :3])
    past = attention.remember(key[:, 3:], value[:, 3:], after=past)
    close(attention(query, past), attention(query, key, value))


def test_what_is_remembered_can_be_reordered() -> None:
    attention, (query, key, value) = layer(), inputs()
    beams = torch.tensor([1, 1, 0])
    past = attention.remember(key, value).mapped(lambda tensor: tensor[beams])
    close(attention(query[beams], past), attention(query[beams], key[beams], value[beams]))


def test_values_are_the_keys_where_none_are_given() -> None:
    attention = Attention(BilinearScore(QUERY_WIDTH, KEY_WIDTH), value=nn.Linear(KEY_WIDTH, WIDTH)).double()
    query, key, _ = inputs()
    close(attention(query, key), attention(query, key, key))
    close(attention(query, attention.remember(key)), attention(query, key, key))


def test_what_is_seen_is_what_was_used() -> None:
    attention, (query, key, value) = layer(), inputs()
    output, seen = attention(query, key, value, see=[Weights(), Entropy()], bias=numbers(QUERIES, KEYS), mask=causal())
    close(attention.output(seen.weights @ attention.value(value)), output)
    close(seen.entropy, -(torch.xlogy(seen.weights, seen.weights)).sum(-1))


def test_bias_is_added() -> None:
    attention, (query, key, value) = Attention(BilinearScore(QUERY_WIDTH, KEY_WIDTH)).double(), inputs()
    wanted = attend(query, key, value, score=attention.score(), bias=alibi(0.5 * torch.ones(())))
    close(attention(query, key, value, bias=alibi(0.5 * torch.ones(()))), wanted)


@given(share=strategies.floats(0.05, 0.95))
def test_dropout_is_of_weights_and_in_training_only(share: float) -> None:
    attention, (query, key, value) = layer(dropout=share), inputs()
    attention.train()
    one, other = (attention(query, key, value, generator=torch.Generator().manual_seed(s)) for s in (0, 0))
    close(one, other)
    context = attend(
        attention.query(query), attention.key(key), attention.value(value), score=attention.score(), dropout=share,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    close(one, attention.output(context))
    attention.eval()
    dry = copy.deepcopy(attention)
    dry.dropout = 0.0
    close(attention(query, key, value), dry(query, key, value))


def test_dropout_changes_something_in_training() -> None:
    attention, (query, key, value) = layer(dropout=0.5), inputs()
    one = attention(query, key, value, generator=torch.Generator().manual_seed(1))
    assert not torch.allclose(one, attention.eval()(query, key, value))


@pytest.mark.parametrize("remembered", [False, True])
@pytest.mark.parametrize("score", ["additive", "bilinear", "cosine"])
def test_nan_in_padding_reaches_no_parameter(score: str, remembered: bool) -> None:
    """Padding that holds NaN or infinity: the same gradients as padding that holds zeros, also of padded queries."""
    attention = layer(score)
    query, key, value = inputs()
    counts, asking = torch.tensor([KEYS, 4]), torch.tensor([QUERIES, 2])
    real_keys, real_queries = torch.arange(KEYS) < counts[:, None], torch.arange(QUERIES) < asking[:, None]

    def gradients(fill: float) -> list[Tensor]:
        query_, key_, value_ = (
            tensor.detach().masked_fill(~real[..., None], fill).requires_grad_()
            for tensor, real in ((query, real_queries), (key, real_keys), (value, real_keys))
        )
        past = (attention.remember(key_, value_),) if remembered else (key_, value_)
        output = attention(query_, *past, mask=lengths(keys=counts))
        loss = output.square()[real_queries].sum()
        return list(torch.autograd.grad(loss, [*attention.parameters(), query_, key_, value_]))

    wanted = gradients(0.0)
    for fill in (torch.nan, torch.inf):
        for ours, theirs in zip(gradients(fill), wanted, strict=True):
            assert torch.isfinite(theirs).all()
            close(ours, theirs)


@pytest.mark.parametrize("remembered", [False, True])
def test_nan_that_is_seen_is_nan(remembered: bool) -> None:
    attention, (query, key, value) = layer(), inputs()
    key = key.detach().clone()
    key[0, 3, 1] = torch.nan
    past = (attention.remember(key, value),) if remembered else (key, value)
    lost = attention(query, *past, mask=causal(align="start")).isnan().all(-1)
    assert lost.tolist() == [[False] * 3 + [True] * (QUERIES - 3), [False] * QUERIES]


def test_parameters_are_those_of_now() -> None:
    attention, (query, key, value) = layer(), inputs()
    before = attention(query, key, value)
    with torch.no_grad():
        attention.score.weight.mul_(3)
    assert not torch.allclose(attention(query, key, value), before)


def test_state_goes_round() -> None:
    attention, other = layer("cosine", "learned entmax"), layer("cosine", "learned entmax")
    query, key, value = inputs()
    other.load_state_dict(attention.state_dict())
    close(other(query, key, value), attention(query, key, value))
    assert {name for name, _ in attention.named_parameters()} == {
        "normalise.order", "score.log_scale", "query.weight", "query.bias", "key.weight", "key.bias", "value.weight",
        "value.bias", "output.weight", "output.bias",
    }  # fmt: skip


@pytest.mark.parametrize("score", SCORES)
def test_half_types_and_autocast(score: str) -> None:
    """As near to float64 as bfloat16's eight bits allow; the type that comes out is PyTorch's own choice."""
    attention, (query, key, value) = layer(score), inputs()
    wanted = attention(query, key, value)
    single = copy.deepcopy(attention).float()
    if score == "a frozen one":
        single.score = additive(attention.score.weight.float())
    floats = [tensor.detach().float() for tensor in (query, key, value)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = single(*floats)
        remembered = single(floats[0], single.remember(*floats[1:]))
    assert output.dtype == remembered.dtype == torch.bfloat16
    torch.testing.assert_close(output.double(), wanted, rtol=0.05, atol=0.05)
    torch.testing.assert_close(remembered.double(), wanted, rtol=0.05, atol=0.05)
    half = copy.deepcopy(attention).bfloat16()
    if score == "a frozen one":
        half.score = additive(attention.score.weight.bfloat16())
    output = half(
        *(tensor.detach().bfloat16() for tensor in (query, key, value)), mask=causal(align="start") | causal()
    )
    assert output.dtype == torch.bfloat16


def test_any_leading_dimensions() -> None:
    attention = layer()
    query, key, value = numbers(2, 1, QUERIES, QUERY_WIDTH), numbers(3, KEYS, KEY_WIDTH), numbers(3, KEYS, VALUE_WIDTH)
    output = attention(query, key, value)
    assert output.shape == (2, 3, QUERIES, OUT)
    close(output[1, 2], attention(query[1, 0], key[2], value[2]))


def test_it_prints_what_it_is() -> None:
    text = repr(Attention(AdditiveScore(3, 13, 11), sparsemax(), dropout=0.5))
    assert "normalise=EntmaxNormaliser, dropout=0.5" in text
    assert "AdditiveScore(query_width=3, key_width=13, width=11)" in text
    assert "score=Dot, normalise=Softmax" in repr(Attention())


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: Attention(torch.zeros(3)), TypeError, "score: came float32[3], wanted a score such as"),
        (lambda a: Attention(dropout=1.5), ValueError, "dropout: came 1.5, wanted a share between 0 and 1"),
        (
            lambda a: a(torch.zeros(5, 3), a.remember(torch.zeros(7, 13)), torch.zeros(7, 13)),
            ValueError,
            "value: came float32[7, 13] beside keys that are remembered with their values",
        ),
        (lambda a: a(torch.zeros(5, 2), torch.zeros(7, 13)), ValueError, "query: came float32[5, 2], its width is 2"),
        (lambda a: a(torch.zeros(5, 3), torch.zeros(7, 2)), ValueError, "key: came float32[7, 2], its width is 2"),
        (lambda a: a(torch.zeros(5, 3).long(), torch.zeros(7, 13)), TypeError, "query: came int64[5, 3]"),
        (lambda a: a(None, torch.zeros(7, 13)), ValueError, "query: came None"),
        (lambda a: a.remember([1.0]), TypeError, "key: came list, wanted a torch.Tensor"),
        (lambda a: a(torch.zeros(3), a.remember(torch.zeros(7, 13))), ValueError, "query: came float32[3], wanted"),
        (
            lambda a: a(torch.zeros(5, 3), torch.zeros(7, 13), torch.zeros(6, 13)),
            ValueError,
            "value: came float32[6, 13] for key float32[7, 13]",
        ),
    ],
)
def test_errors_say_what_came_and_what_was_wanted(call, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call(Attention(AdditiveScore(3, 13, 11)))


def test_a_location_score_remembers_all_at_once() -> None:
    attention = Attention(LocationScore(3, 23))
    past = attention.remember(torch.zeros(2, 13))
    with pytest.raises(ValueError, match="after: a location score knows keys by their index"):
        attention.remember(torch.zeros(2, 13), after=past)


def test_an_entmax_layer_is_the_normaliser_of_its_order() -> None:
    attention, (query, key, value) = layer("bilinear", "learned entmax"), inputs()
    _, seen = attention(query, key, value, see=Weights())
    wanted = weigh(attention.query(query), attention.key(key), score=attention.score(), normalise=entmax(1.5))
    close(seen.weights, wanted)
