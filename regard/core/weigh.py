"""The definition, step by step: scores, weights, context; what every other road is held to.

weights = weigh(query, key)        context = gather(weights, value)        attend(...) is both in one call
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from regard.core import chance, normalisers
from regard.core.biases import Bias
from regard.core.finite import poison
from regard.core.masks import Block, Mask
from regard.core.normalisers import INFINITY, softmax
from regard.core.problem import Problem, prepare
from regard.core.scores import Score, scaled_dot
from regard.core.see import Parts, Rows
from regard.core.seen import combine
from regard.core.shapes import check_heads, check_tensor, describe, wide

SCALED_DOT = scaled_dot()
SOFTMAX = softmax()


def weighed_rows(problem: Problem, rows: Block, columns: Block) -> tuple[Tensor, Rows, Tensor | None]:
    """Weights of some rows over some columns, before dropout; what there is to see of them; rows that saw NaN."""
    whole = (*problem.batch, len(rows), len(columns))
    query = problem.query[..., rows.start : rows.stop, :]
    key = problem.key[..., columns.start : columns.stop, :]
    scores = problem.pair(query, key).expand(whole)
    bias = problem.bias_tile(rows, columns)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    tile = problem.mask_tile(rows, columns)
    mask = None
    if isinstance(tile, Tensor):
        mask = tile.expand(whole)
    elif not tile:
        mask = torch.zeros(whole, dtype=torch.bool, device=scores.device)
    if mask is not None:
        scores = scores.masked_fill(~mask, -INFINITY)
    weights = normalisers.rows(problem.normalise, rows.start, rows.stop)(scores, mask)
    if not isinstance(weights, Tensor) or weights.shape != scores.shape:
        raise ValueError(
            f"normalise: your function gave {describe(weights)} for scores {list(scores.shape)}; wanted weights of the "
            f"same shape. Remedy: normalise over the last dimension."
        )
    broken = broken_pairs(problem, rows, columns, mask)
    shown = Rows(
        weights, scores, rows.start, problem.queries, normalisers.rows(problem.normalise, rows.start, rows.stop)
    )
    if broken is None:
        return weights, shown, None
    lost = broken.any(-1)
    places = lost[..., None] & (scores != -INFINITY)
    seen = Rows(poison(weights, places), poison(scores, places), rows.start, problem.queries, shown.normalise)
    return weights, seen, lost


def broken_pairs(problem: Problem, rows: Block, columns: Block, mask: Tensor | None) -> Tensor | None:
    """Where a query may see a key and one of the two holds NaN, [*batch rows columns]; None if surely nowhere."""
    pairs = None
    if problem.bad_key is not None:
        pairs = problem.bad_key[..., None, columns.start : columns.stop]
    if problem.bad_query is not None:
        asking = problem.bad_query[..., rows.start : rows.stop, None]
        pairs = asking if pairs is None else pairs | asking
    if pairs is None:
        return None
    whole = torch.Size((*problem.batch, len(rows), len(columns)))
    return pairs.expand(whole) if mask is None else pairs & mask


def dropped(problem: Problem, weights: Tensor, rows: Block, columns: Block) -> Tensor:
    """Weights with some set to zero and the others made larger, as training asks."""
    if problem.dropout == 0:
        return weights
    if problem.seed is None:
        return weights * 0.0
    device = weights.device
    places = chance.places(problem.batch, device)
    row, column = (torch.arange(b.start, b.stop, device=device) for b in (rows, columns))
    kept = chance.kept(problem.seed, places, row, column, problem.dropout)
    return weights * kept / (1 - problem.dropout)


def attended_rows(problem: Problem, rows: Block, columns: Block) -> tuple[Tensor, list[Parts]]:
    """Context [*batch rows v] of some rows, wide, and their parts of what is to be seen."""
    weights, shown, lost = weighed_rows(problem, rows, columns)
    value = wide(problem.value[..., columns.start : columns.stop, :])
    context = dropped(problem, weights, rows, columns).to(value.dtype) @ value
    if lost is not None:
        context = poison(context, lost[..., None])
    return context, [thing.part(shown) for thing in problem.see]


def weigh(
    query: Tensor | None,
    key: Tensor,
    *,
    score: Score | Callable[[Tensor, Tensor], Tensor] = SCALED_DOT,
    normalise: Callable[[Tensor, Tensor | None], Tensor] = SOFTMAX,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    grouped: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The weights [*batch q k] by the definition, all of them: for looking and for checking, not for long texts."""
    problem = prepare(
        query, key, None, score=score, normalise=normalise, mask=mask, bias=bias, grouped=grouped, generator=generator
    )
    _, shown, _ = weighed_rows(problem, range(problem.queries), range(problem.keys))
    return problem.joined(shown.weights, 2)


def gather(weights: Tensor, value: Tensor, *, grouped: bool = False) -> Tensor:
    """The context [*batch q v]: the values summed by their weights. A key of weight zero adds nothing, NaN or not."""
    check_tensor("weights", weights, 2)
    check_tensor("value", value, 2)
    if weights.shape[-1] != value.shape[-2]:
        raise ValueError(
            f"value: came {describe(value)} for weights {describe(weights)}; wanted {weights.shape[-1]} values, one a "
            f"key. Remedy: the values in the keys' order."
        )
    if grouped:
        groups = check_heads(weights.shape[-3], value.shape[-3])
        weights = weights.unflatten(-3, (weights.shape[-3] // groups, groups))
        context = gather(weights, value.unsqueeze(-3))
        return context.flatten(-4, -3)
    bad = ~torch.isfinite(value.detach()).all(-1)  # [*batch k]
    context = weights.to(wide(value).dtype) @ wide(value).masked_fill(bad[..., None], 0.0)
    lost = (bad[..., None, :] & (weights.detach() != 0)).any(-1, keepdim=True)
    return poison(context, lost).to(value.dtype)


def attend_by_definition(problem: Problem) -> tuple[Tensor, list[object]]:
    """Context and what was asked to be seen, with the whole matrix in memory."""
    context, parts = attended_rows(problem, range(problem.queries), range(problem.keys))
    return finished(problem, context, [[part] for part in parts])


def finished(problem: Problem, context: Tensor, parts: list[list[Parts]]) -> tuple[Tensor, list[object]]:
    """The context in the caller's batch and type, and the values of what was asked for from the parts of each thing."""
    values: list[object] = []
    for thing, several in zip(problem.see, parts, strict=True):
        merged = combine(thing, several)
        values.append(
            thing.finish(tuple(problem.joined(p, p.dim() - len(problem.batch)) for p in merged), problem.queries)
        )
    return problem.joined(context, 2).to(problem.value.dtype), values
