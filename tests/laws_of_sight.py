"""Laws of what is seen, and of masks and biases: each thing is what its definition makes of the weights."""

from __future__ import annotations

import torch

import regard
from regard.core import biases, masks
from regard.core.biases import as_bias
from regard.core.masks import Mask, as_mask
from tests import parts
from tests.cases import Case
from tests.held import Results, agree, everywhere, hold, visible
from tests.plain import bias_of, mask_of


def what_keys_receive_sums_to_the_rows(case: Case, road: str) -> None:
    """What all keys receive together is the number of queries that see anything; it may be weighted by query."""
    share = torch.rand(case.queries, generator=case.generator(), dtype=torch.float64)
    things = [regard.Received(), regard.Received(share), regard.Weights()]
    received, weighted, weights = case.look(road, things).values()
    alive = visible(case).any(-1).double()
    total, wanted = received.sum(-1).double(), alive.sum(-1)
    slack = 1e-10 if received.dtype == torch.float64 else 1e-4
    everywhere((total - wanted).abs() <= slack * (1 + wanted), "received adds up to the queries", total, wanted)
    by_hand = (weights.double() * share[:, None]).sum(-2)
    everywhere(
        (weighted - by_hand).abs() <= slack * (1 + by_hand), "received, by weights of queries", weighted, by_hand
    )


