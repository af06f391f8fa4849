"""The named laws: what is held true of every score, normaliser, mask, bias, type and road.

A law is a plain function (case, road) that raises AssertionError with a sentence. This table says for which cases it
holds and on which roads; `docs/laws.md` lists the names with the first line of each function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

import regard
from tests import (
    laws_of_sight as sight,
    laws_of_symmetry as symmetry,
    laws_of_tensors as tensors,
    laws_of_weights as weights,
)
from tests.cases import ANY, DRAWN, HARD, ROADS, SMOOTH, SOFTMAX, Case, Kinds, without
from tests.tolerances import overflown_rows


@dataclass(frozen=True)
class Law:
    """A law, the cases that it is about, and what a road must show for it."""

    holds: Callable[[Case, str], None]
    kinds: Kinds = ANY
    sees: bool = False  # it looks at something, so a road that shows nothing is left out
    roads: tuple[str, ...] = ROADS
    cost: int = 1  # about how many times as long as others
    soak: bool = True  # part of the long runs, too

    @property
    def name(self) -> str:
        return self.holds.__name__

    @property
    def sentence(self) -> str:
        return (self.holds.__doc__ or "").strip().partition("\n")[0]


N = ANY.normalisers
FIXED = without(N, *DRAWN)  # without chance
CALM = without(FIXED, *HARD)  # without jumps either
SUMS = without(N, "given")
SCORED = without(SUMS, "own", "edited")
GENTLE = (1.0, 1.001, 1.25, 1.5, 2.0, 2.5)  # orders whose gradients stay bounded enough to compare
SOME = without(ANY.masks, "none")
UNMASKED = ("none",)
MADE = without(ANY.biases, "tensor with holes", "sum")
EXACT = (torch.float64,)
ABOVE_HALF = (torch.float64, torch.float32)
BATCHED = ((2,), (3,), (2, 3), (3, 2))
AS_THEY_COME = without(ANY.scores, "importance")
CASTABLE = ("dot", "scaled dot", "dot times a number", "cosine", "squared distance", "soft dictionary", "own")
HERE = ("definition",)
GENERAL = ("definition", "tiled", "auto")
TRANSFORMED = ("definition", "auto")  # torch.func takes the definition's own operations

exact = replace(ANY, dtypes=EXACT)
above_half = replace(ANY, dtypes=ABOVE_HALF, wild=0.0)
learnable = replace(exact, normalisers=CALM, orders=GENTLE, wild=0.0)

TABLE = (
    Law(weights.rows_sum_to_one_or_to_zero, replace(ANY, normalisers=SUMS), sees=True),
    Law(weights.no_weight_is_negative, sees=True),
    Law(weights.a_masked_weight_is_exactly_zero, sees=True),
    Law(
        weights.minus_infinity_is_a_mask,
        replace(above_half, normalisers=SUMS, biases=("tensor with holes",)),
        sees=True,
    ),
    Law(weights.shifting_the_scores_changes_nothing, replace(exact, normalisers=CALM, wild=0.0), sees=True),
    Law(weights.attention_is_weights_then_a_sum, above_half),
    Law(weights.the_context_is_linear_in_the_values, replace(exact, wild=0.0, dropout=0.2)),
    Law(weights.a_score_is_two_sides_and_a_pair, replace(above_half, grouped=(False,)), roads=HERE),
    Law(weights.a_score_is_what_its_formula_says, replace(above_half, normalisers=("softmax",)), sees=True),
    Law(weights.entropy_is_at_most_the_logarithm_of_the_count, replace(ANY, normalisers=SUMS), sees=True),
    Law(
        weights.entropy_is_the_log_sum_exp_less_the_mean_score,
        replace(exact, normalisers=("softmax", "softmax at a temperature"), wild=0.0),
        sees=True,
    ),
    Law(
        weights.temperature_is_a_scale,
        replace(above_half, scores=("dot times a number",), normalisers=("softmax",), biases=UNMASKED),
    ),
    Law(weights.a_cold_softmax_is_hard, replace(exact, normalisers=("hard",), wild=0.0), sees=True),
    Law(weights.entmax_of_order_one_is_softmax, replace(exact, normalisers=("softmax",), wild=0.0), sees=True),
    Law(
        weights.entmax_of_order_two_is_the_nearest_point_of_the_simplex,
        replace(exact, normalisers=("sparsemax",), wild=0.0),
        sees=True,
    ),
    Law(
        weights.entmax_meets_its_conditions,
        replace(ANY, normalisers=("sparsemax", "entmax", "entmax of a learned order")),
        roads=HERE,
    ),
    Law(weights.nothing_to_see_gives_nothing, replace(ANY, masks=SOME, biases=MADE)),
    Law(weights.nothing_to_see_learns_nothing, replace(ANY, masks=SOME, biases=MADE, wild=0.0)),
    Law(
        weights.dropout_keeps_its_share,
        replace(exact, normalisers=SMOOTH, dropout=1.0, wild=0.0),
        roads=GENERAL,
    ),
    Law(weights.statistics_are_of_the_weights_before_dropout, replace(ANY, dropout=1.0), sees=True),
    Law(weights.chance_replays_from_its_generator, replace(ANY, normalisers=(*DRAWN, "softmax"), dropout=0.5)),
    Law(
        weights.co_attention_is_two_attends,
        replace(
            exact,
            scores=without(ANY.scores, "importance", "importance of several"),
            normalisers=without(CALM, "given"),
            grouped=(False,),
        ),
        roads=GENERAL,
    ),
    Law(symmetry.every_road_is_the_definition, replace(ANY, wild=0.5, dropout=0.2), cost=2),
    Law(symmetry.every_road_learns_alike, replace(learnable, dropout=0.2), roads=("tiled", "fused", "auto"), cost=3),
    Law(symmetry.the_order_of_keys_does_not_matter, replace(exact, normalisers=CALM)),
    Law(symmetry.the_order_of_queries_does_not_matter, replace(exact, scores=AS_THEY_COME, normalisers=FIXED)),
    Law(symmetry.batch_elements_do_not_see_each_other, replace(exact, batches=BATCHED)),
    Law(
        symmetry.blocks_of_queries_make_the_whole,
        replace(exact, scores=AS_THEY_COME, normalisers=FIXED),
        sees=True,
    ),
    Law(symmetry.chunks_of_keys_make_the_whole, replace(exact, normalisers=SOFTMAX), sees=True),
    Law(symmetry.nothing_leaks_from_behind_a_mask, above_half),
    Law(symmetry.nothing_leaks_backwards, learnable, cost=2),
    Law(symmetry.what_is_broken_breaks_the_rows_that_see_it, replace(exact, masks=SOME, biases=MADE)),
    Law(
        symmetry.the_future_changes_nothing,
        replace(
            exact, scores=without(ANY.scores, "importance", "importance of several"), masks=("causal",), square=True
        ),
    ),
    Law(
        symmetry.a_step_is_a_row_of_the_whole,
        replace(
            exact,
            scores=without(ANY.scores, "importance", "importance of several", "additive with terms"),
            normalisers=without(CALM, "given"),
            masks=("causal",),
            biases=("none", "relative", "alibi", "t5 buckets"),
            long=0.0,
            square=True,
        ),
        cost=8,
    ),
    Law(
        symmetry.shared_heads_are_repeated_heads,
        replace(exact, scores=AS_THEY_COME, grouped=(True,), dropout=0.2),
    ),
    Law(sight.what_keys_receive_sums_to_the_rows, replace(ANY, normalisers=SUMS), sees=True),
    Law(sight.rows_of_a_map_sum_to_one, replace(ANY, normalisers=SUMS), sees=True),
    Law(sight.a_tile_is_a_part_of_the_weights, sees=True),
    Law(sight.top_is_the_head_of_the_sorted_weights, sees=True),
    Law(sight.what_is_seen_follows_from_the_weights, sees=True),
    Law(sight.seeing_changes_nothing, replace(above_half, dropout=0.2), sees=True),
    Law(sight.a_mask_is_what_it_says, replace(ANY, masks=SOME), roads=HERE),
    Law(sight.masks_obey_de_morgan, replace(ANY, masks=SOME), roads=HERE),
    Law(sight.a_span_holds_all_that_is_seen, replace(ANY, masks=SOME), roads=HERE),
    Law(sight.a_tile_is_a_part_of_a_mask_and_of_a_bias, exact, roads=HERE),
    Law(sight.a_mask_turned_twice_is_itself, exact, roads=HERE),
    Law(tensors.layout_does_not_matter, replace(exact, dropout=0.2)),
    Law(tensors.results_have_the_shape_and_type_of_the_call, replace(ANY, dropout=0.2)),
    Law(
        tensors.meta_tensors_give_the_shapes,
        replace(ANY, dropout=0.2, long=0.0),
        roads=("definition", "fused", "auto"),
        cost=20,
    ),
    Law(
        tensors.autocast_is_casting_by_hand,
        replace(ANY, dtypes=(torch.float32,), scores=CASTABLE, normalisers=without(N, "given")),
        roads=GENERAL,
    ),
    Law(tensors.vmap_is_a_batch, replace(exact, normalisers=CALM), roads=TRANSFORMED),
    Law(tensors.the_gradient_transform_is_backward, learnable, roads=TRANSFORMED),
    Law(
        tensors.compiled_is_as_written,
        replace(exact, normalisers=FIXED, long=0.0),
        roads=("definition", "fused", "auto"),
        cost=100,
        soak=False,
    ),
)

LAWS = {law.name: law for law in TABLE}


FUSABLE = {
    "scores": without(ANY.scores, "additive", "additive of sides", "additive with terms", "concatenated", "own"),
    "normalisers": ("softmax", "softmax at a temperature"),
    "biases": ("none", "tensor", "tensor with holes"),
}


def kinds_on(law: Law, road: str) -> Kinds | None:
    """The cases of a law that are worth drawing for a road; None where there are none that it takes."""
    if road not in law.roads or (road == "fused" and law.sees):
        return None
    if road != "fused":
        return law.kinds
    few = {name: tuple(n for n in getattr(law.kinds, name) if n in names) for name, names in FUSABLE.items()}
    return replace(law.kinds, **few, dropout=0.0) if all(few.values()) else None


def check(law: Law, road: str, case: Case) -> bool:
    """Hold a law to a case on a road, if the road takes it; what is raised says which law and which case.

    Laws are of numbers: where plain PyTorch's scores are too large for their type, what is broken is not counted.
    """
    if not case.serves(road, regard.Entropy() if law.sees else None):
        return False
    try:
        law.holds(case, road)
    except Exception as error:
        if isinstance(error, AssertionError) and bool(overflown_rows(case).any()):
            return False
        error.add_note(f"the law {law.name}, on the road {road}, for {case!r}")
        raise
    return True


if __name__ == "__main__":
    for law in TABLE:
        print(f"| `{law.name}` | {law.sentence} |")
