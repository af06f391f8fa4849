"""Laws of symmetry: every road is the definition, order does not matter, parts make the whole."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

import regard
from regard.core.scores import as_score
from regard.core.see import Thing
from tests.cases import Case
from tests.held import (
    Results,
    agree,
    also_masked,
    cuts,
    everywhere,
    hold,
    looked,
    masked,
    numbers,
    of_keys,
    of_queries,
    spelled_out,
    statistics,
)
from tests.parts import SCORES
from tests.tolerances import check_forward


def every_road_is_the_definition(case: Case, road: str) -> None:
    """Context and everything that can be seen are those of plain PyTorch in float64, as closely as the type allows."""
    verdict = check_forward(case, [road])
    hold(bool(verdict), f"{road} is not the definition: {'; '.join(verdict.wrong)}")


def every_road_learns_alike(case: Case, road: str) -> None:
    """Gradients of everything that has one are those of the definition, through the context and what is seen."""
    things = [regard.Entropy(), regard.Received(), regard.Weights(), regard.LogSumExp()]
    things = things if case.serves(road, things) else []
    agree(case, gradients(case, road, things), lambda c: gradients(c, "definition", things), "the gradients")


def gradients(case: Case, road: str, things: list[Thing]) -> Results:
    """Of every leaf, for a loss that depends on all results."""
    learning = case.learning()
    generator = numbers(case, 5)
    loss = torch.zeros((), dtype=torch.float64)
    for tensor in looked(learning, road, things).values():
        push = torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor)
        finite = torch.isfinite(tensor.detach())
        loss = loss + (tensor.masked_fill(~finite, 0.0) * push).sum()
    loss.backward()
    zero = {name: torch.zeros_like(leaf) for name, leaf in learning.leaves().items()}
    return {name: zero[name] if leaf.grad is None else leaf.grad for name, leaf in learning.leaves().items()}


def the_order_of_keys_does_not_matter(case: Case, road: str) -> None:
    """Permuting keys, values, mask and bias together changes no context; weights are permuted along."""
    order = torch.randperm(case.keys, generator=numbers(case, 6))
    things = statistics() if case.serves(road, statistics()) else []
    plain_case = spelled_out(case)

    def permuted(other: Case) -> Results:
        found = looked(of_keys(spelled_out(other), order), road, things)
        back = order.argsort()
        return {
            name: tensor[..., back] if name in ("weights", "received") else tensor for name, tensor in found.items()
        }

    agree(plain_case, looked(plain_case, road, things), permuted, "permuted keys")


def the_order_of_queries_does_not_matter(case: Case, road: str) -> None:
    """Permuting queries, mask and bias together permutes the contexts."""
    order = torch.randperm(case.queries, generator=numbers(case, 7))
    things = statistics() if case.serves(road, statistics()) else []
    plain_case = spelled_out(case)

    def permuted(other: Case) -> Results:
        found = looked(of_queries(spelled_out(other), order), road, things)
        back = order.argsort()
        turned = {}
        for name, tensor in found.items():
            rows = -2 if name in ("context", "weights") else -1
            turned[name] = tensor if name == "received" else tensor.index_select(rows, back)
        return turned

    agree(plain_case, looked(plain_case, road, things), permuted, "permuted queries")


def batch_elements_do_not_see_each_other(case: Case, road: str) -> None:
    """What one element of the batch holds changes nothing for the others."""
    if len(case.batch) < 1 + case.grouped or case.batch[0] < 2:  # a batch that the keys do not have is none
        return
    size, generator = case.batch[0], numbers(case, 8)

    def changed(tensor: Tensor | None) -> Tensor | None:
        if tensor is None or tensor.dim() != len(case.shape) or tensor.shape[0] != size:
            return tensor
        fresh = torch.randn(tensor.shape[1:], generator=generator, dtype=torch.float64).to(tensor)
        return torch.cat([fresh[None], tensor[1:]])

    query, key, value = (changed(tensor) for tensor in (case.query, case.key, case.value))
    things = statistics() if case.serves(road, statistics()) else []
    found = looked(replace(case, query=query, key=key, value=value), road, things)

    def others(other: Case) -> Results:
        return {name: tensor[1:] for name, tensor in looked(other, road, things).items()}

    agree(case, {name: tensor[1:] for name, tensor in found.items()}, others, "the other elements of the batch")


def blocks_of_queries_make_the_whole(case: Case, road: str) -> None:
    """Queries attended to in blocks and merged are the queries attended to at once."""
    things = [*statistics(), regard.Top(2)]
    whole = spelled_out(case)

    def merged(other: Case) -> Results:
        wide = spelled_out(other)
        parts = [of_queries(wide, block).attend(road, things) for block in cuts(case, case.queries)]
        context, seen = regard.merge_queries(parts)
        return {"context": context} | {thing.name: seen[thing] for thing in things[:-1]} | {"top": seen.top.values}

    def at_once(other: Case) -> Results:
        context, seen = other.attend(road, things)
        return {"context": context} | {thing.name: seen[thing] for thing in things[:-1]} | {"top": seen.top.values}

    agree(whole, at_once(whole), merged, "blocks of queries")


def chunks_of_keys_make_the_whole(case: Case, road: str) -> None:
    """Under softmax, keys attended to in chunks and merged by their log-sum-exps are the keys attended to at once."""
    things = [regard.LogSumExp(), regard.Entropy(), regard.Weights(), regard.Top(3)]
    whole = spelled_out(case)
    blocks = cuts(case, case.keys)

    def merged(other: Case) -> Results:
        wide = spelled_out(other)
        parts = [of_keys(wide, block).attend(road, things) for block in blocks]
        context, seen = regard.merge_keys(parts, [len(block) for block in blocks])
        return {"context": context} | {thing.name: seen[thing] for thing in things[:-1]} | {"top": seen.top.values}

    def at_once(other: Case) -> Results:
        context, seen = other.attend(road, things)
        return {"context": context} | {thing.name: seen[thing] for thing in things[:-1]} | {"top": seen.top.values}

    agree(whole, at_once(whole), merged, "chunks of keys")


def broken(case: Case) -> tuple[Case, Tensor, Tensor]:
    """The case with NaN and infinity in some tokens; which queries and which keys they are."""
    generator = numbers(case, 9)
    keys = torch.rand(case.keys, generator=generator) < 0.3
    queries = torch.rand(case.queries, generator=generator) < (0.2 if case.query is not None else -1.0)
    what = (torch.nan, torch.inf, -torch.inf)[case.seed % 3]
    where = case.seed // 3 % 3  # in the keys, the values, or both
    key = case.key if where == 1 else case.key.masked_fill(keys[:, None], what)
    value = case.value if where == 0 else case.value.masked_fill(keys[:, None], what)
    query = case.query if case.query is None else case.query.masked_fill(queries[:, None], what)
    width = [case.key.shape[-1] if where != 1 else 0, case.value.shape[-1] if where != 0 else 0]
    keys = keys if max(width) else torch.zeros_like(keys)
    queries = queries if case.query is None or case.query.shape[-1] else torch.zeros_like(queries)
    return replace(case, key=key, value=value, query=query), queries, keys


def cleaned(case: Case, queries: Tensor, keys: Tensor) -> Case:
    """The case with zeros in those tokens."""
    key, value = (tensor.masked_fill(keys[:, None], 0.0) for tensor in (case.key, case.value))
    query = None if case.query is None else case.query.masked_fill(queries[:, None], 0.0)
    return replace(case, key=key, value=value, query=query)


def nothing_leaks_from_behind_a_mask(case: Case, road: str) -> None:
    """NaN and infinity behind a mask change nothing: the results are those with zeros in their places."""
    dirty, queries, keys = broken(case)
    hidden = ~(queries[:, None] | keys[None])
    dirty = also_masked(dirty, hidden)
    things = statistics() if case.serves(road, statistics()) else []

    def with_zeros(other: Case) -> Results:
        return looked(also_masked(cleaned(other, queries, keys), hidden), road, things)

    agree(case, looked(dirty, road, things), with_zeros, "NaN behind a mask")


def nothing_leaks_backwards(case: Case, road: str) -> None:
    """NaN and infinity behind a mask change no gradient, and get a gradient of zero."""
    dirty, queries, keys = broken(case)
    hidden = ~(queries[:, None] | keys[None])
    dirty = also_masked(dirty, hidden)

    def with_zeros(other: Case) -> Results:
        found = gradients(also_masked(cleaned(other, queries, keys), hidden), road, [])
        for name, places in (("query", queries), ("key", keys), ("value", keys)):
            if name in found:
                found[name] = found[name].masked_fill(places[:, None], 0.0)
        return found

    agree(case, gradients(dirty, road, []), with_zeros, "gradients beside NaN behind a mask")


def what_is_broken_breaks_the_rows_that_see_it(case: Case, road: str) -> None:
    """NaN or infinity in a token makes NaN of exactly the rows that may see it, and of no gradient of the others."""
    dirty, queries, keys = broken(case)
    seen = masked(case)
    lost = (seen & (queries[:, None] | keys[None])).any(-1)
    learning = dirty.learning()
    context = learning.attend(road)
    if not case.value.shape[-1]:
        return
    everywhere(context.isnan().all(-1) == lost, "exactly the rows that see NaN are NaN", context.isnan().all(-1), lost)
    everywhere(context.isnan().any(-1) == lost, "a row is NaN as a whole", context.isnan().any(-1), lost)
    sound = cleaned(case, queries, keys)

    def with_zeros(other: Case) -> Results:
        found = cleaned(other, queries, keys).attend(road)
        return {"context": found.masked_fill(lost[..., None], 0.0)}

    agree(sound, {"context": context.detach().masked_fill(lost[..., None], 0.0)}, with_zeros, "rows beside NaN")
    (context.masked_fill(lost[..., None], 0.0)).sum().backward()
    for name, leaf in learning.leaves().items():
        hold(leaf.grad is None or not bool(leaf.grad.isnan().any()), f"the gradient of {name} is no NaN")


def the_future_changes_nothing(case: Case, road: str) -> None:
    """With a causal mask, changing keys and values at or after t changes nothing before t."""
    t = case.seed % (case.keys + 1)
    generator = numbers(case, 10)

    def changed(tensor: Tensor) -> Tensor:
        fresh = torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor)
        if case.seed % 5 == 0:
            fresh = torch.full_like(tensor, torch.nan)
        return torch.cat([tensor[..., :t, :], fresh[..., t:, :]], -2)

    things = [regard.Weights(), regard.Entropy()]
    things = things if case.serves(road, things) else []
    found = looked(replace(case, key=changed(case.key), value=changed(case.value)), road, things)

    def before(results: Results) -> Results:
        return {name: tensor[..., :t] if name == "entropy" else tensor[..., :t, :] for name, tensor in results.items()}

    agree(case, before(found), lambda c: before(looked(c, road, things)), f"the past of {t}")


def a_step_is_a_row_of_the_whole(case: Case, road: str) -> None:
    """Decoding one query at a time over the keys so far, projected once, gives the rows of the causal whole."""

    bias = case.bias
    if bias is not None:  # the last query stands at the last key
        case = replace(case, bias=replace(bias, options=bias.options | {"align": "end"}))

    def steps(other: Case) -> Results:
        arguments = other.arguments()
        score = as_score(SCORES[other.score.name](other.score))
        del arguments["score"], arguments["mask"]
        queries, cached = score.query_side(other.query), score.key_side(other.key)
        rows = [
            regard.attend(
                queries[..., t : t + 1, :],
                cached[..., : t + 1, :],
                other.value[..., : t + 1, :],
                score=score.pair,
                mask=regard.causal(),
                backend=road,
                **arguments,
            )
            for t in range(case.queries)
        ]
        return {"context": torch.cat(rows, -2)}

    if case.queries:
        agree(case, looked(case, road), steps, "a decoding step")


def shared_heads_are_repeated_heads(case: Case, road: str) -> None:
    """Query heads that share key heads get what they would get from key heads of their own."""
    things = statistics() if case.serves(road, statistics()) else []

    def repeated(other: Case) -> Results:
        own = {}
        for name in ("key", "value"):
            tensor = getattr(other, name)
            own[name] = tensor.repeat_interleave(case.batch[-1] // tensor.shape[-3], -3)
        score = other.score
        for name, event in (("key_weight", 2), ("weight", 2)):
            tensor = score.tensors.get(name)
            if tensor is None or (name == "weight" and score.name != "location") or tensor.dim() <= event:
                continue
            wide = tensor.repeat_interleave(case.batch[-1] // tensor.shape[-3], -3)
            score = replace(score, tensors=score.tensors | {name: wide})
        return looked(replace(other, score=score, grouped=False, **own), road, things)

    agree(case, looked(case, road, things), repeated, "shared key heads")
