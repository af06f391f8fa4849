"""Hard selection: which key is taken, how often each is drawn, and what gradients come back."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import regard
from regard.core import chance
from regard.core.hard import Hard, first_largest, one_hot


def test_the_best_key_and_the_lowest_on_ties() -> None:
    scores = torch.tensor([[0.0, 2.0, 1.0], [3.0, 1.0, 3.0], [-torch.inf] * 3, [-1.0, -1.0, -1.0]])
    assert regard.hard()(scores).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]]
    mask = torch.tensor([[True, False, True], [False, True, True], [True] * 3, [False] * 3])
    assert regard.hard()(scores, mask).tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert regard.hard().index(scores, mask).tolist() == [2, 2, 3, 3]
    assert regard.hard()(torch.zeros(3, 0)).shape == (3, 0)
    assert regard.hard()(torch.zeros(2, 3, 0)).shape == (2, 3, 0)


def test_nan_makes_its_row_nan() -> None:
    scores = torch.tensor([[0.0, torch.nan, 1.0], [0.0, 1.0, 2.0]])
    for normalise in (regard.hard(), regard.hard(sampled=True)):
        weights = normalise(scores)
        assert weights[0].isnan().all()
        assert not weights[1].isnan().any()
    weights = regard.hard()(scores, torch.tensor([[True, False, True], [True, True, True]]))
    assert weights.tolist() == [[0, 0, 1], [0, 0, 1]]
    seen = torch.tensor([[False, True, True], [True, True, True]])
    for normalise in (regard.hard(), regard.hard(sampled=True)):
        weights = normalise(torch.stack([scores, scores]), seen)
        assert weights[:, 0, 0].tolist() == [0, 0], "what is hidden stays zero"
        assert weights[:, 0, 1:].isnan().all()
        assert not weights[:, 1].isnan().any()
    low = torch.tensor([[-torch.inf, torch.nan, 1.0]])
    assert regard.hard()(low)[0, 0] == 0
    assert regard.hard()(low)[0, 1:].isnan().all()


def drawn_counts(normalise: object, scores: torch.Tensor, count: int) -> torch.Tensor:
    """How often each key is taken, of `count` draws."""
    drawn = normalise.drawn(torch.arange(count), 1, torch.Generator().manual_seed(11))
    return drawn(scores.expand(count, 1, -1)).sum((0, 1))


@pytest.mark.parametrize("normalise", [regard.hard(sampled=True), regard.gumbel(straight_through=True)])
def test_keys_are_drawn_by_softmax_s_weights(normalise: object) -> None:
    scores = torch.tensor([0.5, -1.0, 2.0, -torch.inf, 0.0, 1.0, -3.0])
    counts = drawn_counts(normalise, scores, 40_000)
    wanted = torch.softmax(scores, -1) * 40_000
    assert counts[3] == 0
    seen = wanted > 0
    assert stats.chisquare(counts[seen].double().numpy(), wanted[seen].double().numpy(), sum_check=False).pvalue > 1e-4


def test_a_draw_is_the_inverse_of_the_cumulative_weights() -> None:
    """A uniform number u takes the first key up to which the weights exceed it."""
    scores = torch.log(torch.tensor([[0.1, 0.4, 0.3, 0.2]])).expand(7, -1)
    uniform = torch.tensor([1e-9, 0.0999, 0.1001, 0.4999, 0.5001, 0.8001, 1 - 2.0**-24])
    taken = Hard(True, chosen=uniform)
    assert taken.index(scores, None).tolist() == [0, 0, 1, 1, 2, 3, 3]
    even = Hard(True, chosen=torch.tensor([0.0, 0.25, 0.5, 0.75]))
    assert even.index(torch.zeros(4, 4), None).tolist() == [0, 1, 2, 3]
    hidden = torch.tensor([False, True, True, True])
    assert even.index(torch.zeros(4, 4), hidden).tolist() == [1, 1, 2, 3]
    assert even(torch.zeros(4, 4), hidden).sum(0).tolist() == [0, 2, 1, 1]
    some = taken.rows(2, 5)
    assert torch.equal(some(scores[2:5]), taken(scores)[2:5])
    assert torch.equal(taken.mapped(lambda tensor, own: tensor[..., :1]).chosen, uniform[:1])
    plain = regard.hard()
    assert plain.mapped(lambda tensor, own: tensor * 0) is plain
    assert plain.rows(0, 1) is plain
    assert plain.drawn(torch.arange(1), 1, None) is plain
    assert taken.drawn(torch.arange(1), 1, None) is taken
    assert regard.hard(sampled=True).drawn(torch.arange(3), 0, None).chosen.shape == (3, 0)


def test_a_long_row_s_tail_is_drawn() -> None:
    """A hundred thousand keys of 1e-8 each: in float32, most of them would add nothing to what was summed before."""
    scores = torch.cat([torch.tensor([0.999]), torch.full((100_000,), 1e-8)]).log()
    uniform = 0.999 + 0.001 * torch.rand(50)
    exact = scores.double().softmax(-1).cumsum(-1).numpy()
    wanted = np.searchsorted(exact, uniform.double().numpy() * exact[-1], side="right")
    assert Hard(True, chosen=uniform).index(scores.expand(50, -1), None).tolist() == wanted.tolist()


def test_a_generator_repeats_what_is_drawn() -> None:
    """Whatever PyTorch's own generator stands at; and another generator gives another draw."""
    query, key = torch.randn(2, 31, 3), torch.randn(2, 37, 3)
    twice = regard.edited(regard.hard(sampled=True), lambda weights: 2 * weights)
    for normalise in (regard.hard(sampled=True), regard.gumbel(0.5), twice):
        one, two, other = (
            regard.weigh(query, key, normalise=normalise, generator=torch.Generator().manual_seed(seed))
            for seed in (5, 5, 7)
        )
        assert torch.equal(one, two)
        assert not torch.equal(one, other)


