"""What came back: by name, by thing, in order."""

import pytest
import torch

import regard
from regard.core.seen import Seen, as_things, combine


def test_values_are_found_by_name_and_by_thing() -> None:
    received = regard.Received(torch.ones(3))
    things = [regard.Entropy(), regard.Top(2), received]
    values = [torch.ones(3), "best", torch.zeros(2)]
    seen = Seen(things, values)
    assert seen.entropy is values[0]
    assert seen.top == "best"
    assert seen[regard.Entropy()] is values[0]
    assert seen[regard.Top(2)] == "best"
    assert seen[received] is values[2]
    with pytest.raises(KeyError):
        seen[regard.Received(torch.ones(3))]
    assert list(seen) == things
    assert list(seen.values()) == values
    assert len(seen) == 3
    assert repr(seen) == "Seen(entropy, top, received)"
    assert regard.Entropy() in seen


def test_of_two_things_with_a_name_the_first_is_meant() -> None:
    seen = Seen([regard.Top(2), regard.Top(3)], ["two", "three"])
    assert seen.top == "two"
    assert seen[regard.Top(3)] == "three"


def test_private_names_are_not_looked_up() -> None:
    seen = Seen([regard.Entropy()], [torch.ones(3)])
    with pytest.raises(AttributeError):
        _ = seen._weights
    assert not hasattr(seen, "__len_hint__")
    with pytest.raises(AttributeError, match=r"^weights: not asked for; see=nothing\. Remedy"):
        _ = Seen([], []).weights


def test_one_thing_or_several() -> None:
    assert as_things(None) == ()
    assert as_things(regard.Entropy()) == (regard.Entropy(),)
    assert as_things([regard.Entropy(), regard.Top(1)]) == (regard.Entropy(), regard.Top(1))
    assert as_things(()) == ()


def test_nothing_to_see_is_still_a_pair() -> None:
    context, seen = regard.attend(torch.ones(2, 3), torch.ones(5, 3), torch.ones(5, 3), see=[])
    assert context.shape == (2, 3)
    assert len(seen) == 0


def test_what_was_seen_survives_a_copy() -> None:
    import copy

    seen = Seen([regard.Entropy()], [torch.ones(3)])
    assert torch.equal(copy.deepcopy(seen).entropy, seen.entropy)


def test_a_single_block_is_not_copied() -> None:
    part = (torch.randn(2, 3, 5),)
    assert combine(regard.Weights(), [part])[0] is part[0]
    assert torch.equal(combine(regard.Weights(), [part, part])[0], torch.cat([part[0]] * 2, -2))
