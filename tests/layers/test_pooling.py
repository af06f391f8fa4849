"""Pooling against the equations of Yang et al. (2016) and Lin et al. (2017)."""

import math

import pytest
import torch
from torch import Tensor

from regard.core.entmax import sparsemax
from regard.core.see import Weights
from regard.core.sequences import lengths
from regard.layers import Pooling, redundancy

BATCH, LENGTH, WIDTH, HIDDEN, ROWS = 2, 7, 5, 11, 3


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_yang_2016() -> None:
    """u_t = tanh(W h_t + b);  a_t = exp(u_t . u) / sum;  s = sum a_t h_t: number by number."""
    layer, tokens = Pooling(WIDTH, HIDDEN).double(), numbers(BATCH, LENGTH, WIDTH)
    score = layer.attention.score
    torch.nn.init.normal_(score.bias)
    pooled, seen = layer(tokens, see=Weights())
    assert pooled.shape == (BATCH, WIDTH)
    vector, weight, bias = (p.tolist() for p in (score.vector, score.weight, score.bias))
    for n in range(BATCH):
        h = tokens[n].tolist()
        u = [
            [math.tanh(bias[a] + sum(weight[a][f] * h[t][f] for f in range(WIDTH))) for a in range(HIDDEN)]
            for t in range(LENGTH)
        ]
        e = [math.exp(sum(u[t][a] * vector[a] for a in range(HIDDEN))) for t in range(LENGTH)]
        shares = [x / sum(e) for x in e]
        assert seen.weights[n, 0].tolist() == pytest.approx(shares, rel=1e-12)
        wanted = [sum(shares[t] * h[t][f] for t in range(LENGTH)) for f in range(WIDTH)]
        assert pooled[n].tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_lin_2017() -> None:
    """A = softmax(W_2 tanh(W_1 Hᵀ)) along the tokens, without a bias;  M = A H."""
    layer, tokens = Pooling(WIDTH, HIDDEN, rows=ROWS, bias=False).double(), numbers(BATCH, LENGTH, WIDTH)
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {
        "attention.score.vector": (ROWS, HIDDEN),
        "attention.score.weight": (HIDDEN, WIDTH),
    }
    pooled, seen = layer(tokens, see=Weights())
    first, second = layer.attention.score.weight, layer.attention.score.vector
    for n in range(BATCH):
        shares = torch.softmax(second @ torch.tanh(first @ tokens[n].T), dim=1)
        torch.testing.assert_close(seen.weights[n], shares)
        torch.testing.assert_close(pooled[n], shares @ tokens[n])


def test_redundancy_is_the_squared_frobenius_norm() -> None:
    weights = numbers(BATCH, ROWS, LENGTH).detach().softmax(-1).requires_grad_()
    penalty = redundancy(weights)
    for n in range(BATCH):
        rows = weights[n].tolist()
        total = 0.0
        for i in range(ROWS):
            for j in range(ROWS):
                overlap = sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
                total += (overlap - (i == j)) ** 2
        assert penalty[n].item() == pytest.approx(total, rel=1e-12)
    assert torch.autograd.gradcheck(redundancy, (weights,))


def test_redundancy_is_least_when_each_row_looks_elsewhere() -> None:
    assert redundancy(torch.eye(LENGTH)[:ROWS]).item() == 0
    assert redundancy(torch.eye(LENGTH)[:1].expand(ROWS, -1)).item() == ROWS * (ROWS - 1)


def test_the_penalty_drives_rows_apart() -> None:
    layer, tokens = Pooling(WIDTH, HIDDEN, rows=ROWS, bias=False), torch.randn(BATCH, LENGTH, WIDTH)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    penalties = []
    for _ in range(100):
        _, seen = layer(tokens, see=Weights())
        penalties.append(redundancy(seen.weights).mean())
        optimizer.zero_grad()
        penalties[-1].backward()
        optimizer.step()
    assert penalties[-1].item() < penalties[0].item() / 4


def test_padding_is_not_pooled() -> None:
    layer, tokens = Pooling(WIDTH).double(), numbers(BATCH, LENGTH, WIDTH)
    padded = tokens.detach().clone()
    padded[1, 4:] = torch.nan
    pooled = layer(padded, mask=lengths(keys=torch.tensor([LENGTH, 4])))
    torch.testing.assert_close(pooled[0], layer(tokens[0]))
    torch.testing.assert_close(pooled[1], layer(tokens[1, :4]))
    pooled.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in layer.parameters())


def test_values_normaliser_and_leading_dimensions() -> None:
    layer, tokens, value = (
        Pooling(WIDTH, normalise=sparsemax()).double(),
        numbers(3, 2, LENGTH, WIDTH),
        numbers(3, 2, LENGTH, 13),
    )
    pooled, seen = layer(tokens, value, see=Weights())
    assert pooled.shape == (3, 2, 13)
    assert (seen.weights == 0).any()
    torch.testing.assert_close(pooled, (seen.weights @ value).squeeze(-2))


def test_dropout_is_in_training_only() -> None:
    layer, tokens = Pooling(WIDTH, dropout=0.5).double(), numbers(BATCH, LENGTH, WIDTH)
    one, other, third = (layer(tokens, generator=torch.Generator().manual_seed(seed)) for seed in (7, 7, 8))
    torch.testing.assert_close(one, other)
    assert not torch.allclose(one, third)
    layer.eval()
    torch.testing.assert_close(layer(tokens), layer(tokens))


def test_errors_say_what_came_and_what_was_wanted() -> None:
    with pytest.raises(ValueError, match=r"key: came float32\[7, 4\], its width is 4; wanted width 5"):
        Pooling(WIDTH)(torch.zeros(LENGTH, 4))
    with pytest.raises(ValueError, match=r"weights: came float32\[7\], wanted"):
        redundancy(torch.zeros(LENGTH))
    with pytest.raises(ValueError, match=r"rows: came 0, wanted a positive whole number"):
        Pooling(WIDTH, rows=0)
