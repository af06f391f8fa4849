"""The tiled road for pair forms that we know: blocks of rows, buffers reused, everything recomputed backward.

Forward holds the scores of one block at a time. Backward under softmax, with nothing seen, goes tile by tile with the
saved log-sum-exp, since

    ds = p (dp - delta),     dp = do v^T,     delta = sum_j p_j dp_j = do . o

holds for any part of a row; otherwise it remakes whole rows and lets autograd differentiate what is between the scores
and the context: the normaliser and what is to be seen. Nothing of size T x T is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from threading import Event, Lock
from typing import Any

import torch
from torch import Tensor

from regard.core import normalisers
from regard.core.normalisers import INFINITY, Softmax
from regard.core.problem import Problem
from regard.core.scores import Change
from regard.core.see import Parts, Thing, rows_before
from regard.kernels.pairs import WIDTH
from regard.kernels.spread import flatten, spread_of
from regard.kernels.walk import Block, Walk
from regard.kernels.workers import together


def is_soft(problem: Problem) -> bool:
    """Whether the normaliser is softmax with a temperature that is not learned."""
    return isinstance(problem.normalise, Softmax) and not isinstance(problem.normalise.temperature, Tensor)


def temperature(problem: Problem) -> float:
    """Of softmax; one for other normalisers."""
    known = problem.normalise
    return known.temperature if isinstance(known, Softmax) and not isinstance(known.temperature, Tensor) else 1.0


def soften(scores: Tensor, warmth: float, guarded: bool) -> Tensor:
    """Softmax of scores [run rows columns] in place -> log-sum-exp [run rows]; rows of -infinity become zero."""
    if not scores.shape[-1]:
        return scores.new_full(scores.shape[:-1], -INFINITY)
    if warmth != 1.0:
        scores.div_(warmth)
    best = scores.amax(-1, keepdim=True)
    dead = best == -INFINITY if guarded else None
    if dead is not None:
        best.masked_fill_(dead, 0.0)
    scores.sub_(best).exp_()
    total = scores.sum(-1, keepdim=True)
    if dead is not None:
        total.masked_fill_(dead, 1.0)
    scores.div_(total)
    logarithm = total.log_().add_(best)
    return (logarithm if dead is None else logarithm.masked_fill_(dead, -INFINITY))[..., 0]


class Gathered:
    """What is to be seen, gathered block by block: rows go to their place in the whole, sums add up by worker.

    The whole is made once. Small results kept apart until the end would lie between the large temporaries of the
    blocks, and the allocator could give none of that memory back.
    """

    def __init__(self, walk: Walk, workers: int) -> None:
        self.walk = walk
        self.rows: dict[int, Parts] = {}
        self.sums: list[dict[int, Parts]] = [{} for _ in range(workers)]
        self.making = Lock()

    def room(self, number: int, part: Parts, size: int | None) -> Parts:
        """Zeros for all elements, and for so many rows where the thing merges by rows."""
        dimension, room = self.walk.things[number].dimension, []
        for piece in part:
            shape = list(piece.shape)
            shape[0] = self.walk.total
            if size is not None:
                shape[dimension] = size
            room.append(piece.new_zeros(shape))
        return tuple(room)

    def add(self, worker: int, block: Block, parts: Sequence[Parts]) -> None:
        queries, run = self.walk.problem.queries, slice(*block.run)
        for number, part in enumerate(parts):
            thing = self.walk.things[number]
            if thing.merge == "rows":
                with self.making:
                    if number not in self.rows:
                        self.rows[number] = self.room(number, part, rows_before(thing, queries, queries))
                at = rows_before(thing, block.rows.start, queries)
                for whole, piece in zip(self.rows[number], part, strict=True):
                    whole[run].narrow(thing.dimension, at, piece.shape[thing.dimension]).copy_(piece)
            else:
                mine = self.sums[worker]
                if number not in mine:
                    mine[number] = self.room(number, part, None)
                for whole, piece in zip(mine[number], part, strict=True):
                    whole[run].add_(piece)

    def whole(self) -> list[Parts]:
        """Every thing's parts over all elements and all rows; workers' sums in their order."""
        answer = []
        for number, thing in enumerate(self.walk.things):
            if thing.merge == "rows":
                answer.append(self.rows[number])
            else:
                several = [sums[number] for sums in self.sums if number in sums]
                answer.append(tuple(reduce(torch.add, pieces) for pieces in zip(*several, strict=True)))
        return answer


@torch.no_grad()
def forward_share(walk: Walk, context: Tensor, total: Tensor, gathered: Gathered, stop: Event) -> None:
    """One worker's blocks: their rows of the context and the log-sum-exp, in place, and what is to be seen of them."""
    problem = walk.problem
    buffer = walk.buffer(problem.keys)
    soft, guarded = is_soft(problem), problem.mask is not None or problem.bias is not None
    for block in walk.blocks():
        if stop.is_set():
            break
        scores = walk.scores(block, buffer)
        weights = (
            scores.clone() if walk.things else scores
        )  # a part may be a view of the weights, and outlive the buffer
        if soft:
            total[block.place] = soften(weights, temperature(problem), guarded)
        else:
            weights = walk.weights(block, weights)
        gathered.add(walk.number, block, walk.parts(block, weights, scores))
        kept = walk.kept(block)
        if kept is not None:
            weights = weights * kept
        context[block.place] = torch.bmm(weights, walk.values(block))


