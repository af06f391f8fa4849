"""Which examples make a batch, in which order, and which of them fall to which process.

Everything follows from the lengths, a seed and the epoch, so a run goes on in the middle of an epoch by counting, and
the batches are the same ones however many processes share them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

POOL = 100  # batches' worth of examples that are sorted together


def shuffled(count: int, seed: int, *parts: int) -> list[int]:
    """Numbers below count in an order of their own for each seed; the same in every version of Python."""
    chance = random.Random(":".join(map(str, (seed, *parts))))
    keys = [chance.random() for _ in range(count)]
    return sorted(range(count), key=keys.__getitem__)


def batches(
    lengths: Sequence[int], tokens: int, *, seed: int, epoch: int = 0, examples: int | None = None
) -> list[list[int]]:
    """The batches of one epoch, as indices: at most `tokens` padded tokens and `examples` examples each.

    Examples are shuffled, sorted by length within pools, cut, and the batches shuffled again: so there is little
    padding, and an example meets others of its length, but not always the same. One longer than `tokens` is alone.
    """
    if tokens < 1 or (examples is not None and examples < 1):
        raise ValueError(f"tokens: came {tokens}, examples: {examples}; wanted one or more. Remedy: tokens=4096.")
    order = shuffled(len(lengths), seed, epoch, 0)
    mean = max(sum(lengths) / max(len(lengths), 1), 1.0)
    pool = max(int(POOL * tokens / mean), 1)
    cut: list[list[int]] = []
    for start in range(0, len(order), pool):
        cut += cut_by_length(sorted(order[start : start + pool], key=lengths.__getitem__), lengths, tokens, examples)
    return [cut[place] for place in shuffled(len(cut), seed, epoch, 1)]


def cut_by_length(order: Sequence[int], lengths: Sequence[int], tokens: int, examples: int | None) -> list[list[int]]:
    """Runs of examples of growing length; a run's cost is its number times its longest."""
    cut: list[list[int]] = []
    for index in order:
        run = cut[-1] if cut else []
        full = (len(run) + 1) * lengths[index] > tokens or (examples is not None and len(run) >= examples)
        if not run or full:
            cut.append([index])
        else:
            run.append(index)
    return cut


def share(batch: Sequence[int], rank: int, world: int) -> list[int]:
    """What falls to one of several processes: every world-th example, so that lengths are alike; may be none."""
    if not 0 <= rank < world:
        raise ValueError(
            f"rank: came {rank} of {world} processes, wanted 0 to {world - 1}. Remedy: torchrun sets both."
        )
    return list(batch[rank::world])
