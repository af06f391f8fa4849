"""The fused road: PyTorch's scaled_dot_product_attention, where it serves exactly.

It differs from the contract in what a mask means to NaN and to rows without anything to see, so both are handled
around it: tokens that hold NaN come in as zeros and NaN is written into the rows that may see them; a row without
anything to see is let see everything, and its context is then set to zero, so that no kernel meets an empty row and no
gradient comes back from one.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from regard.core.biases import Dense
from regard.core.finite import poison
from regard.core.normalisers import INFINITY, Softmax
from regard.core.problem import Problem
from regard.core.scores import Dot
from regard.core.shapes import HALF, wide
from regard.core.windows import Window

LARGEST = 2**28  # numbers in a mask or bias that is made whole for PyTorch


def refuses(problem: Problem) -> str | None:
    """Why PyTorch's kernel cannot serve exactly; None where it can."""
    if not isinstance(problem.pair, Dot):
        return f"the score's pair form is {type(problem.pair).__name__}, not a dot product"
    if not (isinstance(problem.normalise, Softmax) and isinstance(problem.normalise.temperature, float)):
        return f"the normaliser is {type(problem.normalise).__name__}, not softmax with a fixed temperature"
    if problem.see:
        return "it gives no weights, and something is to be seen"
    if problem.dropout:
        return "its dropout draws another mask than the other roads"
    if problem.bias is not None and not isinstance(problem.bias, Dense):
        return "the bias is a rule, and it takes only tensors"
    if rounds_bias(problem):
        return f"the bias would be rounded to {str(taken(problem)).removeprefix('torch.')}"
    if not (problem.shape.numel() and problem.query.shape[-1] and problem.value.shape[-1]):
        return "there is nothing to compute, and some of its kernels divide by how much there is"
    if torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0:
        return "a torch.func transform or forward-mode differentiation is on"
    if not (is_causal(problem) or held(problem) <= LARGEST):
        return f"its mask and bias would be held whole, {held(problem):,} numbers"
    return None


def taken(problem: Problem) -> torch.dtype:
    """The type that PyTorch's kernel computes in: the values', or float32 for sides that float16 may not hold."""
    value = problem.value.dtype
    if value != torch.float16:
        return value
    return torch.promote_types(torch.promote_types(problem.query.dtype, problem.key.dtype), value)


def rounds_bias(problem: Problem) -> bool:
    """Whether the bias, over the temperature, is more exact than what PyTorch takes it in."""
    if not isinstance(problem.bias, Dense):
        return False
    own, to = problem.bias.tensor.dtype, taken(problem)
    return torch.promote_types(own, to) != to or (to in HALF and fixed_temperature(problem) != 1.0)


def is_causal(problem: Problem) -> bool:
    """Whether PyTorch's own causal mask is the one asked for, and nothing else is."""
    mask = problem.mask
    if not isinstance(mask, Window) or mask.left is not None or mask.right != 0 or problem.bias is not None:
        return False
    return mask.align == "start" or problem.queries == problem.keys


def held(problem: Problem) -> int:
    """How many numbers the mask and the bias have when made whole; found from their corners, not by making them."""
    downs, acrosses = (corners(count) for count in (problem.queries, problem.keys))
    total = 0
    for make in (problem.mask_tile, problem.bias_tile):
        tiles = [make(down, across) for down in downs for across in acrosses]
        tensors = [tile for tile in tiles if isinstance(tile, Tensor)]
        if not tensors and len({tile is True for tile in tiles}) == 1:
            continue  # everything may be seen, or nothing, or there is no bias
        batch = max([1] + [tile.shape[:-2].numel() for tile in tensors])
        down = max([tile.shape[-2] for tile in tensors] or [2])
        across = max([tile.shape[-1] for tile in tensors] or [2])
        total += batch * (problem.queries if down > 1 else 1) * (problem.keys if across > 1 else 1)
    return total


def corners(count: int) -> tuple[range, range]:
    """The first two and the last two of so many."""
    return range(min(count, 2)), range(max(count - 2, 0), count)


def lost_rows(problem: Problem, seen: Tensor | None, causal: bool) -> Tensor | None:
    """Rows [*batch q 1] of the context that may see a token that holds NaN; seen=None is everything."""
    if problem.bad_key is None and problem.bad_query is None:
        return None
    zero = torch.zeros(1, dtype=torch.bool, device=problem.key.device)
    bad_key = zero.expand(problem.keys) if problem.bad_key is None else problem.bad_key
    if causal:
        met = bad_key.cumsum(-1) > 0  # by the first i keys, for query i; later queries see all keys
        last = torch.arange(problem.queries, device=met.device).clamp_max(problem.keys - 1)
        lost, alive = met[..., last], torch.ones_like(zero)
    else:
        seen = torch.ones_like(zero)[None] if seen is None else seen
        lost, alive = (seen & bad_key[..., None, :]).any(-1), seen.any(-1)
    return (lost if problem.bad_query is None else lost | (problem.bad_query & alive))[..., None]


