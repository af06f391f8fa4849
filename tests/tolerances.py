"""How far a result may be from the truth: a fixed tolerance, or what plain PyTorch would have got wrong anyway.

The truth of a case is plain PyTorch in float64 on the same numbers. In a lower type a result is held to the larger of

    fixed    atol 1e-5 and rtol 1.3e-6 in float32; in half types the rounding of the result itself
    plain    twice the largest error of plain PyTorch in the same type
    own      what changing every number by one to two roundings changes, the most of several random changes

The last is the case's own error: what rounding the inputs, the sides and the scores once does to the answer, whoever
computes it. It is needed because plain PyTorch is sometimes lucky, and twice nothing is nothing. Argmax, top-k
and support sets jump, so they are compared where the margin is larger than the case's own error; what is left out is
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

import regard
from tests.cases import HARD, SPARSE, Case
from tests.plain import EXACT, Plain, Rounding, plain

FIXED = {
    torch.float64: (1e-11, 1e-10),
    torch.float32: (1e-5, 1.3e-6),
    torch.float16: (6e-8, 2.0**-11),
    torch.bfloat16: (1e-38, 2.0**-8),
}
FEW, MANY = 6, 400  # random changes tried, and tried again before anything is called wrong


def far(actual: Tensor, wanted: Tensor, atol: float | Tensor, rtol: float) -> Tensor:
    """Where two tensors differ by more than is allowed; NaN equals NaN, and infinity what is too large for the type."""
    same = (actual == wanted.to(actual.dtype)) | (actual.isnan() & wanted.isnan())
    return ~same & ~((actual.to(wanted.dtype) - wanted).abs() <= atol + rtol * wanted.abs())


def own_changes(case: Case, function: Callable[[Case, Rounding], Sequence[Tensor]], count: int = FEW) -> list[Tensor]:
    """How much each result changes, at most, when everything is changed by one to two roundings of its own type."""
    narrow = torch.finfo(case.dtype).eps
    wide = torch.finfo(torch.promote_types(case.dtype, torch.float32)).eps
    exact = case.to(torch.float64)
    before = function(exact, EXACT)
    most = [torch.zeros_like(tensor) for tensor in before]
    generator = torch.Generator().manual_seed(case.seed)

    def nudged(tensor: Tensor, size: float) -> Tensor:
        signs = torch.rand(tensor.shape, generator=generator) * 2.0 - 1
        signs = signs + signs.sign()  # from one to two roundings, so that several do not cancel
        return tensor * (1 + size * signs.to(tensor.device, tensor.dtype))

    rounding = Rounding(lambda tensor: nudged(tensor, narrow), lambda tensor: nudged(tensor, wide))
    for _ in range(count):
        after = function(exact.changed(rounding.side), rounding)
        most = [torch.maximum(m, (a - b).abs().nan_to_num(0.0)) for m, a, b in zip(most, after, before, strict=True)]
    return most


WIDE = ("context", "weights")


@dataclass
class Verdict:
    """What a comparison found."""

    wrong: list[str] = field(default_factory=list)
    compared: set[str] = field(default_factory=set)  # which tolerances were needed
    rows: int = 0  # whose argmax, top-k and support were compared
    left_out: int = 0  # of these, because the margin is within the case's own error

    def __bool__(self) -> bool:
        return not self.wrong


def overflown_rows(case: Case) -> Tensor:
    """[*batch q], True where plain PyTorch's scores are too large for the case's type."""
    scores = plain(case).scores
    return (scores.isnan() | (scores == torch.inf)).any(-1)


class Forward:
    """One case's truth, and its tolerances as they are needed."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.exact = plain(case.to(torch.float64))
        self.truth = statistics(case.to(torch.float64), self.exact)
        self.verdict = Verdict()
        self.known: dict[str, dict[str, Tensor]] = {}

    @property
    def plain(self) -> dict[str, Tensor]:
        """The largest error of plain PyTorch in the case's own type."""
        if "plain" not in self.known:
            self.known["values"] = statistics(self.case, plain(self.case))
            errors = {}
            for name, tensor in self.known["values"].items():
                error = (tensor - self.truth[name]).abs()
                error = error.where(torch.isfinite(error), 0.0)
                errors[name] = error.max() if error.numel() else torch.zeros(())
            self.known["plain"] = errors
        return self.known["plain"]

    def own(self, count: int = FEW) -> dict[str, Tensor]:
        """The case's own error in everything, the scores' too."""
        key = f"own {count}"
        if key not in self.known:
            names: list[str] = []

            def everything(case: Case, rounding: Rounding) -> list[Tensor]:
                of = plain(case, rounding)
                found = statistics(case, of) | {"scores": of.scores}
                names[:] = found
                return list(found.values())

            most = own_changes(self.case, everything, count)
            own = dict(zip(names, most, strict=True))
            # A weight that jumps from none to all has an entropy on the way, which few of the changes would meet.
            jump = own["weights"].clamp_max(torch.e**-1)
            jump = (-torch.xlogy(jump, jump)).sum(-1).where(own["weights"].gt(0.01).any(-1), 0.0)
            own["entropy"] = torch.maximum(own["entropy"], jump)
            self.known[key] = own
        return self.known[key]

    def check(self, name: str, actual: Tensor, skip: Tensor | None = None) -> None:
        """One result against the truth; `skip` marks rows that are not decided."""
        wanted = self.truth[name]
        if actual.shape != wanted.shape:
            self.verdict.wrong.append(f"{name}: its shape is {list(actual.shape)}, wanted {list(wanted.shape)}")
            return
        atol, rtol = FIXED[actual.dtype]
        apart = far(actual, wanted, atol, rtol)
        if skip is not None:
            apart = apart & ~skip
        for tolerance in ("fixed", "plain", "own"):
            if tolerance == "plain":
                apart = apart & far(actual, wanted, 2 * self.plain[name], 0.0)
                apart = apart & (torch.isfinite(actual) | torch.isfinite(self.known["values"][name]))
            elif tolerance == "own":
                apart = apart & far(actual, wanted, 2 * self.own()[name], 0.0)
                if bool(apart.any()):
                    apart = apart & far(actual, wanted, 2 * self.own(MANY)[name], 0.0) & ~self.overflown(name)
            if not bool(apart.any()):
                self.verdict.compared.add(tolerance)
                return
        place = tuple(apart.nonzero()[0].tolist())
        self.verdict.wrong.append(
            f"{name}{list(place)}: came {actual[place].item():.9g}, wanted {wanted[place].item():.9g}, which is "
            f"{(actual.double() - wanted).abs()[place].item():.2g} off ({int(apart.sum())} of {apart.numel()} are); "
            f"twice plain PyTorch's error is {2 * self.plain[name].item():.2g}, "
            f"twice the case's own {2 * self.own(MANY)[name][place].item():.2g}"
        )

    def overflown(self, name: str) -> Tensor:
        """Where scores are too large for the type in plain PyTorch too, so that a finite result would be luck."""
        rows = overflown_rows(self.case)
        return rows.any(-1)[..., None] if name == "received" else rows[..., None] if name in WIDE else rows

    def leave_out_overflown(self, other: Tensor) -> Tensor:
        """What differs [*batch q n], without rows whose scores are too large for the type; these are counted."""
        lost = self.overflown("entropy")[..., None]
        self.verdict.left_out += int((other & lost).any(-1).sum())
        return other & ~lost

    def undecided(self, weights: Tensor) -> Tensor | None:
        """Rows [*batch q] that choose another key than the truth does, and may: rounding changes the choice too."""
        other = (weights - self.truth["weights"]).abs().gt(0.5).any(-1)
        if not bool(other.any()):
            return None
        allowed = self.own()["weights"].gt(0.5).any(-1)
        if bool((other & ~allowed).any()):
            allowed = self.own(MANY)["weights"].gt(0.5).any(-1)
        if self.case.normalise.name == "hard":
            scores = self.exact.scores
            margin = scores.amax(-1) - scores.gather(-1, weights.argmax(-1, keepdim=True))[..., 0]
            allowed = allowed | (margin <= 2 * self.own()["scores"].amax(-1))
        return other & allowed


