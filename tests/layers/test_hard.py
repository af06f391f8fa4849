"""Hard attention and its learning rule: 100,000 gradients against the exact one by enumeration; which are biased."""

import itertools
import re

import pytest
import torch
from torch import Tensor, nn

from regard.core.additive import additive
from regard.core.entmax import sparsemax
from regard.core.hard import gumbel, hard
from regard.core.normalisers import softmax
from regard.core.see import Weights
from regard.core.sequences import lengths
from regard.layers import (
    AdditiveScore,
    Attention,
    GumbelChoice,
    HardAttention,
    HardChoice,
    Reinforce,
    reinforce,
    who_draws,
)

COPIES = 100_000
QUERIES, KEYS, WIDTH, CLASSES = 2, 3, 2, 3
SHAPES = {"weight": (WIDTH,), "key_weight": (WIDTH, 1), "readout": (CLASSES, QUERIES)}


class Case:
    """A small problem: two queries, three keys; the likelihood of a class depends on both contexts together."""

    def __init__(self) -> None:
        numbers = torch.Generator().manual_seed(11)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=numbers, dtype=torch.float64)

        self.query, self.key, self.value = draw(QUERIES, WIDTH), draw(KEYS, 1), draw(KEYS, 1)
        self.parameters = {name: 1.5 * draw(*shape) for name, shape in SHAPES.items()}

    def likelihood(self, context: Tensor, readout: Tensor) -> Tensor:
        """log p(y = 0 | contexts [*batch, QUERIES, 1])"""
        return torch.log_softmax((readout @ torch.tanh(context))[..., 0], -1)[..., 0]

    def log_weights(self, parameters: dict[str, Tensor]) -> Tensor:
        score = additive(parameters["weight"], None, parameters["key_weight"])
        return torch.log_softmax(score(self.query, self.key), -1)

    def attention(self, parameters: dict[str, Tensor], normalise=None) -> Attention:
        score = additive(parameters["weight"], None, parameters["key_weight"])
        return Attention(score) if normalise is None else Attention(score, normalise)

    def outcomes(self, parameters: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
        """(log p(ŝ), log p(y|ŝ)) of all the keys that the two queries can take."""
        log, readout = self.log_weights(parameters), parameters["readout"]
        return [
            (log[0, first] + log[1, second], self.likelihood(self.value[[first, second]], readout))
            for first, second in itertools.product(range(KEYS), repeat=QUERIES)
        ]

    def hard_objective(self, parameters: dict[str, Tensor]) -> Tensor:
        """E[log p(y|ŝ)]"""
        return sum(log.exp() * gain for log, gain in self.outcomes(parameters))

    def soft_objective(self, parameters: dict[str, Tensor]) -> Tensor:
        """log p(y|E[ŝ])"""
        return self.likelihood(self.log_weights(parameters).exp() @ self.value, parameters["readout"])

    def entropy(self, parameters: dict[str, Tensor]) -> Tensor:
        log = self.log_weights(parameters)
        return -(log.exp() * log).sum()

    def objective(self, entropy_weight: float, expectation: float):
        """What the learning rule climbs with these techniques: a function of the parameters."""
        return lambda parameters: (
            (1 - expectation) * self.hard_objective(parameters)
            + expectation * self.soft_objective(parameters)
            + entropy_weight * self.entropy(parameters)
        )

    def exact(self, objective) -> dict[str, Tensor]:
        """The gradient of an objective of the parameters."""
        leaves = {name: tensor.clone().requires_grad_() for name, tensor in self.parameters.items()}
        gradients = torch.autograd.grad(objective(leaves), list(leaves.values()), allow_unused=True)
        return {
            name: torch.zeros_like(leaf) if gradient is None else gradient
            for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True)
        }

    def copies(self) -> dict[str, Tensor]:
        """Parameters of their own for every copy, so that one backward gives a gradient for each draw."""
        return {n: t.expand(COPIES, *t.shape).clone().requires_grad_() for n, t in self.parameters.items()}

    def estimates(self, *, expectation=0.0, seed=5, **rule: float) -> dict[str, Tensor]:
        """100,000 gradients by the learning rule, [copies, …]."""
        leaves, generator = self.copies(), torch.Generator().manual_seed(seed)
        layer = HardAttention(self.attention(leaves), expectation=expectation)
        batch = (t.expand(COPIES, *t.shape) for t in (self.query, self.key, self.value))
        context, choice = layer(*batch, generator=generator)
        likelihood = self.likelihood(context, leaves["readout"])
        loss = reinforce(likelihood, choice.log_probability.sum(-1), choice.entropy.sum(-1), **rule)
        gradients = torch.autograd.grad(-loss.sum(), list(leaves.values()))
        return dict(zip(leaves, gradients, strict=True))

    def relaxed(self, normalise) -> dict[str, Tensor]:
        """100,000 gradients through a normaliser that lets a soft gradient pass."""
        leaves = self.copies()
        batch = (t.expand(COPIES, *t.shape) for t in (self.query, self.key, self.value))
        layer = self.attention(leaves, normalise)
        context = layer(*batch, generator=torch.Generator().manual_seed(5))
        likelihood = self.likelihood(context, leaves["readout"])
        gradients = torch.autograd.grad(likelihood.sum(), list(leaves.values()))
        return dict(zip(leaves, gradients, strict=True))


