"""Which road a call takes, and why: one table, read from the top.

`backend="auto"` takes the first road that serves and is worth it; a road asked for by name serves or says why not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.biases import Bias
from regard.core.masks import Mask
from regard.core.problem import Problem, prepare
from regard.core.scores import Score
from regard.core.see import Thing
from regard.core.shapes import nearest
from regard.core.weigh import SCALED_DOT, SOFTMAX
from regard.kernels import fused, tiled

SMALL = 2**18  # numbers that the definition may hold at once before tiles are worth their bookkeeping
FEW = 2**22  # the same for one or two queries, whose exponentials once per key save nothing


class RefusedError(RuntimeError):
    """A backend that was asked for by name cannot serve this call."""


@dataclass(frozen=True)
class Route:
    """The road that a call takes, the reason, and why each other road was not taken."""

    road: str
    reason: str
    passed: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        others = "".join(f"\n  not {road}: {why}" for road, why in self.passed)
        return f"{self.road}: {self.reason}{others}"


def never(_: Problem) -> None:
    return None


ROADS: dict[str, Callable[[Problem], str | None]] = {
    "fused": fused.refuses,
    "tiled": tiled.refuses,
    "definition": never,
}


def held(problem: Problem) -> int:
    """How many numbers the definition holds at once: the scores, times their features where the pair form has some."""
    return problem.batch.numel() * problem.queries * problem.keys * tiled.features(problem)


def choose(problem: Problem, backend: str) -> Route:
    """The road for this problem."""
    if backend != "auto":
        if backend not in ROADS:
            raise ValueError(f"backend: came {backend!r}.{nearest(backend, [*ROADS, 'auto'])}")
        reason = ROADS[backend](problem)
        if reason is not None:
            raise RefusedError(
                f"backend: {backend!r} cannot serve this call: {reason}. Remedy: backend='auto', which takes "
                f"{choose(problem, 'auto').road!r} here."
            )
        return Route(backend, "asked for by name", ())
    passed: list[tuple[str, str]] = []
    refused = fused.refuses(problem)
    if refused is None:
        return Route("fused", "softmax over dot products, which PyTorch's kernel serves exactly", ())
    passed.append(("fused", refused))
    refused = tiled.refuses(problem)
    if refused is not None:
        passed.append(("tiled", refused))
        return Route("definition", "it serves everything", tuple(passed))
    numbers = held(problem)
    if numbers <= (SMALL if problem.queries > 2 else FEW):
        passed.append(("tiled", f"the whole is only {numbers:,} numbers, and tiles cost bookkeeping"))
        return Route("definition", "it is small", tuple(passed))
    return Route("tiled", "any score and any normaliser, a tile at a time", tuple(passed))


def route(
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    *,
    score: Score | Callable[[Tensor, Tensor], Tensor] = SCALED_DOT,
    normalise: Callable[[Tensor, Tensor | None], Tensor] = SOFTMAX,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    dropout: float = 0.0,
    grouped: bool = False,
    see: Thing | list[Thing] | None = None,
    backend: str = "auto",
) -> Route:
    """The road that `attend` takes with these arguments, the reason, and why not the others; print it to read it.

    A call that `attend` refuses is refused here with the same words.
    """
    with torch.no_grad():
        problem = prepare(
            query, key, value,
            score=score, normalise=normalise, mask=mask, bias=bias, dropout=dropout, grouped=grouped, see=see,
        )  # fmt: skip
    return choose(problem, backend)