def forward(problem: Problem) -> tuple[Tensor, Tensor, list[Parts]]:
    """Context [elements q v], log-sum-exp [elements q] (of softmax), and what is to be seen, over all elements."""
    walk = Walk(problem)
    context = walk.value.new_zeros(walk.total, problem.queries, problem.value.shape[-1])
    total = walk.value.new_full((walk.total, problem.queries), -INFINITY)
    shares = walk.shares(own=0)
    gathered = Gathered(walk, len(shares))
    together(lambda number, stop: forward_share(shares[number], context, total, gathered, stop), len(shares))
    return context, total, gathered.whole()


@dataclass
class Slopes:
    """The gradients of one call, where they gather."""

    walk: Walk
    to_value: Tensor
    to_normaliser: list[Tensor]
    to_bias: list[Tensor]

    @classmethod
    def of(cls, walk: Walk) -> Slopes:
        walk.tiles.start_backward()
        problem = walk.problem
        zeros = [torch.zeros_like(tensor) for tensor in normaliser_tensors(problem)]
        biases = [torch.zeros_like(tensor) for tensor in bias_tensors(problem)]
        return cls(walk, torch.zeros_like(walk.value), zeros, biases)

    def join(self, others: Sequence[Slopes]) -> None:
        """Add what gathered with other workers, in their order."""
        self.walk.tiles.join([other.walk.tiles for other in others])
        for other in others:
            self.to_value.add_(other.to_value)
            for mine, theirs in zip(self.small(), other.small(), strict=True):
                mine.add_(theirs)

    def small(self) -> list[Tensor]:
        return self.to_normaliser + self.to_bias

    def add_value(self, block: Block, weights: Tensor, gradient: Tensor) -> None:
        """dv = p^T do"""
        into = self.to_value[:, block.columns.start : block.columns.stop]
        one = self.walk.of_value.single(*block.run)
        if one is not None and block.size[0] == 1:
            into[one].addmm_(weights[0].mT, gradient[0])
        else:
            self.walk.of_value.add(into, torch.bmm(weights.mT, gradient), *block.run)

    def add_scores(self, block: Block, gradient: Tensor) -> None:
        """ds, which is overwritten: to the bias, and through the pair form to the sides."""
        problem = self.walk.problem
        if problem.bias is not None and self.to_bias:
            self.add_bias(block, gradient)
        self.walk.tiles.backward(block.run, block.rows, block.columns, gradient)

    def add_bias(self, block: Block, gradient: Tensor) -> None:
        """ds to the tensors of the bias, by differentiating its tile."""
        problem = self.walk.problem
        with torch.enable_grad():
            leaves: list[Tensor] = []

            def leaf(tensor: Tensor, _: int) -> Tensor:
                leaves.append(tensor.detach().requires_grad_())
                return leaves[-1]

            assert problem.bias is not None
            free = replace(problem, bias=problem.bias.mapped(leaf))
            tile = free.bias_tile(block.rows, block.columns)
        assert tile is not None
        down, across = tile.shape[-2], tile.shape[-1]
        summed = gradient.sum(1, keepdim=True) if down == 1 else gradient
        summed = summed.sum(2, keepdim=True) if across == 1 else summed
        to_tile = torch.zeros_like(flatten(tile, 2))
        spread_of(tile, 2, problem.batch).add(to_tile, summed.to(tile.dtype), *block.run)
        found = torch.autograd.grad(tile, leaves, to_tile.reshape(tile.shape), allow_unused=True)
        for into, slope in zip(self.to_bias, found, strict=True):
            if slope is not None:
                into.add_(slope)


