"""The tiled road for what we know nothing about: a user's score, normaliser or rule, whatever it holds.

Blocks of rows go through the definition under checkpointing, so that backward recomputes them one at a time. Gradients
reach everything that the user's functions use, also what we cannot see.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.core.problem import Problem
from regard.core.see import Parts
from regard.core.weigh import attended_rows
from regard.kernels.walk import CACHE, DEVICE


def block_height(problem: Problem) -> int:
    """How many rows make a block; the user's function may hold some features for every pair."""
    budget = CACHE if problem.key.device.type == "cpu" else DEVICE
    row = max(problem.batch.numel() * problem.keys, 1) * 8
    return max(1, budget // row)


def attend_recomputed(problem: Problem) -> tuple[Tensor, list[list[Parts]]]:
    """Context [*batch q v], wide, and for every thing to see the parts of each block."""
    contexts: list[Tensor] = []
    seen: list[list[Parts]] = [[] for _ in problem.see]
    step = block_height(problem)
    for start in range(0, max(problem.queries, 1), step):
        rows = range(start, min(start + step, problem.queries))
        columns = range(problem.keys) if problem.see else problem.span(rows)
        if torch.is_grad_enabled():
            context, parts = checkpoint(attended_rows, problem, rows, columns, use_reentrant=False)
        else:
            context, parts = attended_rows(problem, rows, columns)
        contexts.append(context)
        for several, part in zip(seen, parts, strict=True):
            several.append(part)
    return torch.cat(contexts, -2), seen
