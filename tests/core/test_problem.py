"""One question in one form: what is cleaned, split and drawn before a road computes."""

from dataclasses import dataclass

import pytest
import torch

import regard
from regard.core.problem import Problem, prepare
from regard.core.scores import Change, Pair

QUERY, KEY, VALUE = torch.randn(2, 6, 5, 3), torch.randn(2, 2, 7, 3), torch.randn(2, 2, 7, 11)


def problem(**changed: object) -> Problem:
    arguments = {"query": QUERY, "key": KEY, "value": VALUE, "score": regard.dot(), "normalise": regard.softmax()}
    return prepare(**arguments | {"grouped": True} | changed)


def test_heads_that_share_a_key_head_stand_apart() -> None:
    grouped = problem(normalise=regard.softmax(torch.arange(1.0, 7)), mask=regard.causal(), bias=regard.alibi(6))
    assert (grouped.shape, grouped.groups, grouped.batch) == ((2, 6, 5, 7), 3, (2, 2, 3))
    assert (grouped.queries, grouped.keys) == (5, 7)
    assert grouped.query.shape == (2, 2, 3, 5, 3)
    assert grouped.key.shape == (2, 2, 1, 7, 3)
    assert grouped.value.shape == (2, 2, 1, 7, 11)
    assert torch.equal(grouped.query[:, 1, 2], QUERY[:, 5])
    assert grouped.normalise.temperature.shape == (2, 3)
    assert grouped.bias_tile(range(5), range(7)).shape == (2, 3, 5, 7)
    assert grouped.mask_tile(range(5), range(7)).shape == (5, 7)
    assert torch.equal(grouped.joined(grouped.query, 2), QUERY)
    assert torch.equal(grouped.split(QUERY, 2), grouped.query)


def test_without_groups_nothing_is_split() -> None:
    plain = problem(query=QUERY[:, :2], grouped=False)
    assert (plain.groups, plain.batch) == (1, (2, 2))
    assert plain.split(QUERY, 2) is QUERY
    assert plain.joined(QUERY, 2) is QUERY
    assert plain.mask_tile(range(5), range(7)) is True
    assert plain.bias_tile(range(5), range(7)) is None
    alone = problem(query=QUERY[:, :2])
    assert (alone.groups, alone.batch) == (1, (2, 2))


def test_what_nobody_asks_for_is_not_done() -> None:
    plain = prepare(QUERY[0, 0], KEY[0, 0], None, score=regard.dot(), normalise=regard.softmax())
    assert (plain.mask, plain.bias, plain.see, plain.groups, plain.dropout, plain.seed) == (None, None, (), 1, 0, None)
    assert plain.value is plain.key


def test_statistics_weighted_by_query_are_split_too() -> None:
    share = torch.rand(6, 5)
    grouped = problem(see=[regard.Received(share), regard.Entropy()])
    assert grouped.see[0].weights.shape == (2, 3, 5)
    assert grouped.see[1] == regard.Entropy()


def test_heads_that_only_parameters_have() -> None:
    """A weight [heads, width] makes heads of queries and keys that have none."""
    context = regard.attend(
        torch.randn(5, 3), torch.randn(7, 3), torch.randn(7, 11), score=regard.additive(torch.randn(4, 3))
    )
    assert context.shape == (4, 5, 11)
    wide = regard.attend(
        torch.randn(6, 5, 3), KEY[0], VALUE[0], score=regard.additive(torch.randn(3, 1, 3)), grouped=True
    )
    assert wide.shape == (3, 6, 5, 11)


@dataclass(frozen=True, eq=False)
class Powered(Pair):
    """A pair form of a user's own, with a parameter [*batch]: the sum of |q - k| to a learned power."""

    power: torch.Tensor

    def __call__(self, query: torch.Tensor | None, key: torch.Tensor) -> torch.Tensor:
        assert query is not None
        lag = (query.unsqueeze(-2) - key.unsqueeze(-3)).abs()
        return -(lag ** self.power[..., None, None, None]).sum(-1)

    def mapped(self, change: Change) -> "Powered":
        return Powered(change(self.power, 0))


@pytest.mark.parametrize("road", ["definition", "auto"])
def test_a_pair_form_of_one_s_own_has_parameters(road: str) -> None:
    """They widen the batch, and are split with the heads."""
    power = torch.tensor([1.0, 2.0])
    query, key = torch.randn(5, 3), torch.randn(7, 3)
    context = regard.attend(query, key, key, score=Powered(power), backend=road)
    for head in range(2):
        torch.testing.assert_close(context[head], regard.attend(query, key, key, score=Powered(power[head])))
    six = torch.rand(6) + 1
    grouped = regard.attend(QUERY, KEY, VALUE, score=Powered(six), grouped=True, backend=road)
    wanted = regard.attend(
        QUERY, KEY.repeat_interleave(3, 1), VALUE.repeat_interleave(3, 1), score=Powered(six), backend="definition"
    )
    torch.testing.assert_close(grouped, wanted)