@torch.no_grad()
def backward_by_tile(walk: Walk, context: Tensor, total: Tensor, gradient: Tensor, stop: Event) -> Slopes:
    """Softmax with nothing seen: any tile by itself, with the saved log-sum-exp. One worker's share."""
    slopes = Slopes.of(walk)
    problem = walk.problem
    width = min(WIDTH if walk.tiles.features > 1 else 4 * WIDTH, max(problem.keys, 1))
    buffer, warmth = walk.buffer(width), temperature(problem)
    delta = (gradient * context).sum(-1, keepdim=True)
    total = total.masked_fill(total == -INFINITY, 0.0)[..., None]
    for block in walk.blocks(width):
        if stop.is_set():
            break
        weights = walk.scores(block, buffer)
        if warmth != 1.0:
            weights.div_(warmth)
        weights.sub_(total[block.place]).exp_()
        upstream, kept = gradient[block.place], walk.kept(block)
        slope = torch.bmm(upstream, walk.values(block).mT)
        if kept is not None:
            slope.mul_(kept)
        slopes.add_value(block, weights if kept is None else weights * kept, upstream)
        slope.sub_(delta[block.place]).mul_(weights)
        slopes.add_scores(block, slope if warmth == 1.0 else slope.div_(warmth))
    return slopes


@torch.no_grad()
def backward_by_row(walk: Walk, gradient: Tensor, seen: Sequence[Sequence[Tensor | None]], stop: Event) -> Slopes:
    """Any normaliser, anything seen: whole rows, differentiated from the weights to the scores. One worker's share."""
    slopes, queries = Slopes.of(walk), walk.problem.queries
    buffer = walk.buffer(walk.problem.keys)
    for block in walk.blocks():
        if stop.is_set():
            break
        scores = walk.scores(block, buffer).clone().requires_grad_()
        tensors = [tensor.detach().requires_grad_() for tensor in normaliser_tensors(walk.problem)]
        with torch.enable_grad():
            free = Walk.__new__(Walk)
            free.__dict__.update(walk.__dict__)
            free.normalise = normalisers.mapped(with_normaliser(walk.problem, tensors), walk.over_batch)
            weights = free.weights(block, scores)
            parts = free.parts(block, weights, scores)
        upstream, kept = gradient[block.place], walk.kept(block)
        used = weights.detach() if kept is None else weights.detach() * kept
        slopes.add_value(block, used, upstream)
        slope = torch.bmm(upstream, walk.values(block).mT)
        ends, given = [weights], [slope if kept is None else slope.mul_(kept)]
        for number, part in enumerate(parts):
            at = rows_before(walk.things[number], block.rows.start, queries)
            for tensor, whole in zip(part, seen[number], strict=True):
                if whole is not None and tensor.requires_grad:
                    ends.append(tensor)
                    given.append(part_of(whole, block, walk.things[number], at, tensor))
        found = torch.autograd.grad(ends, [scores, *tensors], given, allow_unused=True)
        for into, slope_of in zip(slopes.to_normaliser, found[1:], strict=True):
            if slope_of is not None:
                into.add_(slope_of)
        if found[0] is not None:
            slopes.add_scores(block, found[0].contiguous())
    return slopes


def part_of(whole: Tensor, block: Block, thing: Thing, at: int, part: Tensor) -> Tensor:
    """The gradient of a block's part, out of the gradient of the whole."""
    run = whole[slice(*block.run)]
    return run if thing.merge == "sum" else run.narrow(thing.dimension, at, part.shape[thing.dimension])


def normaliser_tensors(problem: Problem) -> list[Tensor]:
    """The tensors that the normaliser holds, those that can have a gradient."""
    held = held_by(lambda change: normalisers.mapped(problem.normalise, change))
    return [tensor for tensor in held if tensor.is_floating_point()]


def with_normaliser(problem: Problem, tensors: Sequence[Tensor]) -> normalisers.Callables:
    left = list(tensors)
    return normalisers.mapped(
        problem.normalise, lambda tensor, _: left.pop(0) if tensor.is_floating_point() else tensor
    )


