"""Attention computed in parts, put together again: over queries always, over keys for softmax.

Over keys the parts weigh as much as their log-sum-exps say: with pi_p = exp(lse_p - lse),

    context = sum pi_p context_p        entropy = sum pi_p (entropy_p - log pi_p)        weights_p scaled by pi_p

What a key receives, the map and tiles need the final log-sum-exp before they are summed over queries: a second sweep.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.likelihood import LogSumExp
from regard.core.see import Best, Entropy, Received, Thing, Tile, Top, Weights
from regard.core.seen import Seen

Part = tuple[Tensor, Seen]


def check_parts(parts: Sequence[Part]) -> list[Thing]:
    """The things that all parts have seen, in the first part's order."""
    if not parts:
        raise ValueError("parts: came none, wanted at least one (context, Seen). Remedy: merge what attend returned.")
    things = list(parts[0][1])
    for _, seen in parts[1:]:
        if [thing.name for thing in seen] != [thing.name for thing in things]:
            raise ValueError(
                f"parts: they saw different things, {parts[0][1]} and {seen}. Remedy: the same see= in each."
            )
    return things


def by_number(thing: Thing) -> bool:
    """Whether it asks for queries by their number, which is another one in the whole."""
    return isinstance(thing, Tile) or (isinstance(thing, Weights) and thing.queries is not None)


def merge_queries(parts: Sequence[Part]) -> Part:
    """Parts of the queries, in order, over the same keys: contexts and rows follow each other, received adds up."""
    values: list[object] = []
    for place, thing in enumerate(things := check_parts(parts)):
        several = [list(seen.values())[place] for _, seen in parts]
        if isinstance(thing, Received):
            values.append(torch.stack([tensor for tensor in several if isinstance(tensor, Tensor)]).sum(0))
        elif isinstance(thing, Top):
            best = [value for value in several if isinstance(value, Best)]
            values.append(Best(torch.cat([b.values for b in best], -2), torch.cat([b.indices for b in best], -2)))
        elif thing.merge == "rows" and not by_number(thing):
            values.append(torch.cat([tensor for tensor in several if isinstance(tensor, Tensor)], thing.dimension))
        else:
            raise refused(thing, "queries", "its rows count among all queries")
    return torch.cat([context for context, _ in parts], -2), Seen(things, values)


def merge_keys(parts: Sequence[Part], keys: Sequence[int]) -> Part:
    """Parts of the keys, in order, for the same queries, under softmax; each must have seen LogSumExp().

    `keys` is how many keys each part had, so that the indices of Top are those of the whole.
    """
    things = check_parts(parts)
    if not any(isinstance(thing, LogSumExp) for thing in things):
        raise ValueError(
            "parts: they have not seen LogSumExp(), which says how they weigh. Remedy: see=[LogSumExp(), …]."
        )
    if len(keys) != len(parts):
        raise ValueError(f"keys: came {len(keys)} counts for {len(parts)} parts. Remedy: one for each part, in order.")
    each = torch.stack([torch.as_tensor(seen.logsumexp) for _, seen in parts])  # [part *batch q]
    alive = (each != -torch.inf).any(0)
    total = torch.logsumexp(each.masked_fill(~alive, 0.0), 0).masked_fill(~alive, -torch.inf)
    share = torch.softmax(each.masked_fill(~alive, 0.0), 0)  # sums to one, however large the scores are
    share = share.masked_fill(~alive, 0.0)
    context = sum_of(share[..., None] * torch.stack([context for context, _ in parts]))
    offsets = [sum(keys[:place]) for place in range(len(keys))]
    values: list[object] = []
    for place, thing in enumerate(things):
        several = [list(seen.values())[place] for _, seen in parts]
        if isinstance(thing, LogSumExp):
            values.append(total)
        elif isinstance(thing, Entropy):
            inner = torch.stack([tensor for tensor in several if isinstance(tensor, Tensor)])
            some = share.where(share > 0, 1.0)  # a part without weight has no gradient, rather than an infinite one
            values.append(sum_of(share * inner - some * some.log()))
        elif isinstance(thing, Weights):
            rows = [tensor for tensor in several if isinstance(tensor, Tensor)]
            chosen = [thing.chosen(total.shape[-1])] * len(rows)
            scaled = [w * s[..., c, None] for w, s, c in zip(rows, share, chosen, strict=True)]
            values.append(torch.cat(scaled, -1))
        elif isinstance(thing, Top):
            values.append(merge_top(thing.k, [b for b in several if isinstance(b, Best)], share, offsets))
        else:
            raise refused(thing, "keys", "it needs the final log-sum-exp, hence a second sweep")
    return context.to(parts[0][0].dtype), Seen(things, values)


def merge_top(k: int, several: Sequence[Best], share: Tensor, offsets: Sequence[int]) -> Best:
    """The best of the parts' best, scaled; parts come in the order of the keys, so a stable sort keeps low indices."""
    values = torch.cat([best.values * s[..., None] for best, s in zip(several, share, strict=True)], -1)
    shifted = [best.indices + o * (best.indices >= 0) for best, o in zip(several, offsets, strict=True)]
    order = values.sort(dim=-1, descending=True, stable=True).indices[..., :k]
    indices = torch.cat(shifted, -1).gather(-1, order)
    values = values.gather(-1, order)
    return Best(values, indices.masked_fill(values == 0, -1))


def sum_of(stacked: Tensor) -> Tensor:
    return stacked.sum(0)


def refused(thing: Thing, over: str, reason: str) -> TypeError:
    return TypeError(f"{thing.name}: its parts do not merge over {over}: {reason}. Remedy: ask for it over the whole.")
