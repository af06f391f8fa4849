"""Laws of weights: what they sum to, what is zero, what changes nothing, and what nothing leaks through."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

import regard
from regard.core.scores import as_score
from tests.cases import Case
from tests.held import Results, agree, everywhere, hold, looked, masked, numbers, statistics, visible
from tests.parts import NORMALISERS, SCORES, Part
from tests.plain import EXACT, Rounding, plain, repeated


def rows_sum_to_one_or_to_zero(case: Case, road: str) -> None:
    """The weights of every row sum to one, or to zero where there is nothing to see."""
    weights = case.look(road, regard.Weights()).weights
    alive = visible(case).any(-1)
    total = weights.sum(-1).double()
    exact = 1e-12 if weights.dtype == torch.float64 else 1e-5
    everywhere((total - alive.double()).abs() <= exact, "a row sums to one or to zero", total, alive.double())


def no_weight_is_negative(case: Case, road: str) -> None:
    """No weight is negative, and none is NaN."""
    weights = case.look(road, regard.Weights()).weights
    everywhere(weights >= 0, "a weight is zero or more", weights)


def a_masked_weight_is_exactly_zero(case: Case, road: str) -> None:
    """What a mask hides has a weight of exactly zero."""
    weights = case.look(road, regard.Weights()).weights
    everywhere((weights == 0) | masked(case), "a masked weight is zero", weights)


def minus_infinity_is_a_mask(case: Case, road: str) -> None:
    """A bias of minus infinity hides a key as a mask does."""
    assert case.bias is not None
    holes = case.bias.fixed["holes"]
    mask = Part("tensor", fixed={"seen": ~holes})
    both = mask if case.mask is None else Part("both", parts=(case.mask, mask))
    weights = case.look(road, regard.Weights()).weights
    everywhere((weights == 0) | visible(case), "a weight behind minus infinity is zero", weights)

    def as_mask(other: Case) -> Results:
        assert other.bias is not None
        filled = replace(other.bias, name="tensor", fixed={})
        return looked(replace(other, bias=filled, mask=both), road, statistics())

    agree(case, looked(case, road, statistics()), as_mask, "a bias of minus infinity is a mask")


def shifting_the_scores_changes_nothing(case: Case, road: str) -> None:
    """A number added to all scores of a row changes no weight."""
    shift = torch.randn(case.queries, 1, generator=numbers(case, 1), dtype=torch.float64).to(case.dtype) * 3

    def shifted(other: Case) -> Results:
        more = Part("tensor", tensors={"bias": shift.to(other.dtype)})
        bias = more if other.bias is None else Part("sum", parts=(other.bias, more))
        return looked(replace(other, bias=bias), road, [regard.Weights(), regard.Entropy()])

    agree(case, looked(case, road, [regard.Weights(), regard.Entropy()]), shifted, "a shift of the scores")


def attention_is_weights_then_a_sum(case: Case, road: str) -> None:
    """`attend` is `weigh` followed by `gather`."""

    whole = (*case.batch[:-1], case.key.shape[-3]) if case.grouped else case.batch
    case = replace(case, key=case.key.expand(*whole, *case.key.shape[-2:]))  # no batch that only the values have

    def by_steps(other: Case) -> Results:
        weights = regard.weigh(other.query, other.key, **other.arguments(), generator=other.generator())
        context = regard.gather(weights, other.value, grouped=other.grouped)
        return {"context": context.expand(*other.shape[:-1], other.value.shape[-1])}

    agree(case, looked(case, road), by_steps, "attend is weigh, then gather")


def the_context_is_linear_in_the_values(case: Case, road: str) -> None:
    """Attending to a sum of values is the sum of attending to each."""
    other = torch.randn(case.value.shape, generator=numbers(case, 2), dtype=torch.float64).to(case.value)
    apart = case.attend(road) + 2 * replace(case, value=other).attend(road)

    def together(c: Case) -> Results:
        return {"context": replace(c, value=c.value + 2 * other.to(c.value)).attend(road)}

    agree(case, {"context": apart}, together, "attending to a sum")


def a_score_is_two_sides_and_a_pair(case: Case, road: str) -> None:
    """A score is its pair form of its two sides, for every score."""

    def score(other: Case) -> Results:
        return {"scores": as_score(SCORES[other.score.name](other.score))(other.query, other.key)}

    whole = as_score(SCORES[case.score.name](case.score))
    split = whole.pair(whole.query_side(case.query), whole.key_side(case.key))
    agree(case, {"scores": split}, score, "a score is its pair form of its two sides")


def a_score_is_what_its_formula_says(case: Case, road: str) -> None:
    """Scores with bias and mask are those of the formula, written out in plain PyTorch."""
    scores = plain(case).scores
    seen = scores != -torch.inf
    logsumexp = torch.logsumexp(scores.masked_fill(~seen.any(-1, keepdim=True), 0.0), -1)

    def of_regard(other: Case) -> Results:
        found = other.look(road, regard.LogSumExp()).logsumexp
        return {"logsumexp": found.masked_fill(~seen.any(-1), 0.0)}

    agree(case, {"logsumexp": logsumexp.masked_fill(~seen.any(-1), 0.0)}, of_regard, "the log-sum-exp of the formula")


def entropy_is_at_most_the_logarithm_of_the_count(case: Case, road: str) -> None:
    """A row's entropy is between zero and the logarithm of how many keys it sees."""
    entropy = case.look(road, regard.Entropy()).entropy
    most = visible(case).sum(-1).clamp_min(1).double().log()
    slack = 1e-12 if entropy.dtype == torch.float64 else 1e-5
    everywhere((entropy >= -slack) & (entropy <= most + slack), "entropy is within its bounds", entropy, most)


