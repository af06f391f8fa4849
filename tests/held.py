"""What laws say when they are broken, and how close two results of the same case must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

import regard
from regard.core.see import Thing
from tests.cases import Case
from tests.parts import Part
from tests.plain import Rounding, bias_of, mask_of
from tests.tolerances import FEW, FIXED, MANY, Forward, far, own_changes

Results = dict[str, Tensor]


def hold(true: bool | Tensor, sentence: str) -> None:
    """The sentence, unless it holds."""
    if not bool(true):
        raise AssertionError(sentence)


def everywhere(true: Tensor, sentence: str, *shown: Tensor) -> None:
    """The sentence with the first place where it does not hold, and what is there."""
    if bool(true.all()):
        return
    place = tuple((~true).nonzero()[0].tolist())
    values = ", ".join(f"{tensor[place].item():.9g}" for tensor in shown)
    raise AssertionError(
        f"{sentence}: not at {list(place)}{' (' + values + ')' * bool(values)}; {int((~true).sum())} of {true.numel()}"
    )


def agree(
    case: Case,
    actual: Results,
    wanted: Callable[[Case], Results],
    sentence: str,
    rounded: Callable[[Case, Rounding], Results] | None = None,
) -> None:
    """`actual` is what `wanted` makes of the case, up to a fixed tolerance or what rounding its numbers changes.

    `rounded` is `wanted` with what is computed on the way rounded too; without one, plain PyTorch stands for it.
    """
    expected = wanted(case)
    hold(actual.keys() == expected.keys(), f"{sentence}: {sorted(actual)} and {sorted(expected)} were compared")
    apart: Results = {}
    for name, tensor in actual.items():
        other = expected[name]
        hold(tensor.shape == other.shape, f"{sentence}: {name} is {list(tensor.shape)} and {list(other.shape)}")
        if not tensor.is_floating_point():
            everywhere(tensor == other, f"{sentence} ({name})", tensor, other)
            continue
        different = far(tensor, other, *FIXED[other.dtype])
        if bool(different.any()):
            apart[name] = different
    for count in (FEW, MANY):
        if not apart:
            return
        changes = own_changes(case, lambda c, _: list(wanted(c).values()), count)
        allowed = dict(zip(expected, changes, strict=True))
        apart = {name: places & far(actual[name], expected[name], allowed[name], 0.0) for name, places in apart.items()}
        apart = {name: places for name, places in apart.items() if bool(places.any())}
    if apart:
        # Rounding the sides and the scores themselves, which two ways of computing do apart, may change more.
        own = Forward(case).own(MANY)
        if rounded is not None:
            changes = own_changes(case, lambda c, rounding: list(rounded(c, rounding).values()), MANY)
            own = dict(zip(expected, changes, strict=True))
        for name, places in apart.items():
            if name in own and own[name].shape == places.shape:
                allowed[name] = allowed[name] + 2 * own[name]
                apart[name] = places & far(actual[name], expected[name], allowed[name], 0.0)
    for name, places in apart.items():
        everywhere(~places, f"{sentence} ({name})", actual[name], expected[name], allowed[name])


def looked(case: Case, road: str, things: Iterable[Thing] = ()) -> Results:
    """Context and what is seen on a road, by name; the road may show nothing."""
    things = list(things)
    if not things:
        return {"context": case.attend(road)}
    context, seen = case.attend(road, things)
    found = {"context": context}
    for thing, value in seen.items():
        if isinstance(value, Tensor):
            found[thing.name] = value
        else:
            found["top values"] = value.values
    return found


def statistics() -> list[Thing]:
    """Everything of which parts add up or follow each other, and that any normaliser has."""
    return [regard.Weights(), regard.Entropy(), regard.Received(), regard.LogSumExp()]


def visible(case: Case) -> Tensor:
    """Whether each query may look at each key, [*batch q k]: by the mask, and by a bias of minus infinity."""
    seen = torch.ones(case.shape, dtype=torch.bool)
    if case.mask is not None:
        seen = seen & mask_of(case.mask, case.shape)
    if case.bias is not None:
        seen = seen & (bias_of(case.bias, case.shape) != -torch.inf)
    return seen


def masked(case: Case) -> Tensor:
    """The same by the mask alone."""
    if case.mask is None:
        return torch.ones(case.shape, dtype=torch.bool)
    return mask_of(case.mask, case.shape).expand(case.shape)


def spelled_out(case: Case) -> Case:
    """The same case with its mask and bias as tensors of the scores' shape, which can be cut and permuted."""
    mask = None if case.mask is None else Part("tensor", fixed={"seen": masked(case)})
    bias = None
    if case.bias is not None:
        bias = Part("tensor", tensors={"bias": bias_of(case.bias, case.shape).expand(case.shape)})
    normalise = case.normalise
    if normalise.name == "given":
        normalise = replace(normalise, tensors={"weights": normalise.tensors["weights"].expand(case.shape)})
    return replace(case, mask=mask, bias=bias, normalise=normalise)


def of_queries(case: Case, chosen: Tensor) -> Case:
    """Only these queries, in this order, of a case that is spelled out."""

    def pick(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.index_select(-2, chosen)

    score = case.score
    if "query_term" in score.tensors:
        score = replace(score, tensors=score.tensors | {"query_term": pick(score.tensors["query_term"])})
    if score.name == "importance of several":
        score = replace(score, tensors={"vector": pick(score.tensors["vector"])})
    return replace(case, query=pick(case.query), score=score, queries=len(chosen), **picked(case, pick))


def of_keys(case: Case, chosen: Tensor) -> Case:
    """Only these keys, in this order, of a case that is spelled out."""
    score = case.score
    if "key_term" in score.tensors:
        term = score.tensors["key_term"].index_select(-2, chosen)
        score = replace(score, tensors=score.tensors | {"key_term": term})
    if score.name == "location":
        score = replace(score, tensors={"weight": score.tensors["weight"].index_select(-2, chosen)})
    key, value = case.key.index_select(-2, chosen), case.value.index_select(-2, chosen)
    across = picked(case, lambda tensor: tensor.index_select(-1, chosen))
    return replace(case, key=key, value=value, score=score, keys=len(chosen), **across)


def picked(case: Case, pick: Callable[[Tensor], Tensor | None]) -> dict[str, Part | None]:
    """Mask, bias and given weights, cut in the same way."""
    changed = {}
    for name in ("mask", "bias", "normalise"):
        part = getattr(case, name)
        if part is None or (name == "normalise" and part.name != "given"):
            continue
        tensors = {key: pick(tensor) for key, tensor in part.tensors.items()}
        changed[name] = replace(part, tensors=tensors, fixed={key: pick(t) for key, t in part.fixed.items()})
    return changed


def also_masked(case: Case, seen: Tensor) -> Case:
    """The same case with this mask too."""
    more = Part("tensor", fixed={"seen": seen})
    return replace(case, mask=more if case.mask is None else Part("both", parts=(case.mask, more)))


def cuts(case: Case, length: int) -> list[Tensor]:
    """The indices up to a length, in two or three blocks, some of which may be empty."""
    places = sorted((case.seed >> shift) % (length + 1) for shift in (0, 7))[: 1 + case.seed % 2]
    edges = [0, *places, length]
    return [torch.arange(start, stop) for start, stop in pairwise(edges)]


def numbers(case: Case, salt: int) -> torch.Generator:
    """Random numbers of a law's own, for this case."""
    return torch.Generator().manual_seed(case.seed * 1_000_003 + salt)