def statistics(case: Case, of: Plain) -> dict[str, Tensor]:
    """What there is to see, by its meaning."""
    safe = of.weights.where(of.weights > 0, 1.0)
    found = {
        "context": of.context,
        "weights": of.weights,
        "entropy": -(safe * safe.log()).sum(-1),
        "received": of.weights.sum(-2),
    }
    if of.scores.shape[-1]:
        scores, part = of.scores, case.normalise
        if "temperature" in part.tensors:
            scores = scores / part.tensors["temperature"][..., None, None]
        elif part.name == "softmax at a temperature":
            scores = scores / part.options["temperature"]
        found["logsumexp"] = torch.logsumexp(scores, -1)
    return found


def check_forward(case: Case, roads: Sequence[str]) -> Verdict:
    """Context and everything that can be seen, on each of these roads, against the truth."""
    forward = Forward(case)
    jumps = case.normalise.name in HARD
    things = [regard.Weights(), regard.Entropy(), regard.Received(), regard.LogSumExp(), regard.Top(3)]
    for road in roads:
        if not case.serves(road, things):
            if not case.serves(road):
                continue
            context = case.attend(road)
            forward.check("context", context, undecided_context(forward, case) if jumps else None)
            continue
        context, seen = case.attend(road, things)
        if seen.weights.shape != forward.truth["weights"].shape:
            forward.check("weights", seen.weights)
            continue
        skip = forward.undecided(seen.weights) if jumps else None
        if skip is not None:
            forward.verdict.left_out += int(skip.sum())
            everything = skip[..., None]
            forward.check("context", context, everything)
            forward.check("weights", seen.weights, everything)
        else:
            forward.check("context", context)
            forward.check("weights", seen.weights)
            forward.check("entropy", seen.entropy)
            forward.check("received", seen.received)
        if case.shape[-1]:
            forward.check("logsumexp", seen.logsumexp)
        check_top(forward, seen, skip)
        if case.normalise.name in SPARSE:
            check_support(forward, seen.weights)
        forward.verdict.rows += seen.entropy.numel()
    return forward.verdict


