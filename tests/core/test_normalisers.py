"""Softmax against PyTorch's, and the normalisers that replace weights: given, edited, a user's own."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import regard
from regard.core import normalisers
from regard.core.normalisers import ByRow, Random, sheltered, visible
from tests.parts import nearness_share, squared_share


def hidden() -> tuple[Tensor, Tensor]:
    """Scores [2 3 5 7] and a mask under which row (0, 0, 0) sees nothing."""
    mask = torch.rand(2, 3, 5, 7) < 0.6
    mask[0, 0, 0] = False
    return torch.randn(2, 3, 5, 7, dtype=torch.float64), mask


def test_softmax_is_pytorch_s() -> None:
    scores, mask = hidden()
    torch.testing.assert_close(regard.softmax()(scores), torch.nn.functional.softmax(scores, -1))
    torch.testing.assert_close(regard.softmax(0.3)(scores), torch.nn.functional.softmax(scores / 0.3, -1))
    wanted = torch.nn.functional.softmax(scores.masked_fill(~mask, -torch.inf), -1)
    wanted[0, 0, 0] = 0
    torch.testing.assert_close(regard.softmax()(scores, mask), wanted)


def test_a_temperature_for_every_head() -> None:
    scores, mask = hidden()
    heat = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    together = regard.softmax(heat)(scores, mask)
    each = [regard.softmax(t)(scores[:, h], mask[:, h]) for h, t in enumerate(heat.tolist())]
    torch.testing.assert_close(together, torch.stack(each, 1))
    assert regard.softmax(heat).mapped(lambda tensor, own: tensor[:1]).temperature.shape == (1,)
    warm = regard.softmax(2.0)
    assert warm.mapped(lambda tensor, own: tensor + 1) is warm


def test_a_learned_temperature_has_a_gradient_beside_what_is_hidden() -> None:
    """Minus infinity over a temperature has no gradient, not even zero: it must not be divided."""
    scores, mask = hidden()
    heat = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    scores = scores.masked_fill(~mask, -torch.inf).requires_grad_()
    for function in (
        lambda t: regard.softmax(t)(scores.detach(), mask),
        lambda t: regard.softmax(t)(scores.detach()),
    ):
        (found,) = torch.autograd.grad((function(heat) ** 2).sum(), heat)
        assert torch.isfinite(found).all()
        assert gradcheck(function, (heat,))
    query, key = torch.randn(2, 3, 5, 2, dtype=torch.float64), torch.randn(2, 3, 7, 2, dtype=torch.float64)
    see = [regard.LogSumExp(), regard.Entropy()]

    def seen(t: Tensor) -> tuple[Tensor, ...]:
        context, looked = regard.attend(
            query, key, key, normalise=regard.softmax(t), mask=mask, see=see, backend="definition"
        )
        return context, looked.entropy, looked.logsumexp.masked_fill(looked.logsumexp == -torch.inf, 0.0)

    assert gradcheck(seen, (heat,))


@pytest.mark.parametrize(
    "normalise",
    [regard.softmax(), regard.softmax(0.3), regard.sparsemax(), regard.entmax(1.5), nearness_share],
    ids=lambda normalise: getattr(normalise, "__name__", type(normalise).__name__),
)
def test_gradients(normalise: normalisers.Callables) -> None:
    mask = torch.rand(3, 5) < 0.7
    mask[0] = False
    scores = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: normalise(s, mask), (scores,))
    assert gradgradcheck(lambda s: normalise(s, mask), (scores,), atol=1e-4)


def test_infinite_scores() -> None:
    """Minus infinity is hidden; plus infinity and NaN make their row NaN, as in PyTorch."""
    scores = torch.tensor([[0.0, -torch.inf, 1.0], [-torch.inf] * 3, [0.0, torch.inf, 1.0], [0.0, torch.nan, 1.0]])
    for normalise in (regard.softmax(), regard.sparsemax(), regard.entmax(1.5), regard.entmax(2.5)):
        weights = normalise(scores)
        assert weights[0, 1] == 0
        assert weights[0].sum() == pytest.approx(1, abs=1e-6)
        assert weights[1].tolist() == [0, 0, 0]
        assert weights[2:].isnan().all()


def test_visible_and_sheltered() -> None:
    scores = torch.tensor([[0.0, -torch.inf, torch.nan], [-torch.inf] * 3])
    mask = torch.tensor([[False, True, True], [True, True, True]])
    assert visible(scores, None).tolist() == [[True, False, True], [False] * 3]
    assert visible(scores, mask).tolist() == [[False, False, True], [False] * 3]
    safe, seen = sheltered(scores, mask)
    assert torch.equal(seen, visible(scores, mask))
    assert safe[1].tolist() == [0, 0, 0]
    assert safe[0, :2].tolist() == [-torch.inf, -torch.inf]


def test_given_weights_are_used() -> None:
    scores, mask = hidden()
    weights = torch.rand(3, 5, 7)
    given = regard.given(weights)
    assert torch.equal(given(scores), weights.double().expand(2, 3, 5, 7))
    assert torch.equal(given(scores, mask), weights.double() * mask)
    assert torch.equal(given.rows(1, 3)(scores[:, :, 1:3]), weights.double()[:, 1:3].expand(2, 3, 2, 7))
    row = regard.given(weights[:, :1])
    assert row.rows(1, 3) is row
    assert torch.equal(given.mapped(lambda tensor, own: tensor * own).weights, weights * 2)


def test_edited_weights_are_a_function_of_others() -> None:
    scores, mask = hidden()
    edited = regard.edited(regard.softmax(), squared_share)
    plain = regard.softmax()(scores, mask)
    torch.testing.assert_close(edited(scores, mask), squared_share(plain))
    flipped = regard.edited(regard.softmax(), lambda weights: weights.flip(-1))
    assert torch.equal(flipped(scores, mask), plain.flip(-1) * mask)
    assert torch.equal(flipped(scores), regard.softmax()(scores).flip(-1))


def test_an_edit_passes_rows_chance_and_changes_on() -> None:
    weights = torch.rand(5, 7)
    edited = regard.edited(regard.given(weights), lambda w: 1 - w)
    scores = torch.zeros(2, 7)
    assert torch.equal(normalisers.rows(edited, 1, 3)(scores, None), 1 - weights[1:3])
    assert torch.equal(edited.mapped(lambda tensor, own: tensor * 0)(torch.zeros(5, 7)), torch.ones(5, 7))
    noisy = regard.edited(regard.hard(sampled=True), lambda w: 2 * w)
    batch, generator = torch.arange(3), torch.Generator().manual_seed(3)
    drawn = noisy.drawn(batch, 5, generator)
    scores = torch.randn(3, 5, 7)
    assert torch.equal(drawn(scores), drawn(scores))
    assert set(drawn(scores).unique().tolist()) == {0, 2}
    assert isinstance(edited, ByRow)
    assert isinstance(noisy, Random)


def test_a_function_has_no_rows_chance_or_tensors() -> None:
    assert normalisers.rows(nearness_share, 1, 3) is nearness_share
    assert normalisers.drawn(nearness_share, torch.arange(3), 5, None) is nearness_share
    assert normalisers.mapped(nearness_share, lambda tensor, own: tensor) is nearness_share
    plain = regard.softmax()
    assert normalisers.drawn(plain, torch.arange(3), 5, None) is plain
    assert normalisers.rows(plain, 1, 3) is plain
    assert normalisers.mapped(plain, lambda tensor, own: tensor) is plain