def attend_fused(problem: Problem) -> Tensor:
    """The context; `refuses` has said None."""
    scale = fixed_scale(problem)
    flat = four_dimensions(problem)
    if not scale > 0:  # PyTorch multiplies minus infinity behind its causal mask by the scale
        flat, scale = (flat[0] * scale, *flat[1:]), 1.0
    causal = is_causal(problem)
    seen, added = (None, None) if causal else (whole_mask(problem), whole_bias(problem))
    hidden, dead = hiding(seen, added)
    if hidden is not None:
        hidden = over_four(problem, hidden, flat[0].dtype)
    context = scaled_dot_product_attention(
        *flat, attn_mask=hidden, is_causal=causal, scale=scale, enable_gqa=flat[0].shape[1] != flat[1].shape[1]
    )
    context = context.reshape(*problem.shape[:-1], problem.value.shape[-1])
    context = problem.split(context, 2)
    if dead is not None:
        context = context.masked_fill(dead, 0.0)
    lost = lost_rows(problem, seen, causal)
    if lost is not None:
        context = poison(context, lost)
    return problem.joined(context, 2).to(problem.value.dtype)


def fixed_scale(problem: Problem) -> float:
    """What the dot products are multiplied with before softmax."""
    if not isinstance(problem.pair, Dot):
        raise TypeError("fused: refuses() was not asked first")
    return problem.pair.factor(problem.query.shape[-1]) / fixed_temperature(problem)


def fixed_temperature(problem: Problem) -> float:
    normalise = problem.normalise
    if not isinstance(normalise, Softmax) or isinstance(normalise.temperature, Tensor):
        raise TypeError("fused: refuses() was not asked first")
    return normalise.temperature


def whole_bias(problem: Problem) -> Tensor | None:
    """The bias as one tensor, divided by the temperature as the scores are."""
    added, temperature = problem.bias_tile(*everything(problem)), fixed_temperature(problem)
    return added if added is None or temperature == 1.0 else wide(added) / temperature


def everything(problem: Problem) -> tuple[range, range]:
    return range(problem.queries), range(problem.keys)


def whole_mask(problem: Problem) -> Tensor | None:
    """The mask as one boolean tensor; None where all may be seen."""
    tile = problem.mask_tile(*everything(problem))
    if isinstance(tile, Tensor):
        return tile
    return None if tile else torch.zeros(1, problem.keys, dtype=torch.bool, device=problem.key.device)


def hiding(seen: Tensor | None, added: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """What PyTorch gets as attn_mask, and the rows [*batch q 1] without anything to see, which it gets opened."""
    if added is None:
        if seen is None:
            return None, None
        dead = ~seen.any(-1, keepdim=True)
        return seen | dead, dead
    if seen is not None:
        added = added.masked_fill(~seen, -INFINITY)
    dead = (added == -INFINITY).all(-1, keepdim=True)
    return added.masked_fill(dead, 0.0), dead


def four_dimensions(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value as [batch heads length width] of one type, which is what PyTorch's kernels are made for."""
    batch, dtype = problem.shape[:-2], taken(problem)
    heads = batch[-1:] or torch.Size((1,))
    lead = batch[:-1]

    def flat(tensor: Tensor, own: torch.Size) -> Tensor:
        tensor = tensor.to(dtype).expand(*lead, *own, *tensor.shape[-2:])
        return tensor.reshape(lead.numel(), *own, *tensor.shape[-2:])

    if problem.groups == 1:
        return flat(problem.query, heads), flat(problem.key, heads), flat(problem.value, heads)
    key_heads = torch.Size((heads[0] // problem.groups,))
    query = problem.joined(problem.query, 2)
    return flat(query, heads), flat(problem.key.squeeze(-3), key_heads), flat(problem.value.squeeze(-3), key_heads)


def over_four(problem: Problem, hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask or bias over this problem's batch, over PyTorch's four dimensions."""
    if hidden.dim() > 2:
        hidden = problem.joined(hidden, 2)
    if hidden.dim() > 4:
        lead = torch.Size((1,) * (len(problem.shape) - hidden.dim()) + hidden.shape[:-3])
        whole = lead if lead.numel() == 1 else problem.shape[:-3]
        hidden = hidden.expand(*whole, *hidden.shape[-3:]).reshape(whole.numel(), *hidden.shape[-3:])
    while hidden.dim() < 4:
        hidden = hidden[None]
    return hidden if hidden.dtype == torch.bool else hidden.to(dtype)