def undecided_context(forward: Forward, case: Case) -> Tensor | None:
    """For a road that shows no weights: rows that the definition finds undecided."""
    skip = forward.undecided(case.weights())
    return None if skip is None else skip[..., None]


def check_top(forward: Forward, seen: regard.Seen, skip: Tensor | None) -> None:
    """The keys named are those with the largest weights, up to the case's own error."""
    indices = seen.top.indices
    truth = forward.truth["weights"]
    if not truth.shape[-1]:
        return
    k = min(3, truth.shape[-1])
    largest, best = truth.sort(dim=-1, descending=True, stable=True)
    largest, best, indices = largest[..., :k], best[..., :k], indices[..., :k]
    best = best.masked_fill(largest == 0, -1)
    named = truth.gather(-1, indices.clamp_min(0)).masked_fill(indices < 0, 0.0)
    margin = (largest - named).abs()
    # Weights that the type cannot tell apart may come in either order, and those too small for it not at all.
    equal = 8 * torch.finfo(seen.top.values.dtype).eps * largest
    other = (indices != best) & (margin > equal) & ~((indices == -1) & (largest < 1e-30))
    if skip is not None:
        other = other & ~skip[..., None]
    if not bool(other.any()):
        return
    other = forward.leave_out_overflown(other)
    near = margin <= forward.own()["weights"].amax(-1, keepdim=True)
    if not bool((near | ~other).all()):
        near = near | (
            margin <= torch.maximum(2 * forward.plain["weights"], forward.own(MANY)["weights"].amax(-1, keepdim=True))
        )
    forward.verdict.left_out += int((other & near).any(-1).sum())
    if bool((other & ~near).any()):
        place = tuple((other & ~near).nonzero()[0].tolist())
        forward.verdict.wrong.append(
            f"top{list(place)}: named key {indices[place].item()}, wanted {best[place].item()}; their weights are "
            f"{named[place].item():.6g} and {largest[place].item():.6g}"
        )


def check_support(forward: Forward, weights: Tensor) -> None:
    """The same keys have any weight at all, up to the case's own error."""
    truth = forward.truth["weights"]
    other = ((weights > 0) != (truth > 0)) & (truth >= 1e-30)  # or too small for the type
    other = other | ((weights > 0) & (truth == 0))
    if not bool(other.any()):
        return
    other = forward.leave_out_overflown(other)
    largest = torch.maximum(truth, weights.to(truth.dtype))
    near = torch.zeros_like(other)
    for count in (FEW, MANY):
        own = torch.maximum(2 * forward.plain["weights"], forward.own(count)["weights"])
        near = near | (largest <= FIXED[weights.dtype][0] + own)
        if bool((near | ~other).all()):
            break
    forward.verdict.left_out += int((other & near).any(-1).sum())
    if bool((other & ~near).any()):
        place = tuple((other & ~near).nonzero()[0].tolist())
        forward.verdict.wrong.append(
            f"support{list(place)}: weight {weights[place].item():.6g}, wanted {truth[place].item():.6g}"
        )