@pytest.mark.parametrize("normalise", [regard.hard(sampled=True), regard.gumbel()], ids=repr)
def test_the_seed_is_drawn_where_the_batch_is(normalise: object, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, draw = [], chance.draw_seed
    monkeypatch.setattr(chance, "draw_seed", lambda generator, device: (asked.append(device), draw(None, device))[1])
    normalise.drawn(torch.arange(2, device="meta"), 5, None)
    assert asked == [torch.device("meta")]


def test_gumbel_alone_knows_its_mask_its_batch_and_its_type() -> None:
    mask = torch.rand(2, 3, 5, 7) < 0.5
    mask[1, 2, 3] = False
    for straight in (False, True):
        weights = regard.gumbel(straight_through=straight)(torch.zeros(2, 3, 5, 7, dtype=torch.bfloat16), mask)
        assert weights.dtype == torch.bfloat16
        assert (weights[~mask] == 0).all()
        torch.testing.assert_close(weights.float().sum(-1), mask.any(-1).float(), atol=2e-2, rtol=0)
    assert (regard.gumbel()(torch.zeros(2, 3, 5, 7)).flatten(0, 2).unique(dim=0)).shape == (30, 7)
    assert regard.gumbel().temperature == 1


def test_standing_alone_it_draws_anew() -> None:
    scores = torch.zeros(1000, 5)
    torch.manual_seed(3)
    counts = regard.hard(sampled=True)(scores).sum(0)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4
    torch.manual_seed(3)
    noisy = regard.gumbel(straight_through=True)(scores[None]).sum((0, 1))
    assert stats.chisquare(noisy.numpy()).pvalue > 1e-4


def test_the_log_probability_of_what_was_taken() -> None:
    scores = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 5, 7) < 0.5
    mask[0, 0] = False
    taken = regard.hard(sampled=True).drawn(torch.arange(3), 5, torch.Generator().manual_seed(5))
    weights = taken(scores, mask)
    log = taken.log_probability(scores, mask)
    softmax = regard.softmax()(scores, mask)
    alive = mask.any(-1)
    torch.testing.assert_close(log[alive].exp(), (weights * softmax).sum(-1)[alive])
    assert log[~alive].abs().sum() == 0
    (found,) = torch.autograd.grad(log.sum(), scores)
    torch.testing.assert_close(found, (weights - softmax).detach() * alive[..., None])
    assert regard.hard().log_probability(torch.zeros(3, 0), None).tolist() == [0, 0, 0]
    assert regard.hard().log_probability(torch.zeros(2, 3, 0), None).shape == (2, 3)


def test_a_choice_has_a_gradient_of_zero() -> None:
    scores = torch.randn(2, 5, requires_grad=True)
    for normalise in (regard.hard(), regard.hard(sampled=True)):
        (found,) = torch.autograd.grad((normalise(scores) * torch.randn(2, 5)).sum(), scores)
        assert found.abs().sum() == 0


