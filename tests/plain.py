"""Plain PyTorch: what a case says, written eagerly with broadcasting in the case's own type. Knows nothing of regard.

In float64 it is the truth that everything else is measured against; in a lower type it is the error that a user would
have anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from tests.cases import Case
    from tests.parts import Part

INFINITY = float("inf")
Change = Callable[[Tensor], Tensor]


class Rounding(NamedTuple):
    """What rounding would do to what is computed on the way; nothing, unless one wants to know how much it matters."""

    side: Change = lambda tensor: tensor  # what is computed once per query or key
    pair: Change = lambda tensor: tensor  # what is computed for every pair


EXACT = Rounding()


class Plain(NamedTuple):
    """All of attention, [*batch q k] and [*batch q v]."""

    scores: Tensor  # with bias, -infinity where hidden
    weights: Tensor  # before dropout
    context: Tensor


def plain(case: Case, rounding: Rounding = EXACT) -> Plain:
    """Scores, weights and context of a case, over its whole batch."""
    whole = case.shape
    scores = rounding.pair(scores_of(case, rounding)).expand(whole)
    if case.bias is not None:
        scores = rounding.pair(scores + rounding.side(bias_of(case.bias, whole).to(scores.device)))
    seen = torch.ones(whole, dtype=torch.bool, device=scores.device)
    if case.mask is not None:
        seen = mask_of(case.mask, whole).to(scores.device).expand(whole)
    scores = scores.masked_fill(~seen, -INFINITY)
    generator = case.generator()
    weights = rounding.pair(weights_of(case, scores, generator))
    dropped = weights
    if case.dropout:
        bits = random_bits(two_seeds(generator), whole).to(scores.device)
        dropped = weights * (bits >= int(case.dropout * 2**32)) / (1 - case.dropout)
    return Plain(scores, weights, dropped @ repeated(case, case.value))


def repeated(case: Case, tensor: Tensor) -> Tensor:
    """Key heads as often as query heads share them."""
    if not case.grouped:
        return tensor
    return tensor.repeat_interleave(case.batch[-1] // tensor.shape[-3], -3)


# Scores


def scores_of(case: Case, rounding: Rounding) -> Tensor:
    part, query, key = case.score, case.query, case.key
    name, options, tensors = part.name, part.options, part.tensors
    if name.startswith("importance"):
        hidden = key @ tensors["weight"].mT + tensors["bias"][..., None, :] if "weight" in tensors else key
        rows = tensors["vector"] if name == "importance of several" else tensors["vector"][None]
        return rows @ repeated(case, rounding.side(rounding.side(hidden).tanh())).mT
    assert query is not None
    if name == "location":
        row = tensors["weight"][..., : key.shape[-2], :]
        return query @ (repeated(case, row) if row.dim() > 2 else row).mT
    if name in ("additive", "additive with terms", "concatenated", "additive of sides"):
        return additive(case, query, key, rounding)
    key = repeated(case, key)
    if name == "bilinear":
        return rounding.side(query @ tensors["weight"]) @ key.mT
    if name in ("squared distance", "soft dictionary"):
        difference = query.unsqueeze(-2) - key.unsqueeze(-3)
        squared = (difference * difference).sum(-1)
        if name == "squared distance":
            return -options["scale"] * squared
        return -options["power"] * torch.log(options["epsilon"] + squared)
    if name == "own":
        return -(query.unsqueeze(-2) - key.unsqueeze(-3)).abs().sum(-1)
    if name.startswith("cosine"):
        query, key = (rounding.side(side / side.norm(dim=-1, keepdim=True).clamp_min(1e-6)) for side in (query, key))
    scores = query @ key.mT
    if name == "scaled dot":
        return scores / math.sqrt(max(query.shape[-1], 1))
    return scores * factor(part)


def factor(part: Part) -> float | Tensor:
    if "scale" in part.tensors:
        return part.tensors["scale"][..., None, None]
    return part.options.get("scale", 1.0)


def additive(case: Case, query: Tensor, key: Tensor, rounding: Rounding) -> Tensor:
    tensors, left, right = case.score.tensors, query, key
    if case.score.name == "concatenated":
        width = query.shape[-1]
        left, right = query @ tensors["matrix"][:, :width].mT, key @ tensors["matrix"][:, width:].mT
    elif "query_weight" in tensors:
        left, right = query @ tensors["query_weight"].mT, key @ tensors["key_weight"].mT
    if "bias" in tensors:
        left = left + tensors["bias"][..., None, :]
    if "query_term" in tensors:
        left, right = left + tensors["query_term"], right + tensors["key_term"]
    left, right = rounding.side(left), rounding.side(right)
    hidden = rounding.pair(torch.tanh(left.unsqueeze(-2) + repeated_side(case, right).unsqueeze(-3)))
    return (hidden @ tensors["weight"][..., None, :, None])[..., 0]


def repeated_side(case: Case, side: Tensor) -> Tensor:
    return repeated(case, side) if side.dim() > 2 else side


# Weights


def weights_of(case: Case, scores: Tensor, generator: torch.Generator) -> Tensor:
    part = case.normalise
    name, options, tensors = part.name, part.options, part.tensors
    seen = scores != -INFINITY
    if not scores.shape[-1]:
        return scores
    if name == "given":
        return tensors["weights"].expand(scores.shape) * visible(case).to(scores.device)
    if name == "edited":
        squared = softmax(scores) ** 2
        total = squared.sum(-1, keepdim=True)
        return squared / total.where(total > 0, 1.0)
    if name == "own":
        best = scores.masked_fill(~seen, -INFINITY).amax(-1, keepdim=True)
        share = (1 / (1 + best - scores) ** 2).where(seen, 0.0)
        total = share.sum(-1, keepdim=True)
        return share / total.where(total > 0, 1.0)
    if name in ("sparsemax", "entmax", "entmax of a learned order"):
        order = {"sparsemax": 2.0, "entmax": options.get("alpha")}.get(name)
        alpha = tensors["alpha"][..., None, None] if order is None else torch.full_like(scores[..., :1], order)
        return entmax(scores, alpha)
    if name == "hard":
        return one_hot(scores, scores)
    if name in ("hard, drawn", "hard, straight through"):
        uniform = as_uniform(random_bits(two_seeds(generator), (*scores.shape[:-1], 1))).to(scores.device)
        cumulative = softmax(scores).cumsum(-1)
        reached = (cumulative > uniform.to(scores.dtype) * cumulative[..., -1:]) & seen
        return one_hot(reached.to(scores.dtype), scores)
    if name.startswith("gumbel"):
        uniform = as_uniform(random_bits(two_seeds(generator), tuple(scores.shape))).to(scores.device)
        noisy = (scores - torch.log(-torch.log(uniform)).to(scores.dtype)) / options["temperature"]
        return softmax(noisy) if name == "gumbel" else one_hot(noisy, scores)
    temperature = tensors["temperature"][..., None, None] if "temperature" in tensors else options.get("temperature", 1)
    return softmax(scores / temperature)


def visible(case: Case) -> Tensor:
    """The mask alone: given weights mind no score."""
    if case.mask is None:
        return torch.ones(case.shape, dtype=torch.bool)
    return mask_of(case.mask, case.shape).expand(case.shape)


def softmax(scores: Tensor) -> Tensor:
    """Rows without anything to see are zero."""
    return torch.softmax(scores, -1).where((scores != -INFINITY).any(-1, keepdim=True), 0.0)


def one_hot(by: Tensor, scores: Tensor) -> Tensor:
    """One at the first largest of `by`, in rows that see anything."""
    seen = scores != -INFINITY
    first = by.masked_fill(~seen, -INFINITY).argmax(-1, keepdim=True)  # of equal ones, any: see ties in tolerances
    largest = by.masked_fill(~seen, -INFINITY) == by.masked_fill(~seen, -INFINITY).amax(-1, keepdim=True)
    first = torch.where(largest, torch.arange(by.shape[-1], device=by.device), by.shape[-1]).amin(-1, keepdim=True)
    places = torch.arange(by.shape[-1], device=by.device)
    return ((places == first) & seen).to(scores.dtype)


def entmax(scores: Tensor, alpha: Tensor) -> Tensor:
    """[(a-1) s - t]_+ ^ 1/(a-1) (Peters et al., 2019) by bisection, and softmax where a is one."""
    exact = scores.dtype == torch.float64
    order = (alpha - 1).clamp_min(1e-16 if exact else 1e-5)
    alive = (scores != -INFINITY).any(-1, keepdim=True)
    shifted = (order * (scores - scores.amax(-1, keepdim=True))).masked_fill(~alive, 0.0)
    weights = by_largest(shifted, order) if exact else by_threshold(shifted, order)
    if exact and bool((order > 1).any()):
        weights = torch.where(order > 1, by_smallest(shifted, order), weights)
    return (weights / weights.sum(-1, keepdim=True)).where(alive, 0.0)


def by_threshold(shifted: Tensor, order: Tensor) -> Tensor:
    """As anybody would; for large orders the threshold cannot be held in any type (near it the power is vertical)."""
    low, high = -torch.ones_like(shifted[..., :1]), torch.zeros_like(shifted[..., :1])
    for _ in range(30):
        middle = (low + high) / 2
        enough = ((shifted - middle).clamp_min(0) ** (1 / order)).sum(-1, keepdim=True) >= 1
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    return (shifted - low).clamp_min(0) ** (1 / order)


def by_largest(shifted: Tensor, order: Tensor) -> Tensor:
    """The same from the largest weight u, as u (1 + shifted / u^order)_+ ^ 1/order; right down to order zero."""

    def weights(u: Tensor) -> Tensor:
        return u * torch.exp(torch.log1p((shifted / u**order).clamp_min(-1)) / order)

    low, high = torch.zeros_like(shifted[..., :1]), torch.ones_like(shifted[..., :1])
    for _ in range(60):
        middle = (low + high) / 2
        enough = weights(middle).sum(-1, keepdim=True) >= 1
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    return weights(high)


def by_smallest(shifted: Tensor, order: Tensor) -> Tensor:
    """The same from the smallest weight in the support, found by trying every key; right for any order above two."""
    ahead = (shifted.unsqueeze(-2) - shifted.unsqueeze(-1)).nan_to_num(0.0)  # [.. m j], how far j is ahead of m
    filled = (ahead.clamp_min(0) ** (1 / order.unsqueeze(-1))).sum(-1)  # what the others take if m gets nothing
    inside = (filled < 1) & (shifted != -INFINITY)
    last = shifted.masked_fill(~inside, INFINITY).amin(-1, keepdim=True)
    ahead = (shifted - last).masked_fill(shifted < last, -INFINITY)
    low, high = torch.zeros_like(last), torch.ones_like(last)
    for _ in range(64):
        middle = (low + high) / 2
        enough = from_smallest(ahead, middle, order).sum(-1, keepdim=True) >= 1
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    return from_smallest(ahead, low, order)


def from_smallest(ahead: Tensor, smallest: Tensor, order: Tensor) -> Tensor:
    weights = (ahead.clamp_min(0) + smallest**order) ** (1 / order)
    return torch.where(ahead == 0, smallest, weights).where(ahead >= 0, 0.0)


# Masks and biases, by their meaning


def offset(align: object, shape: tuple[int, ...]) -> int:
    return shape[-1] - shape[-2] if align == "end" else 0


def mask_of(part: Part, shape: tuple[int, ...]) -> Tensor:
    """True where a query may look, broadcastable to the shape."""
    name, options, fixed = part.name, part.options, part.fixed
    i, j = torch.arange(shape[-2])[:, None], torch.arange(shape[-1])[None]
    if name in ("both", "either", "not"):
        inner = [mask_of(p, shape) for p in part.parts]
        return ~inner[0] if name == "not" else inner[0] & inner[1] if name == "both" else inner[0] | inner[1]
    if name == "causal":
        return j <= i + offset(options["align"], shape)
    if name == "window":
        at = i + offset(options["align"], shape)
        return (j >= at - options["left"]) & (j <= at + options["right"])
    if name == "prefix":
        return (j < options["length"]).expand(shape[-2:])
    if name == "rule":
        return (3 * i + j) % 4 != 0
    if name == "tensor":
        return fixed["seen"].cpu()
    if name == "documents":
        keys, queries = fixed["keys"].cpu(), fixed.get("queries", fixed["keys"]).cpu()
        return over_batch(queries, 1, shape)[..., :, None] == over_batch(keys, 1, shape)[..., None, :]
    seen = torch.ones((), dtype=torch.bool)
    if "keys" in fixed:
        seen = seen & (j < over_batch(fixed["keys"].cpu(), 0, shape)[..., None, None])
    if "queries" in fixed:
        seen = seen & (i < over_batch(fixed["queries"].cpu(), 0, shape)[..., None, None])
    return seen


def over_batch(tensor: Tensor, own: int, shape: tuple[int, ...]) -> Tensor:
    """Dimensions that line up with the first ones of the batch."""
    while tensor.dim() - own < len(shape) - 2:
        tensor = tensor.unsqueeze(tensor.dim() - own)
    return tensor


def bias_of(part: Part, shape: tuple[int, ...]) -> Tensor:
    name, options, tensors = part.name, part.options, part.tensors
    if name == "sum":
        return bias_of(part.parts[0], shape) + bias_of(part.parts[1], shape)
    if name == "tensor":
        return tensors["bias"]
    if name == "tensor with holes":
        return tensors["bias"].masked_fill(part.fixed["holes"], -INFINITY)
    i, j = torch.arange(shape[-2])[:, None], torch.arange(shape[-1])[None]
    if name == "rule":
        return tensors["amplitude"][..., None, None] * torch.cos((i - 2 * j).double()).to(tensors["amplitude"])
    ahead = j - i - offset(options["align"], shape)
    if name == "alibi":
        return -tensors["slopes"][..., None, None] * ahead.abs().to(tensors["slopes"])
    table = tensors["table"]
    if name == "relative":
        reach = table.shape[-1] // 2
        index = ahead.clamp(-reach, reach) + reach
    else:
        buckets = [
            t5_bucket(d, table.shape[-1], options["bidirectional"], options["farthest"])
            for d in ahead.flatten().tolist()
        ]
        index = torch.tensor(buckets, dtype=torch.long).reshape(ahead.shape)
    return table[..., index.to(table.device)]


def t5_bucket(ahead: int, buckets: int, bidirectional: bool, farthest: int) -> int:
    """Of one relative position (key minus query), as the paper says: half the buckets exact, then log-spaced."""
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if ahead > 0 else 0
        distance = abs(ahead)
    else:
        distance = max(-ahead, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    far = exact + int(math.log(distance / exact) / math.log(farthest / exact) * (buckets - exact))
    return first + min(far, buckets - 1)


# Random numbers: a hash of the call's seed and the place (batch element, query, key), on Python's own integers


def two_seeds(generator: torch.Generator) -> list[int]:
    return torch.randint(0, 2**32 - 1, (2,), generator=generator).tolist()


def random_bits(seeds: list[int], shape: tuple[int, ...]) -> Tensor:
    """32 bits for every place, int64."""
    *batch, rows, columns = shape
    mask, golden = np.uint64(0xFFFFFFFF), np.uint64(0x9E3779B9)

    def mixed(x: np.ndarray) -> np.ndarray:
        x = (x ^ (x >> np.uint64(16))) * np.uint64(0x21F0AAAD) & mask
        x = (x ^ (x >> np.uint64(15))) * np.uint64(0xD35A2D97) & mask
        return x ^ (x >> np.uint64(15))

    element = np.arange(math.prod(batch), dtype=np.uint64)[:, None]
    place = element * golden + np.arange(rows, dtype=np.uint64)
    low, high = place & mask, place >> np.uint64(32)
    first = mixed(mixed(low ^ np.uint64(seeds[0])) ^ high)
    second = mixed(mixed((low + golden) & mask ^ np.uint64(seeds[1])) ^ high)
    column = np.arange(columns, dtype=np.uint64) * golden & mask
    bits = mixed(mixed((column + first[..., None]) & mask) ^ second[..., None])
    return torch.from_numpy(bits.astype(np.int64)).reshape(shape)


def as_uniform(bits: Tensor) -> Tensor:
    """Strictly between 0 and 1, float32: the middles of 2^23 equal parts."""
    return ((bits >> 9).float() + 0.5) * 2.0**-23