CASE = Case()


def errors(estimates: dict[str, Tensor], exact: dict[str, Tensor]) -> float:
    """The largest distance of a mean from the exact number, in standard errors."""
    worst = 0.0
    for name, each in estimates.items():
        assert each.shape == (COPIES, *SHAPES[name])
        standard = each.std(0) / COPIES**0.5
        assert (standard > 0).all(), "an estimate that never varies says nothing"
        worst = max(worst, ((each.mean(0) - exact[name]).abs() / standard).max().item())
    return worst


@pytest.mark.parametrize("expectation", [0.0, 0.5])
@pytest.mark.parametrize("entropy_weight", [0.0, 0.3])
@pytest.mark.parametrize("baseline", [0.0, -1.2])
def test_the_mean_of_100000_gradients_is_the_exact_gradient(
    baseline: float, entropy_weight: float, expectation: float
) -> None:
    """Each technique on and off: with lambda_r = 1 all are unbiased, each for the objective that it names."""
    estimates = CASE.estimates(expectation=expectation, baseline=baseline, entropy_weight=entropy_weight)
    assert errors(estimates, CASE.exact(CASE.objective(entropy_weight, expectation))) < 4


@pytest.mark.parametrize("reward_weight", [0.5, 2.0])
def test_another_weight_of_the_reward_is_the_rule_but_no_gradient(reward_weight: float) -> None:
    """Its mean is the rule's expectation, by enumeration, and not the gradient of the objective."""

    def rule(parameters: dict[str, Tensor]) -> Tensor:
        return sum(
            log.exp().detach() * (gain + reward_weight * (gain.detach() + 0.7) * log)
            for log, gain in CASE.outcomes(parameters)
        )

    estimates = CASE.estimates(reward_weight=reward_weight, baseline=-0.7)
    assert errors(estimates, CASE.exact(rule)) < 4
    assert errors(estimates, CASE.exact(CASE.hard_objective)) > 8


def test_replacing_by_the_expectation_is_biased_for_either_objective_alone() -> None:
    estimates = CASE.estimates(expectation=0.5)
    assert errors(estimates, CASE.exact(CASE.hard_objective)) > 8
    assert errors(estimates, CASE.exact(CASE.soft_objective)) > 8


def test_entropy_is_another_objective() -> None:
    assert errors(CASE.estimates(entropy_weight=0.3), CASE.exact(CASE.hard_objective)) > 8