def test_straight_through_is_hard_forward_and_softmax_backward() -> None:
    scores = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    push = torch.randn(3, 5, 7, dtype=torch.float64)
    plain = regard.hard(sampled=True).drawn(torch.arange(3), 5, torch.Generator().manual_seed(5))
    through = regard.hard(sampled=True, estimate="straight-through")
    through = through.drawn(torch.arange(3), 5, torch.Generator().manual_seed(5))
    torch.testing.assert_close(through(scores), plain(scores))
    (found,) = torch.autograd.grad((through(scores) * push).sum(), scores)
    (wanted,) = torch.autograd.grad((torch.softmax(scores, -1) * push).sum(), scores)
    torch.testing.assert_close(found, wanted)
    mask = torch.rand(3, 5, 7) < 0.5
    torch.testing.assert_close(through(scores, mask), plain(scores, mask))
    (found,) = torch.autograd.grad((through(scores, mask) * push).sum(), scores)
    (wanted,) = torch.autograd.grad((regard.softmax()(scores, mask) * push).sum(), scores)
    torch.testing.assert_close(found, wanted)


def test_gumbel_is_softmax_of_noisy_scores() -> None:
    scores = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    relaxed = regard.gumbel(0.5).drawn(torch.arange(3), 5, torch.Generator().manual_seed(5))
    again = regard.gumbel(0.5).drawn(torch.arange(3), 5, torch.Generator().manual_seed(5))
    seed = chance.draw_seed(torch.Generator().manual_seed(5), torch.device("cpu"))
    uniform = chance.uniform(seed, torch.arange(3), torch.arange(5), torch.arange(7)).double()
    wanted = torch.softmax((scores - torch.log(-torch.log(uniform))) / 0.5, -1)
    torch.testing.assert_close(relaxed(scores), wanted, rtol=1e-6, atol=1e-8)
    assert torch.equal(relaxed(scores), again(scores))
    torch.testing.assert_close(relaxed.rows(2, 4)(scores[:, 2:4]), relaxed(scores)[:, 2:4])
    torch.testing.assert_close(relaxed.rows(1, 5).rows(1, 3)(scores[:, 2:4]), relaxed(scores)[:, 2:4])
    through = regard.gumbel(0.5, straight_through=True).drawn(torch.arange(3), 5, torch.Generator().manual_seed(5))
    assert torch.equal(through(scores).argmax(-1), wanted.argmax(-1))
    assert set(through(scores).round(decimals=9).unique().tolist()) == {0, 1}
    push = torch.randn(3, 5, 7, dtype=torch.float64)
    (found,) = torch.autograd.grad((through(scores) * push).sum(), scores)
    (soft,) = torch.autograd.grad((relaxed(scores) * push).sum(), scores)
    torch.testing.assert_close(found, soft)
    assert relaxed.drawn(torch.arange(3), 5, None) is relaxed
    assert relaxed.mapped(lambda tensor, own: tensor[:1]).batch.tolist() == [0]
    free = regard.gumbel()
    assert free.mapped(lambda tensor, own: tensor * 0) is free
    assert regard.gumbel(straight_through=True)(torch.zeros(1, 3, 0)).shape == (1, 3, 0)


def test_the_score_function_s_gradient_is_right_on_average() -> None:
    """E[f(k) grad log p(k)] over draws is the gradient of E[f], within four standard errors."""
    scores = torch.tensor([0.5, -1.0, 1.5, 0.0], dtype=torch.float64)
    reward = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    count = 20_000
    many = scores.expand(count, 1, -1).clone().requires_grad_()
    drawn = regard.hard(sampled=True).drawn(torch.arange(count), 1, torch.Generator().manual_seed(7))
    gained = (drawn(many) * reward).sum(-1).detach()
    (each,) = torch.autograd.grad((gained * drawn.log_probability(many, None)).sum(), many)
    single = scores.clone().requires_grad_()
    (exact,) = torch.autograd.grad((torch.softmax(single, -1) * reward).sum(), single)
    error = each[:, 0].std(0) / math.sqrt(count)
    assert ((each[:, 0].mean(0) - exact).abs() < 4 * error).all()


def test_helpers_of_choice() -> None:
    seen = torch.tensor([[True, False, True], [False] * 3])
    assert first_largest(torch.tensor([[1.0, 5.0, 1.0], [0.0] * 3]), seen).tolist() == [0, 3]
    assert one_hot(torch.tensor([2, 3]), 3, torch.float32).tolist() == [[0, 0, 1], [0, 0, 0]]
