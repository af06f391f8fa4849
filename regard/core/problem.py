"""One question put to attention, checked and in one form, as every road takes it.

The sides are done, query heads that share a key head are split off into a dimension of their own, tokens that hold NaN
are set to zero where a mask could hide them, and what is random is drawn: from here on a road only computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core import chance, normalisers
from regard.core.biases import Bias, as_bias
from regard.core.entmax import EntmaxNormaliser
from regard.core.finite import unsound, without
from regard.core.hard import Hard
from regard.core.masks import Block, Mask, as_mask
from regard.core.normalisers import Random, Softmax
from regard.core.scores import Own, Pair, Score, as_score
from regard.core.see import Received, Thing
from regard.core.seen import as_things
from regard.core.shapes import (
    broadcast,
    check_device,
    check_heads,
    check_inputs,
    check_width,
    describe,
    fits,
    join_heads,
    may_look,
    split_heads,
    wide,
)


@dataclass(frozen=True, eq=False)
class Problem:
    """Queries [*batch q d], keys [*batch k d] and values [*batch k v], after the sides; batches broadcast."""

    query: Tensor
    key: Tensor
    value: Tensor
    pair: Pair
    normalise: Callable[[Tensor, Tensor | None], Tensor]
    mask: Mask | None
    bias: Bias | None
    see: tuple[Thing, ...]
    shape: torch.Size  # of the scores [*batch q k] as the caller sees them, heads together
    groups: int  # query heads a key head, 1 if heads are not grouped
    batch: torch.Size  # with the groups apart
    bad_query: Tensor | None  # [*batch q], tokens that were set to zero
    bad_key: Tensor | None  # [*batch k], because of the key or its value
    dropout: float
    seed: Tensor | None

    @property
    def queries(self) -> int:
        return self.shape[-2]

    @property
    def keys(self) -> int:
        return self.shape[-1]

    def split(self, tensor: Tensor, event: int) -> Tensor:
        """A tensor over the caller's batch, over this one's."""
        return tensor if self.groups == 1 else split_heads(tensor, event, self.groups)

    def mask_tile(self, rows: Block, columns: Block) -> Tensor | bool:
        """What these rows may see of these columns."""
        if self.mask is None:
            return True
        tile = self.mask.tile(rows, columns, self.shape, self.key.device)
        return tile if isinstance(tile, bool) else self.split(tile, 2)

    def bias_tile(self, rows: Block, columns: Block) -> Tensor | None:
        """What is added to these scores."""
        if self.bias is None:
            return None
        tile = self.bias.tile(rows, columns, self.shape, self.key.device)
        if not fits(tile.shape, (*self.shape[:-2], len(rows), len(columns))):
            raise ValueError(
                f"bias: it gave {describe(tile)} for {len(rows)} queries and {len(columns)} keys of scores "
                f"{list(self.shape)}; wanted numbers that broadcast to them. Remedy: heads in front, as many as the "
                f"scores have in dimension -3."
            )
        return self.split(tile, 2)

    def span(self, rows: Block) -> Block:
        """The columns that these rows can reach; all of them if the normaliser minds which column is which."""
        by_score_alone = isinstance(self.normalise, Softmax | EntmaxNormaliser | Hard)
        if self.mask is None or not by_score_alone:
            return range(self.keys)
        return self.mask.span(rows, self.shape)

    def joined(self, tensor: Tensor, event: int) -> Tensor:
        """A result over this batch, over the caller's: groups and key heads back together."""
        if self.groups == 1:
            return tensor
        return join_heads(tensor, event)


def grouped_batch(query: Tensor, key: Tensor, value: Tensor, pair: Pair) -> tuple[torch.Size, int]:
    """The caller's batch and the query heads a key head, with grouped heads."""
    if min(query.dim(), key.dim(), value.dim()) < 3:
        raise ValueError(
            f"query: came {describe(query)}, key {describe(key)}, value {describe(value)}, with grouped=True; wanted "
            f"heads in dimension -3 of all. Remedy: [..., heads, length, width], or grouped=False."
        )
    heads, key_heads = query.shape[-3], key.shape[-3]
    groups = check_heads(heads, key_heads)
    if value.shape[-3] not in (1, key_heads):
        raise ValueError(
            f"value: came {describe(value)} for key {describe(key)}, with grouped=True; wanted {key_heads} heads in "
            f"dimension -3. Remedy: as many heads of values as of keys."
        )
    parameters = parameter_leads(pair)
    if any(lead and lead[-1] not in (1, heads) for lead in parameters):
        raise ValueError(
            f"score: it holds parameters of {[list(lead) for lead in parameters]} for {heads} query heads, with "
            f"grouped=True; wanted a last batch dimension of {heads}, or 1. Remedy: parameters of each query head."
        )
    leads = [(name, tensor.shape[:-3]) for name, tensor in named(query, key, value)]
    lead = broadcast("query, key and value", leads + [("score", lead[:-1]) for lead in parameters])
    return torch.Size((*lead, heads)), groups


def named(query: Tensor, key: Tensor, value: Tensor) -> list[tuple[str, Tensor]]:
    return [("query", query), ("key", key), ("value", value)]


def check_sides(query: Tensor, key: Tensor, pair: Pair) -> None:
    """The sides are as wide as each other, and as the pair form's weight."""
    if isinstance(pair, Own):
        return

    def check(tensor: Tensor, own: int) -> Tensor:
        if own == 1:
            check_width("query", query, tensor.shape[-1], f"by weight {describe(tensor)}")
        return tensor

    pair.mapped(check)
    check_width("query", query, key.shape[-1], f"as the key's is: key {describe(key)}")