@pytest.mark.parametrize(
    "normalise",
    [hard(sampled=True, estimate="straight-through"), gumbel(0.5), gumbel(0.5, straight_through=True)],
    ids=["straight-through", "gumbel", "straight-through gumbel"],
)
def test_straight_through_and_gumbel_are_biased(normalise) -> None:
    assert errors(CASE.relaxed(normalise), CASE.exact(CASE.hard_objective)) > 8


def test_a_baseline_that_has_seen_the_draw_is_biased() -> None:
    """Why it is updated after use: with the draw's own reward in it, what is left is a tenth less."""
    leaves = CASE.copies()
    layer = HardAttention(CASE.attention(leaves), expectation=0.0)
    context, choice = layer(
        *(t.expand(COPIES, *t.shape) for t in (CASE.query, CASE.key, CASE.value)),
        generator=torch.Generator().manual_seed(5),
    )
    likelihood = CASE.likelihood(context, leaves["readout"])
    late = 0.9 * -1.2 + 0.1 * likelihood.detach()
    loss = reinforce(likelihood, choice.log_probability.sum(-1), baseline=late)
    estimates = dict(zip(leaves, torch.autograd.grad(-loss.sum(), list(leaves.values())), strict=True))
    assert errors(estimates, CASE.exact(CASE.hard_objective)) > 4


def test_a_baseline_near_the_mean_lowers_the_variance() -> None:
    mean = CASE.hard_objective(CASE.parameters).item()
    far, near = (CASE.estimates(baseline=mean + offset)["key_weight"].var(0) for offset in (3.0, 0.0))
    assert (near < 0.5 * far).all()


def small(expectation: float = 0.5) -> HardAttention:
    return HardAttention(Attention(AdditiveScore(3, 3, 5), output=nn.Linear(7, 11)), expectation=expectation).double()


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def test_who_takes_the_expectation_has_the_soft_context_and_no_draw() -> None:
    layer, query, key, value = small(), numbers(13, 2, 3), numbers(13, 5, 3), numbers(13, 5, 7)
    context, choice = layer(query, key, value, generator=torch.Generator().manual_seed(7))
    assert 0 < choice.drawn.sum().item() < 13
    soft, seen = layer.attention(query, key, value, see=Weights())
    possible = layer.attention.output(value)
    for n in range(13):
        if choice.drawn[n]:
            near = (context[n][:, None] - possible[n][None]).abs().amax(-1)
            assert near.amin(-1).max() < 1e-12, "one value for each query"
            log = seen.weights[n].log().gather(-1, near.argmin(-1)[:, None])[:, 0]
            torch.testing.assert_close(choice.log_probability[n], log)
        else:
            torch.testing.assert_close(context[n], soft[n])
            assert choice.log_probability[n].tolist() == [0.0, 0.0]
    torch.testing.assert_close(choice.entropy, -(seen.weights * seen.weights.log()).sum(-1))
    (choice.log_probability * ~choice.drawn[:, None]).sum().backward()
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in layer.parameters())


def test_half_of_the_instances_draw() -> None:
    drawn = who_draws((COPIES,), 0.5, generator=torch.Generator().manual_seed(7))
    assert abs(drawn.double().mean().item() - 0.5) < 4 * 0.5 / COPIES**0.5
    assert who_draws((2, 3), 0.0).all()
    assert not who_draws((2, 3), 1.0).any()


def test_a_decoder_holds_to_who_draws_and_remembers() -> None:
    layer, query, key, value = small(), numbers(5, 2, 3), numbers(5, 7, 3), numbers(5, 7, 7)
    drawn = torch.tensor([True, False, True, False, False])
    past = layer.attention.remember(key, value)
    soft = layer.attention(query, key, value)
    for step in range(2):
        context, choice = layer(query[:, step : step + 1], past, drawn=drawn)
        assert choice.drawn is drawn
        torch.testing.assert_close(context[~drawn], soft[:, step : step + 1][~drawn])
        assert (choice.log_probability[drawn] < 0).all()