def rows_of_a_map_sum_to_one(case: Case, road: str) -> None:
    """A map's cell is what its queries spend on its keys, averaged over those that see anything: rows sum to one."""
    size = (1 + case.seed % 5, 1 + case.seed % 7)
    seen = case.look(road, [regard.Map(size), regard.Weights()])
    high, wide = min(size[0], case.queries), min(size[1], case.keys)
    hold(seen.map.shape == (*case.batch, high, wide), f"a map of {size} is {list(seen.map.shape)}")
    down = torch.tensor([[int(i * high // case.queries == r) for i in range(case.queries)] for r in range(high)])
    across = torch.tensor([[int(j * wide // case.keys == c) for c in range(wide)] for j in range(case.keys)])
    down, across = down.reshape(high, case.queries).double(), across.reshape(case.keys, wide).double()
    alive = visible(case).any(-1).double()[..., None]
    count = down @ alive
    wanted = (down @ (seen.weights.double() * alive) @ across) / count.clamp_min(1)
    slack = 1e-12 if seen.map.dtype == torch.float64 else 1e-5
    everywhere((seen.map - wanted).abs() <= slack, "a map is the mean of its cells", seen.map, wanted)
    total, some = seen.map.sum(-1), (count[..., 0] > 0).double()
    everywhere((total - some).abs() <= 10 * slack, "a map's rows sum to one, or to zero", total, some)


def a_tile_is_a_part_of_the_weights(case: Case, road: str) -> None:
    """A tile of the map, and the weights of chosen queries, are parts of all weights."""
    edges = [case.seed % (count + 1) for count in (case.queries, case.keys)]
    rows, keys = range(edges[0] // 2, case.queries - edges[0] // 3), range(edges[1] // 3, case.keys - edges[1] // 2)
    chosen = [] if not case.queries else [-1, case.seed % case.queries, 0, case.seed % case.queries]
    things = [regard.Weights(), regard.Tile(rows, keys), regard.Weights(queries=chosen)]
    weights, tile, picked = case.look(road, things).values()
    wanted = weights[..., rows.start : rows.stop, keys.start : keys.stop]
    hold(tile.shape == wanted.shape, f"the tile is {list(tile.shape)}, wanted {list(wanted.shape)}")
    everywhere(tile == wanted, "a tile is a slice of the weights", tile, wanted)
    wanted = weights[..., chosen, :]
    hold(picked.shape == wanted.shape, f"the chosen rows are {list(picked.shape)}, wanted {list(wanted.shape)}")
    everywhere(picked == wanted, "chosen rows are rows of the weights", picked, wanted)


def top_is_the_head_of_the_sorted_weights(case: Case, road: str) -> None:
    """The k largest weights in order, the lowest index first on ties, and -1 where fewer keys have any."""
    k = 1 + case.seed % 6
    seen = case.look(road, [regard.Weights(), regard.Top(k)])
    values, indices = seen.top
    hold(values.shape == indices.shape == (*case.shape[:-1], k), f"top {k} is {list(values.shape)}")
    flat = [tensor.flatten(0, -2).tolist() for tensor in (seen.weights, values, indices)]
    for row, value, index in zip(*flat, strict=True):
        order = sorted(range(len(row)), key=lambda j: (-row[j], j))[:k]
        wanted = [(row[j], j if row[j] else -1) for j in order] + [(0.0, -1)] * (k - len(order))
        hold(list(zip(value, index, strict=True)) == wanted, f"top {k} of {row}: came {value} at {index}")


def what_is_seen_follows_from_the_weights(case: Case, road: str) -> None:
    """Entropy and what is received are those of the weights that are seen beside them."""
    seen = case.look(road, [regard.Entropy(), regard.Received(), regard.Weights()])
    weights = seen.weights.double()
    entropy = -torch.xlogy(weights, weights).sum(-1)
    slack = 1e-11 if seen.entropy.dtype == torch.float64 else 2e-5
    everywhere((seen.entropy - entropy).abs() <= slack, "entropy is of the weights", seen.entropy, entropy)
    received = weights.sum(-2)
    allowed = slack * (1 + received)
    everywhere((seen.received - received).abs() <= allowed, "received is of the weights", seen.received, received)


def of_case(case: Case) -> Mask:
    assert case.mask is not None
    return as_mask(parts.MASKS[case.mask.name](case.mask))


def a_mask_is_what_it_says(case: Case, road: str) -> None:
    """A mask made whole is the rule of its positions, written out."""
    assert case.mask is not None
    dense = of_case(case).dense(*case.shape)
    wanted = mask_of(case.mask, case.shape).expand(case.shape)
    everywhere(dense == wanted, f"{of_case(case)!r} is its rule", dense, wanted)


def masks_obey_de_morgan(case: Case, road: str) -> None:
    """De Morgan's rules hold for masks, not-not changes nothing, and a mask and its opposite are nothing or all."""
    a, b = of_case(case), regard.causal() | regard.window(1, align="start")
    shape = case.shape
    everywhere((~(a & b)).dense(*shape) == (~a | ~b).dense(*shape), f"~(a & b) is ~a | ~b for {a!r}")
    everywhere((~(a | b)).dense(*shape) == (~a & ~b).dense(*shape), f"~(a | b) is ~a & ~b for {a!r}")
    everywhere((~~a).dense(*shape) == a.dense(*shape), f"~~a is a for {a!r}")
    everywhere((a & ~a).dense(*shape) == torch.zeros(shape, dtype=torch.bool), f"a & ~a is nothing for {a!r}")
    everywhere((a | ~a).dense(*shape) == torch.ones(shape, dtype=torch.bool), f"a | ~a is everything for {a!r}")


def a_span_holds_all_that_is_seen(case: Case, road: str) -> None:
    """Outside a mask's span, none of its rows sees anything."""
    mask, shape = of_case(case), torch.Size(case.shape)
    dense = mask.dense(*case.shape)
    for start in range(case.queries):
        rows = range(start, min(start + 1 + case.seed % 3, case.queries))
        span = mask.span(rows, shape)
        outside = dense[..., rows.start : rows.stop, :].clone()
        outside[..., span.start : span.stop] = False
        hold(not bool(outside.any()), f"{mask!r} sees beyond its span {span} in {rows} of {list(shape)}")


def a_tile_is_a_part_of_a_mask_and_of_a_bias(case: Case, road: str) -> None:
    """Any tile of a mask or a bias is that part of the whole; where it says all or none, it is."""
    shape, device = torch.Size(case.shape), torch.device("cpu")
    rows = range(case.seed % (case.queries + 1), case.queries)
    columns = range(case.seed % (case.keys + 1), case.keys)
    if case.seed % 2:
        rows, columns = range(rows.start), range(columns.start)
    size = (*case.batch, len(rows), len(columns))
    if case.mask is not None:
        mask, whole = of_case(case), mask_of(case.mask, case.shape).expand(case.shape)
        part = whole[..., rows.start : rows.stop, columns.start : columns.stop]
        tile = mask.tile(rows, columns, shape, device)
        tile = torch.full(size, tile) if isinstance(tile, bool) else tile.expand(size)
        everywhere(tile == part, f"the tile {rows}, {columns} of {mask!r}", tile, part)
    if case.bias is not None:
        bias, whole = as_bias(parts.BIASES[case.bias.name](case.bias)), bias_of(case.bias, case.shape)
        part = whole.expand(case.shape)[..., rows.start : rows.stop, columns.start : columns.stop]
        tile = bias.tile(rows, columns, shape, device).expand(size)
        near = (tile == part) | ((tile - part).abs() <= 1e-12 * part.abs())
        everywhere(near, f"the tile {rows}, {columns} of a bias", tile, part)


def a_mask_turned_twice_is_itself(case: Case, road: str) -> None:
    """A mask or bias with queries and keys exchanged has the transposed tiles."""
    if case.mask is not None:
        turned = masks.Turned(of_case(case))
        size = (*case.batch, case.keys, case.queries)
        everywhere(turned.dense(*size) == of_case(case).dense(*case.shape).mT, f"{turned!r} is the transpose")
    if case.bias is not None:
        bias = as_bias(parts.BIASES[case.bias.name](case.bias))
        size = torch.Size((*case.batch, case.keys, case.queries))
        device, all_rows, all_columns = torch.device("cpu"), range(case.queries), range(case.keys)
        tile = biases.Turned(bias).tile(all_columns, all_rows, size, device)
        whole = bias.tile(all_rows, all_columns, torch.Size(case.shape), device)
        hold(torch.equal(tile, whole.mT), "a bias with its sides exchanged is the transpose")


def seeing_changes_nothing(case: Case, road: str) -> None:
    """The context is the same whether anything is seen or not."""
    with_sight = case.attend(road, [regard.Entropy(), regard.Top(1), regard.Received()])[0]

    def blind(other: Case) -> Results:
        return {"context": other.attend(road)}

    agree(case, {"context": with_sight}, blind, "the context without looking")