class Overlap(Pair):
    """A pair form of a user's own that is no dataclass."""

    def __call__(self, query: torch.Tensor | None, key: torch.Tensor) -> torch.Tensor:
        assert query is not None
        return torch.minimum(query.unsqueeze(-2), key.unsqueeze(-3)).sum(-1)

    def mapped(self, change: Change) -> "Overlap":
        return self


@pytest.mark.parametrize("road", ["definition", "tiled", "auto"])
def test_a_pair_form_need_not_be_a_dataclass(road: str) -> None:
    query, key = torch.randn(2, 5, 3), torch.randn(2, 7, 3)
    wanted = torch.softmax(Overlap()(query, key), -1) @ key
    torch.testing.assert_close(regard.attend(query, key, key, score=Overlap(), backend=road), wanted)


@pytest.mark.parametrize("road", ["definition", "tiled", "auto"])
def test_sides_are_as_wide_as_the_weight_on_every_road(road: str) -> None:
    with pytest.raises(ValueError, match=r"^query: came float32\[2, 5, 3\], its width is 3; wanted width 4, by weight"):
        regard.attend(
            torch.randn(2, 5, 3), torch.randn(2, 7, 3), torch.randn(2, 7, 3), score=regard.additive(torch.randn(4)),
            backend=road,
        )  # fmt: skip


def test_tokens_are_cleaned_where_a_mask_could_hide_them() -> None:
    key, value, query = KEY.clone(), VALUE.clone(), QUERY.clone()
    key[0, 1, 3], value[1, 0, 4, 2], query[0, 5, 1] = torch.nan, torch.inf, torch.nan
    bare = problem(query=query, key=key, value=value)
    assert bare.bad_key is None
    assert bare.bad_query is None
    assert bare.key.isnan().any()
    cleaned = problem(query=query, key=key, value=value, mask=regard.causal())
    assert cleaned.bad_key.nonzero().tolist() == [[0, 1, 0, 3], [1, 0, 0, 4]]
    assert cleaned.bad_query.nonzero().tolist() == [[0, 1, 2, 1]]
    for tensor in (cleaned.query, cleaned.key, cleaned.value):
        assert torch.isfinite(tensor).all()
    sound = problem(mask=regard.causal())
    assert sound.bad_key is None
    assert sound.bad_query is None


def test_a_sum_that_overflows_is_no_broken_token() -> None:
    """The quick look is at a sum; where that is infinite, every token is looked at."""
    huge = torch.full((2, 2, 7, 3), 3e38)
    assert problem(key=huge, mask=regard.causal()).bad_key is None


def test_keys_that_are_their_own_values_are_cleaned_once() -> None:
    key = KEY.clone()
    key[0, 0, 0] = torch.nan
    cleaned = problem(key=key, value=key, mask=regard.causal())
    assert cleaned.bad_key.sum() == 1


@pytest.mark.parametrize(
    ("normalise", "wanted"),
    [
        (regard.softmax(), range(3, 5)),
        (regard.sparsemax(), range(3, 5)),
        (regard.hard(), range(3, 5)),
        (regard.given(torch.ones(5, 7)), range(7)),
        (regard.gumbel(), range(7)),
        (regard.edited(regard.softmax(), lambda w: w), range(7)),
        (lambda scores, mask: torch.softmax(scores, -1), range(7)),
    ],
    ids=["softmax", "sparsemax", "hard", "given", "gumbel", "edited", "own"],
)
def test_the_columns_that_rows_can_reach(normalise: object, wanted: range) -> None:
    mask = regard.window(1, right=0, align="start")
    assert problem(mask=mask, normalise=normalise).span(range(4, 5)) == wanted
    assert problem(normalise=normalise).span(range(4, 5)) == range(7)


def test_what_is_random_is_drawn_once() -> None:
    def drawn(**more: object) -> Problem:
        return problem(generator=torch.Generator().manual_seed(3), **more)

    assert drawn().seed is None
    assert drawn(dropout=1.0).seed is None
    assert torch.equal(drawn(dropout=0.5).seed, drawn(dropout=0.5).seed)
    hard = drawn(normalise=regard.hard(sampled=True)).normalise
    assert hard.chosen.shape == (2, 2, 3, 5)
    assert torch.equal(hard.chosen, drawn(normalise=regard.hard(sampled=True)).normalise.chosen)
    assert drawn(normalise=regard.gumbel()).normalise.batch.shape == (2, 2, 3)


def test_everything_may_be_dropped() -> None:
    context = regard.attend(QUERY[:, :2], KEY, VALUE, dropout=1.0)
    assert context.shape == (2, 2, 5, 11)
    assert context.abs().sum() == 0