def parameter_leads(pair: Pair) -> list[torch.Size]:
    """The batch dimensions of what a pair holds: heads that only its parameters have."""
    leads: list[torch.Size] = []

    def note(tensor: Tensor, own: int) -> Tensor:
        leads.append(tensor.shape[: tensor.dim() - own])
        return tensor

    pair.mapped(note)
    return leads


def check_normaliser(tensor: Tensor, own: int, shape: torch.Size, device: torch.device) -> Tensor:
    """What a normaliser holds goes with the scores."""
    check_device("normalise", tensor, device)
    if not fits(tensor.shape[: tensor.dim() - own], shape[:-2]):
        raise ValueError(
            f"normalise: it holds {describe(tensor)} for scores {list(shape)}; wanted leading dimensions that "
            f"broadcast to the batch {list(shape[:-2])}. Remedy: one number a head is [heads], where heads come last."
        )
    return tensor


def check_chance(dropout: object, generator: object) -> None:
    """How much is dropped, and where random numbers come from."""
    if not isinstance(dropout, float | int) or not 0 <= dropout <= 1:
        raise ValueError(f"dropout: came {dropout!r}, wanted a share between 0 and 1. Remedy: 0.1.")
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator: came {describe(generator)}, wanted a torch.Generator. "
            f"Remedy: torch.Generator().manual_seed(7)."
        )


def check_devices(score: Score, bias: Bias | None, device: torch.device) -> None:
    """Parameters are where the keys are."""
    for name in getattr(score, "__dataclass_fields__", ()):
        if isinstance(tensor := getattr(score, name), Tensor):
            check_device(f"score ({name})", tensor, device)
    if bias is not None:
        bias.mapped(lambda tensor, _: check_device("bias", tensor, device))


def cleaned(tensor: Tensor) -> tuple[Tensor, Tensor | None]:
    """The tensor with tokens that hold NaN or infinity set to zero, and which they are (None if surely none)."""
    if may_look(tensor):
        # A finite sum has finite terms, and is much the faster to make.
        if bool(tensor.detach().sum(dtype=wide(tensor).dtype).isfinite()):
            return tensor, None
        if not bool(unsound(tensor).any()):
            return tensor, None
    bad = unsound(tensor)
    return without(tensor, bad), bad


def either(left: Tensor | None, right: Tensor | None) -> Tensor | None:
    if left is None or right is None:
        return right if left is None else left
    return left | right


def prepare(
    query: Tensor | None,
    key: Tensor,
    value: Tensor | None,
    *,
    score: object,
    normalise: object,
    mask: object = None,
    bias: object = None,
    dropout: float = 0.0,
    grouped: bool = False,
    generator: torch.Generator | None = None,
    see: object = None,
) -> Problem:
    """Check everything, do the sides, and put the question in one form."""
    check_inputs(query, key, value)
    known_score, things = as_score(score), as_things(see)
    known_mask = None if mask is None else as_mask(mask)
    known_bias = None if bias is None else as_bias(bias)
    normalise = normalisers.as_normaliser(normalise)
    check_chance(dropout, generator)
    check_devices(known_score, known_bias, key.device)
    value = key if value is None else value
    bad_query = bad_key = None
    if known_mask is not None:
        same = value is key
        key, bad_key = cleaned(key)
        value, bad_value = (key, None) if same else cleaned(value)
        bad_key = either(bad_key, bad_value)
        if query is not None:
            query, bad_query = cleaned(query)
    query, key = known_score.query_side(query), known_score.key_side(key)
    pair = known_score.pair
    check_sides(query, key, pair)
    groups = 1
    if grouped:
        batch, groups = grouped_batch(query, key, value, pair)
    else:
        leads = [(name, tensor.shape[:-2]) for name, tensor in named(query, key, value)]
        batch = broadcast("query, key and value", leads + [("score", lead) for lead in parameter_leads(pair)])
    shape = torch.Size((*batch, query.shape[-2], key.shape[-2]))
    normalisers.mapped(normalise, lambda tensor, own: check_normaliser(tensor, own, shape, key.device))
    if groups > 1:
        query, key, value = split_heads(query, 2, groups), key.unsqueeze(-3), value.unsqueeze(-3)
        pair = pair.mapped(lambda tensor, own: split_heads(tensor, own, groups))
        normalise = normalisers.mapped(normalise, lambda tensor, own: split_heads(tensor, own, groups))
        things = tuple(
            thing.mapped(lambda tensor, own: split_heads(tensor, own, groups)) if isinstance(thing, Received) else thing
            for thing in things
        )
        bad_query = None if bad_query is None else split_heads(bad_query, 1, groups)
        bad_key = None if bad_key is None else bad_key.unsqueeze(-2)
        batch = torch.Size((*batch[:-1], batch[-1] // groups, groups))
    if isinstance(normalise, Random):
        normalise = normalise.drawn(chance.places(batch, key.device), query.shape[-2], generator)
    return Problem(
        query,
        key,
        value,
        pair,
        normalise,
        known_mask,
        known_bias,
        things,
        shape,
        groups,
        batch,
        bad_query,
        bad_key,
        float(dropout),
        chance.draw_seed(generator, key.device) if 0 < dropout < 1 else None,
    )