def bias_tensors(problem: Problem) -> list[Tensor]:
    """The tensors that the bias holds."""
    return [] if problem.bias is None else held_by(problem.bias.mapped)


def pair_tensors(problem: Problem) -> list[Tensor]:
    """The tensors that the pair form holds."""
    return held_by(problem.pair.mapped)


def held_by(mapped: Callable[[Change], object]) -> list[Tensor]:
    """The tensors that an object holds, by its `mapped`."""
    found: list[Tensor] = []

    def note(tensor: Tensor, _: int) -> Tensor:
        found.append(tensor)
        return tensor

    mapped(note)
    return found


def tensors_of(problem: Problem) -> list[Tensor]:
    """Everything that can have a gradient, in one order."""
    sides = [problem.query, problem.key, problem.value]
    return sides + pair_tensors(problem) + normaliser_tensors(problem) + bias_tensors(problem)


def with_tensors(problem: Problem, tensors: Sequence[Tensor]) -> Problem:
    """The same problem over other tensors, in the order of `tensors_of`."""
    left = list(tensors)
    query, key, value = left.pop(0), left.pop(0), left.pop(0)
    pair = problem.pair.mapped(lambda *_: left.pop(0))
    own = len(normaliser_tensors(problem))
    normalise = with_normaliser(problem, left[:own])
    left = left[own:]
    bias = None if problem.bias is None else problem.bias.mapped(lambda *_: left.pop(0))
    return replace(problem, query=query, key=key, value=value, pair=pair, normalise=normalise, bias=bias)


class Streamed(torch.autograd.Function):
    """The whole call as one step of autograd: outputs are the context and the parts of everything to be seen."""

    @staticmethod
    def forward(ctx: Any, problem: Problem, *tensors: Tensor) -> tuple[Tensor, ...]:
        context, total, parts = forward(with_tensors(problem, [tensor.detach() for tensor in tensors]))
        flat = [tensor for part in parts for tensor in part]
        ctx.problem = with_tensors(problem, [tensor.new_empty(0) for tensor in tensors])
        ctx.counts = [len(part) for part in parts]
        ctx.save_for_backward(*tensors, context, total)
        ctx.mark_non_differentiable(*(tensor for tensor in flat if not tensor.is_floating_point()))
        return context, *flat

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, context, total = ctx.saved_tensors
        with torch.no_grad():
            problem = with_tensors(ctx.problem, tensors)
            walk = Walk(problem)
            own = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            shares = walk.shares(own)
            if is_soft(problem) and not problem.see:
                several = together(
                    lambda number, stop: backward_by_tile(shares[number], context, total, gradients[0], stop),
                    len(shares),
                )
            else:
                rest = list(gradients[1:])
                seen = [[rest.pop(0) for _ in range(count)] for count in ctx.counts]
                several = together(
                    lambda number, stop: backward_by_row(shares[number], gradients[0], seen, stop), len(shares)
                )
            slopes = several[0]
            slopes.join(several[1:])
            to_query, to_key, to_pair = walk.tiles.gradients()
            found = [to_query, to_key, slopes.to_value.reshape(problem.value.shape), *to_pair]
            found += slopes.to_normaliser + slopes.to_bias
            answer = [slope.to(tensor.dtype) for slope, tensor in zip(found, tensors, strict=True)]
        return None, *(once(answer) if torch.is_grad_enabled() else answer)


TWICE = "attend: the tiled road cannot be differentiated twice. Remedy: backend='definition', which can."


def once(gradients: list[Tensor]) -> tuple[Tensor, ...]:
    """The same gradients, which say what to do when somebody differentiates them again."""
    refusing = torch._C._functions.DelayedError(TWICE, len(gradients))
    free = [gradient.detach().requires_grad_() for gradient in gradients]
    answer = refusing(*free)
    return answer if isinstance(answer, tuple) else (answer,)


def attend_streamed(problem: Problem) -> tuple[Tensor, list[Parts]]:
    """Context [elements q v] and the parts of everything to be seen, [elements ...]."""
    context, *flat = Streamed.apply(problem, *tensors_of(problem))  # type: ignore[no-untyped-call]
    parts = []
    for thing in problem.see:
        parts.append(tuple(flat[: thing.pieces]))
        flat = flat[thing.pieces :]
    return context, parts
