"""The tiled road: any score and any normaliser on any device, in memory that grows with the length, not its square.

Rows come in blocks and stay whole, so sparse and hard normalisers and the user's own need no streaming form. What we
know goes through `streamed` (buffers reused, gradients written out); what we do not know through `recomputed`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.biases import Bias
from regard.core.entmax import EntmaxNormaliser
from regard.core.finite import poison
from regard.core.hard import Gumbel, Hard
from regard.core.normalisers import Given, Softmax
from regard.core.problem import Problem
from regard.core.shapes import wide
from regard.core.weigh import broken_pairs, finished
from regard.kernels.recomputed import attend_recomputed, block_height
from regard.kernels.streamed import attend_streamed
from regard.kernels.walk import KNOWN

NORMALISERS = (Softmax, EntmaxNormaliser, Hard, Gumbel, Given)


def refuses(problem: Problem) -> str | None:
    """Why tiles cannot serve; None where they can."""
    if torch.compiler.is_compiling():
        return "the call is being compiled, and the compiler fuses the definition itself"
    if torch._C._are_functorch_transforms_active():
        return "a torch.func transform is active, and it needs the definition's own operations"
    if torch.autograd.forward_ad._current_level >= 0:
        return "forward-mode differentiation is on, and it needs the definition's own operations"
    if problem.key.device.type == "meta" or isinstance(problem.key, torch._subclasses.FakeTensor):
        return "these tensors have shapes and no numbers"
    return None


def features(problem: Problem) -> int:
    """How many numbers the definition holds for one pair."""
    return max(problem.key.shape[-1], 1) if problem.pair.many else 1


def is_known(problem: Problem) -> bool:
    """Whether pair form, normaliser and bias are ours, with no tensor hidden in a closure."""
    if not isinstance(problem.pair, KNOWN) or not isinstance(problem.normalise, NORMALISERS):
        return False
    return problem.bias is None or not hides(problem.bias, problem)


def hides(bias: Bias, problem: Problem) -> bool:
    """Whether a rule uses a tensor with a gradient that it was not handed."""
    with torch.enable_grad():
        known = bias.mapped(lambda tensor, _: tensor.detach())
        corner = known.tile(
            range(min(problem.queries, 1)), range(min(problem.keys, 1)), problem.shape, problem.key.device
        )
    return corner.requires_grad


def attend_tiled(problem: Problem) -> tuple[Tensor, list[object]]:
    """Context and what was asked to be seen; `refuses` has said None."""
    if not is_known(problem) or not problem.shape[:-1].numel():  # without rows there are no blocks to walk
        context, seen = attend_recomputed(problem)
        return finished(problem, context, seen)
    context, parts = attend_streamed(problem)
    context = context.reshape(*problem.batch, *context.shape[1:])
    if problem.bad_key is not None or problem.bad_query is not None:
        context = poison(context, lost_rows(problem)[..., None])
    shaped = [[tuple(p.reshape(*problem.batch, *p.shape[1:]) for p in part)] for part in parts]
    return finished(problem, context.to(wide(problem.value).dtype), shaped)


def lost_rows(problem: Problem) -> Tensor:
    """Rows [*batch q] that may see a token that holds NaN, a block at a time."""
    lost = []
    step = block_height(problem)
    for start in range(0, problem.queries, step):
        rows = range(start, min(start + step, problem.queries))
        columns = problem.span(rows)
        tile = problem.mask_tile(rows, columns)
        whole = (*problem.batch, len(rows), len(columns))
        mask = tile.expand(whole) if isinstance(tile, Tensor) else problem.key.new_full(whole, tile, dtype=torch.bool)
        pairs = broken_pairs(problem, rows, columns, mask)
        lost.append(mask.any(-1) & False if pairs is None else pairs.any(-1))
    return torch.cat(lost, -1)