def test_at_evaluation_the_best_key_is_taken_by_all() -> None:
    layer, query, key, value = small().eval(), numbers(13, 2, 3), numbers(13, 5, 3), numbers(13, 5, 7)
    context, choice = layer(query, key, value)
    _, seen = layer.attention(query, key, value, see=Weights())
    best = seen.weights.argmax(-1)
    torch.testing.assert_close(context, layer.attention.output(torch.take_along_dim(value, best[..., None], -2)))
    torch.testing.assert_close(choice.log_probability, seen.weights.amax(-1).log())
    assert choice.drawn.all()


def test_masks_and_rows_without_anything_to_see() -> None:
    layer, counts = small(0.0), torch.tensor([0, 2, 5])
    value = numbers(3, 5, 7)
    value[1, 2:] = torch.nan
    context, choice = layer(numbers(3, 2, 3), numbers(3, 5, 3), value, mask=lengths(keys=counts))
    torch.testing.assert_close(context[0], layer.attention.output.bias.expand(2, 11))
    assert torch.isfinite(context).all()
    assert choice.log_probability[0].tolist() == choice.entropy[0].tolist() == [0.0, 0.0]
    (context.sum() + choice.log_probability.sum() + choice.entropy.sum()).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in layer.parameters())


def test_the_same_generator_gives_the_same_choice() -> None:
    layer, inputs = small(), (numbers(13, 2, 3), numbers(13, 5, 3), numbers(13, 5, 7))
    one, other, third = (layer(*inputs, generator=torch.Generator().manual_seed(seed))[0] for seed in (7, 7, 8))
    torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert not torch.allclose(one, third)