def entropy_is_the_log_sum_exp_less_the_mean_score(case: Case, road: str) -> None:
    """Under softmax, entropy is the log-sum-exp minus the mean of the scores by their weights."""
    seen = case.look(road, [regard.Weights(), regard.Entropy(), regard.LogSumExp()])
    scores = plain(case).scores / case.normalise.options.get("temperature", 1.0)
    alive = (scores != -torch.inf).any(-1)
    mean = (seen.weights * scores.masked_fill(scores == -torch.inf, 0.0)).sum(-1)
    wanted = (seen.logsumexp - mean).masked_fill(~alive, 0.0)
    everywhere((seen.entropy - wanted).abs() <= 1e-9 * (1 + mean.abs()), "H = lse - <p, s>", seen.entropy, wanted)


def temperature_is_a_scale(case: Case, road: str) -> None:
    """Softmax at a temperature is softmax of scores that much smaller."""
    heat = 0.3 + (case.seed % 29) / 7
    warm = replace(case, normalise=Part("softmax at a temperature", {"temperature": heat}))

    def scaled(other: Case) -> Results:
        score = Part("dot times a number", {"scale": other.score.options["scale"] / heat})
        return looked(replace(other, score=score), road)

    agree(case, looked(warm, road), scaled, "a temperature is a scale")


def a_cold_softmax_is_hard(case: Case, road: str) -> None:
    """As the temperature goes to zero, softmax goes to the best key."""
    scores = plain(case).scores
    if case.keys < 2:
        return
    first, second = scores.topk(2, -1).values.unbind(-1)
    decided = (first - second > 1e-3) | (second == -torch.inf)
    cold = replace(case, normalise=Part("softmax at a temperature", {"temperature": 1e-5})).look(road, regard.Weights())
    chosen = case.look(road, regard.Weights()).weights
    apart = (cold.weights - chosen).abs().amax(-1)
    everywhere((apart < 1e-12) | ~decided, "a cold softmax takes the best key", apart)


def entmax_of_order_one_is_softmax(case: Case, road: str) -> None:
    """Entmax of order one is softmax, and near one it is near it."""

    def softmax(other: Case) -> Results:
        return looked(replace(other, normalise=Part("softmax")), road, [regard.Weights()])

    one = replace(case, normalise=Part("entmax", {"alpha": 1.0}))
    agree(case, looked(one, road, [regard.Weights()]), softmax, "entmax of order one is softmax")
    near = replace(case, normalise=Part("entmax", {"alpha": 1 + 1e-7})).look(road, regard.Weights()).weights
    scores = plain(case).scores
    if not case.keys:
        return
    spread = (scores.amax(-1, keepdim=True) - scores).where(scores != -torch.inf, 0.0).amax(-1, keepdim=True)
    apart = (near - softmax(case)["weights"]).abs()
    everywhere(apart <= 1e-7 * (1 + spread) ** 2, "entmax of order nearly one is nearly softmax", apart)


def entmax_of_order_two_is_the_nearest_point_of_the_simplex(case: Case, road: str) -> None:
    """Entmax of order two is sparsemax: the scores, less a threshold found by sorting, and nothing below it."""
    scores = plain(case).scores
    if not case.keys:
        return
    ordered = scores.sort(-1, descending=True).values
    count = torch.arange(1, case.keys + 1, dtype=torch.float64)
    total = ordered.masked_fill(ordered == -torch.inf, 0.0).cumsum(-1)
    inside = (1 + count * ordered > total) & (ordered != -torch.inf)
    support = inside.sum(-1, keepdim=True).clamp_min(1)
    threshold = (total.gather(-1, support - 1) - 1) / support
    wanted = (scores - threshold).clamp_min(0).masked_fill(scores == -torch.inf, 0.0)
    for alpha in (Part("sparsemax"), Part("entmax", {"alpha": 2.0}), learned(2.0)):
        weights = replace(case, normalise=alpha).look(road, regard.Weights()).weights
        scale = scores.where(scores != -torch.inf, 0.0).abs().amax(-1, keepdim=True)
        everywhere((weights - wanted).abs() <= 1e-14 * (100 + scale), "sparsemax by sorting", weights, wanted)


def learned(alpha: float) -> Part:
    return Part("entmax of a learned order", tensors={"alpha": torch.tensor(alpha, dtype=torch.float64)})


def entmax_meets_its_conditions(case: Case, road: str) -> None:
    """Weights of entmax meet the conditions that make them the only right ones, for any order and in any type.

    p^(a-1)/(a-1) + the lag behind the best score is the same for all keys with weight, and less than that of others.
    """
    if not case.keys:
        return
    scores = plain(case.to(torch.float64)).scores.to(torch.promote_types(case.dtype, torch.float32))
    normalise = NORMALISERS[case.normalise.name](case.normalise)
    weights = normalise(scores, None).double()
    alpha = case.normalise.options.get("alpha", 2.0)
    alpha = (
        case.normalise.tensors["alpha"][..., None, None]
        if case.normalise.tensors
        else torch.tensor(alpha, dtype=torch.float64)
    )
    order = (alpha.double() - 1).clamp_min(1e-16)
    lag = (scores.amax(-1, keepdim=True) - scores).double().where(scores != -torch.inf, torch.inf)
    support = weights >= torch.finfo(scores.dtype).smallest_normal  # what is smaller has few bits, or none
    level = torch.expm1(order * weights.where(support, 1.0).log()) / order + lag.where(support, 0.0)
    high = level.masked_fill(~support, -torch.inf).amax(-1, keepdim=True)
    low = level.masked_fill(~support, torch.inf).amin(-1, keepdim=True)
    eps = torch.finfo(scores.dtype).eps
    slack = eps * (
        8 + 4 * lag.where(support, 0.0).amax(-1, keepdim=True) + 30 * (weights**order).amax(-1, keepdim=True)
    )
    alive = support.any(-1, keepdim=True)
    everywhere((high - low <= slack) | ~alive, "all keys with weight are on one level", (high - low).where(alive, 0.0))
    none = math.log(torch.finfo(scores.dtype).smallest_normal)  # below this a weight is too small for the type
    least = lag + torch.expm1(order * none) / order
    everywhere(support | (least >= low - slack) | ~alive, "a key without weight lags behind the others", least)


def nothing_to_see_gives_nothing(case: Case, road: str) -> None:
    """A row without anything to see: weights, context and entropy zero, log-sum-exp minus infinity, top key -1."""
    things = [regard.Weights(), regard.Entropy(), regard.LogSumExp(), regard.Top(2), regard.Received()]
    dead = ~visible(case).any(-1)
    if not case.serves(road, things):
        context = case.attend(road)
        everywhere((context == 0) | ~dead[..., None], "a row without anything to see is zero", context)
        return
    context, seen = case.attend(road, things)
    everywhere((context == 0) | ~dead[..., None], "a row without anything to see has no context", context)
    everywhere((seen.weights == 0) | ~dead[..., None], "a row without anything to see has no weights", seen.weights)
    everywhere((seen.entropy == 0) | ~dead, "a row without anything to see has no entropy", seen.entropy)
    lowest = (seen.logsumexp == -torch.inf) == dead
    everywhere(lowest, "the log-sum-exp is minus infinity where there is nothing to see", seen.logsumexp)
    everywhere((seen.top.indices == -1) | ~dead[..., None], "nothing to see, no top key", seen.top.indices)
    hold(not bool(seen.received.isnan().any()), "what keys receive is a number")