def test_the_loss_shows_the_likelihood_and_goes_the_rules_way() -> None:
    likelihood, log, entropy = (numbers(5).requires_grad_() for _ in range(3))
    loss = reinforce(likelihood, log, entropy, baseline=-0.5, reward_weight=0.7, entropy_weight=0.2)
    torch.testing.assert_close(loss, -likelihood)
    by_likelihood, by_log, by_entropy = torch.autograd.grad(loss.sum(), (likelihood, log, entropy))
    torch.testing.assert_close(by_likelihood, -torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(by_log, -0.7 * (likelihood.detach() + 0.5))
    torch.testing.assert_close(by_entropy, torch.full((5,), -0.2, dtype=torch.float64))


def test_the_baseline_moves_after_use_and_in_training_only() -> None:
    rule = Reinforce(reward_weight=0.5).double()
    wanted = 0.0
    for _ in range(3):
        likelihood, log = numbers(5), numbers(5).requires_grad_()
        (gradient,) = torch.autograd.grad(rule(likelihood, log).sum(), log)
        torch.testing.assert_close(gradient, -0.5 * (likelihood - wanted))
        wanted = 0.9 * wanted + 0.1 * likelihood.mean().item()
        assert rule.baseline.item() == pytest.approx(wanted)
    rule.eval()
    rule(numbers(5), numbers(5))
    assert rule.baseline.item() == pytest.approx(wanted)
    other = Reinforce().double()
    other.load_state_dict(rule.state_dict())
    assert other.baseline.item() == rule.baseline.item()
    still = Reinforce(decay=1.0)
    still(numbers(5), numbers(5))
    assert still.baseline.item() == 0.0


def test_it_learns_to_look_at_the_key_that_matters() -> None:
    """From the likelihood alone: the class is the value of the key that looks like the query."""
    numbers_ = torch.Generator().manual_seed(3)
    layer = HardAttention(Attention(AdditiveScore(2, 2, 16, generator=numbers_)))
    readout, rule = nn.Linear(1, 1), Reinforce(entropy_weight=0.02)
    optimizer = torch.optim.Adam([*layer.parameters(), *readout.parameters()], lr=0.02)
    sides = torch.tensor([[1.0, 0.0], [0.0, 1.0]])

    def batch() -> tuple[Tensor, ...]:
        which = torch.randint(2, (256,), generator=numbers_)
        value = torch.randint(2, (256, 2, 1), generator=numbers_).float()
        return sides[which][:, None], sides.expand(256, 2, 2), value, value[torch.arange(256), which, 0]

    for _ in range(150):
        query, key, value, label = batch()
        context, choice = layer(query, key, value, generator=numbers_)
        logits = readout(context)[:, 0, 0]
        likelihood = -nn.functional.binary_cross_entropy_with_logits(logits, label, reduction="none")
        loss = rule(likelihood, choice.log_probability.sum(-1), choice.entropy.sum(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    query, key, value, label = batch()
    context, _ = layer.eval()(query, key, value)
    assert ((readout(context)[:, 0, 0] > 0).float() == label).float().mean() > 0.98


@pytest.mark.parametrize(
    "choice",
    [HardChoice(), HardChoice("straight-through"), GumbelChoice(0.5, straight_through=True)],
    ids=["score function", "straight-through", "gumbel"],
)
def test_choices_draw_in_training_and_take_the_best_after(choice: nn.Module) -> None:
    attention = Attention(AdditiveScore(3, 3, 5), choice).double()
    query, key = numbers(50, 2, 3), numbers(50, 5, 3)

    def looked(seed: int) -> Tensor:
        _, seen = attention(query, key, see=Weights(), generator=torch.Generator().manual_seed(seed))
        ones = torch.ones(50, 2, dtype=torch.float64)
        torch.testing.assert_close(seen.weights.amax(-1), ones)
        torch.testing.assert_close(seen.weights.sum(-1), ones)
        return seen.weights.argmax(-1)

    assert looked(1).equal(looked(1))
    assert not looked(1).equal(looked(2))
    attention.eval()
    assert looked(1).equal(looked(2))
    soft = Attention(attention.score)(query, key, see=Weights())[1].weights
    assert looked(1).equal(soft.argmax(-1))


def test_they_print_what_they_are() -> None:
    assert repr(HardChoice("straight-through")) == "HardChoice(estimate=straight-through)"
    assert repr(GumbelChoice(0.5)) == "GumbelChoice(temperature=0.5, straight_through=False)"
    assert repr(Reinforce()) == "Reinforce(reward_weight=1.0, entropy_weight=0.0, decay=0.9)"
    assert "expectation=0.5" in repr(small())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: HardAttention(Attention(normalise=sparsemax())), "its normaliser is EntmaxNormaliser; wanted soft"),
        (lambda: HardAttention(Attention(normalise=softmax(0.5))), "its normaliser is Softmax; wanted softmax() at t"),
        (lambda: HardAttention(Attention(dropout=0.5)), "attention: its dropout is 0.5, which would hide the key that"),
        (lambda: HardAttention(Attention(), expectation=2.0), "came 2.0, wanted a share between 0 and 1"),
        (lambda: HardChoice("reparameterised"), "estimate: came 'reparameterised', wanted 'score function'"),
        (lambda: GumbelChoice(0.0), "temperature: came 0.0, wanted a positive number"),
        (lambda: Reinforce(decay=2.0), "decay: came 2.0, wanted a share between 0 and 1"),
        (
            lambda: reinforce(torch.zeros(5), torch.zeros(5, 2)),
            "log_probability: came float32[5, 2] for log_likelihood float32[5]; wanted one number an instance in both.",
        ),
        (lambda: reinforce(torch.zeros(5), torch.zeros(5), entropy_weight=0.1), "entropy: came None with entropy_weig"),
        (
            lambda: small()(numbers(5, 2, 3), numbers(5, 2, 3), numbers(5, 2, 7), drawn=torch.ones(4).bool()),
            "drawn: came bool[4] for instances [5]; wanted one boolean for each. Remedy: who_draws((5,), 0.5).",
        ),
    ],
)  # fmt: skip
def test_errors_say_what_came_and_what_was_wanted(call, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call()