def nothing_to_see_learns_nothing(case: Case, road: str) -> None:
    """A query without anything to see, and a key that nobody sees, get a gradient of exactly zero."""
    learning = case.learning()
    context = learning.attend(road)
    push = torch.randn(context.shape, generator=numbers(case, 3), dtype=torch.float64).to(context)
    (context * push).sum().backward()
    seen = visible(case)
    for name, leaf in learning.leaves().items():
        hold(leaf.grad is None or not bool(leaf.grad.isnan().any()), f"the gradient of {name} is a number")
    blind = ~seen.any(-1).flatten(0, -2).any(0) if seen.dim() > 2 else ~seen.any(-1)
    unseen = ~seen.flatten(0, -3).any(0).any(-2) if seen.dim() > 2 else ~seen.any(-2)
    for name, tensor, places in (
        ("query", learning.query, blind),
        ("key", learning.key, unseen),
        ("value", learning.value, unseen),
    ):
        if tensor is None or tensor.grad is None:
            continue
        sound = (tensor.grad == 0) | ~places[:, None]
        everywhere(sound, f"a {name} that sees or is seen by nothing learns nothing", tensor.grad)


def dropout_keeps_its_share(case: Case, road: str) -> None:
    """Dropout sets the given share of weights to zero and divides the others by what is left."""
    eye = torch.eye(case.keys, dtype=case.dtype).expand(*case.value.shape[:-2], case.keys, case.keys)
    whole = replace(case, value=eye)
    weights = replace(whole, dropout=0.0).attend(road)
    dropped = whole.attend(road)
    share = case.dropout
    kept = dropped != 0
    wanted = (weights / (1 - share)).masked_fill(~kept, 0.0)
    everywhere((dropped - wanted).abs() <= 1e-12, "a weight is dropped, or made larger", dropped, wanted)
    count, left = int((weights != 0).sum()), int(kept.sum())
    sigma = math.sqrt(count * share * (1 - share))
    hold(
        abs(left - count * (1 - share)) <= 6 * sigma + 5,
        f"of {count} weights {left} were kept, with a dropout of {share}",
    )


def statistics_are_of_the_weights_before_dropout(case: Case, road: str) -> None:
    """What is seen does not depend on dropout."""
    with_it, without = looked(case, road, statistics()), looked(replace(case, dropout=0.0), road, statistics())
    for name in ("weights", "entropy", "received", "logsumexp"):
        everywhere((with_it[name] == without[name]) | with_it[name].isnan(), f"{name} is of before dropout")


def chance_replays_from_its_generator(case: Case, road: str) -> None:
    """The same state of the generator gives the same random choices, dropout and noise."""
    things = statistics() if case.serves(road, statistics()) else []
    first, second = looked(case, road, things), looked(case, road, things)
    for name, tensor in first.items():
        everywhere((tensor == second[name]) | tensor.isnan(), f"{name} repeats", tensor, second[name])


def co_attention_is_two_attends(case: Case, road: str) -> None:
    """Both contexts of `coattend` are those of one matrix of scores, normalised along either side."""
    sides = replace(case, value=case.key) if case.value.shape[-1] == 0 else case
    assert sides.query is not None
    lead = case.batch  # none that only the values have
    sides = replace(sides, query=sides.query.expand(*lead, *sides.query.shape[-2:]))
    sides = replace(sides, key=sides.key.expand(*lead, *sides.key.shape[-2:]))
    values = torch.randn(case.queries, 3, generator=numbers(case, 4), dtype=torch.float64).to(case.dtype)

    def both(other: Case) -> Results:
        arguments = other.arguments()
        del arguments["grouped"]
        seen, found = regard.coattend(
            other.query, other.key, values.to(other.dtype), other.value, **arguments, backend=road
        )
        return {"of the keys": seen, "of the queries": found}

    def by_hand(other: Case, rounding: Rounding = EXACT) -> Results:
        scores = plain(other, rounding).scores
        normalise = NORMALISERS[other.normalise.name](other.normalise)
        value = repeated(other, other.value)
        return {
            "of the keys": normalise(scores, None) @ value,
            "of the queries": normalise(scores.mT, None) @ values.to(other.dtype),
        }

    agree(sides, both(sides), by_hand, "co-attention is attention both ways", by_hand)
