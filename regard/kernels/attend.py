"""attend and coattend: every attention in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar, overload

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import handle_torch_function, has_torch_function

from regard.core import biases, masks
from regard.core.biases import Bias
from regard.core.masks import Mask
from regard.core.normalisers import Softmax
from regard.core.problem import prepare
from regard.core.scores import Dot, Own, Pair, Score, as_score
from regard.core.see import Thing
from regard.core.seen import Seen, as_things
from regard.core.shapes import nearest
from regard.core.weigh import SCALED_DOT, SOFTMAX, attend_by_definition
from regard.kernels import fused, tiled
from regard.kernels.route import choose

AnyScore = Score | Callable[[Tensor, Tensor], Tensor]
AnyNormaliser = Callable[[Tensor, Tensor | None], Tensor]
Precision = Literal["exact", "half"]
Contexts = Tensor | tuple[Tensor, Seen]
Maybe = TypeVar("Maybe", Tensor, Tensor | None)


@overload
def attend(
    query: Tensor | None, key: Tensor, value: Tensor, *, score: AnyScore = ..., normalise: AnyNormaliser = ...,
    mask: Mask | Tensor | None = ..., bias: Bias | Tensor | None = ..., dropout: float = ..., grouped: bool = ...,
    generator: torch.Generator | None = ..., see: None = ..., precision: Precision = ..., backend: str = ...,
) -> Tensor: ...  # fmt: skip
@overload
def attend(
    query: Tensor | None, key: Tensor, value: Tensor, *, score: AnyScore = ..., normalise: AnyNormaliser = ...,
    mask: Mask | Tensor | None = ..., bias: Bias | Tensor | None = ..., dropout: float = ..., grouped: bool = ...,
    generator: torch.Generator | None = ..., see: Thing | list[Thing], precision: Precision = ..., backend: str = ...,
) -> tuple[Tensor, Seen]: ...  # fmt: skip
def attend(
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    *,
    score: AnyScore = SCALED_DOT,
    normalise: AnyNormaliser = SOFTMAX,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    dropout: float = 0.0,
    grouped: bool = False,
    generator: torch.Generator | None = None,
    see: Thing | list[Thing] | None = None,
    precision: Precision = "exact",
    backend: str = "auto",
) -> Tensor | tuple[Tensor, Seen]:
    """Attention: the values, summed by how well each query matches each key.

    query [*batch, queries, width], key [*batch, keys, width], value [*batch, keys, value width] -> context
    [*batch, queries, value width]; leading dimensions broadcast, as many as there are.

    score       how well a query matches a key: scaled_dot(), additive(…), bilinear(…), cosine(), …, or a function
                (query, key) -> scores; importance(…) takes query=None
    normalise   scores to weights: softmax(), sparsemax(), entmax(1.5), hard(), …, or a function (scores, mask)
    mask        True where a query may look: causal() & window(256) & lengths(…), or a boolean tensor
    bias        what is added to the scores: a tensor, alibi(8), relative(table), rule(…)
    dropout     the share of weights set to zero; the same ones on every road for one state of the generator
    grouped     query heads share key heads, in dimension -3
    generator   where random numbers come from: dropout, hard(sampled=True), gumbel()
    see         what to see of the weights: Entropy(), Top(8), Weights([0, 5]), …; then (context, Seen) is returned
    precision   "exact", or "half" to allow a road whose error stays within what half types cost (none needs it yet)
    backend     "auto", or "fused", "tiled", "definition", which serve or say why not; `route` tells which and why

    A row without anything to see is zero, with zero gradient. NaN behind a mask never crosses it.
    """
    inputs = (key, value) if query is None else (query, key, value)
    if has_torch_function(inputs):
        answer: Tensor | tuple[Tensor, Seen] = handle_torch_function(
            attend,  # type: ignore[arg-type]  # it has overloads
            inputs, query, key, value,
            score=score, normalise=normalise, mask=mask, bias=bias, dropout=dropout, grouped=grouped,
            generator=generator, see=see, precision=precision, backend=backend,
        )  # fmt: skip
        return answer
    if (
        backend == "auto" and mask is None and bias is None and see is None and not dropout and not grouped
        and precision == "exact" and type(score) is Dot and is_plain_softmax(normalise) and plain(query, key, value)
        and torch.autograd.forward_ad._current_level < 0
    ):  # fmt: skip
        return straight(query, key, value, score.scale)  # type: ignore[arg-type]  # plain() says that query is one
    if precision not in ("exact", "half"):
        raise ValueError(f"precision: came {precision!r}.{nearest(str(precision), ['exact', 'half'])}")
    device = key.device.type if isinstance(key, Tensor) else "cpu"
    autocast = device != "meta" and torch.is_autocast_enabled(device)  # meta tensors know no autocast
    if autocast:
        to = torch.get_autocast_dtype(device)
        query, key, value = rounded(query, to), rounded(key, to), rounded(value, to)
    problem = prepare(
        query, key, value, score=score, normalise=normalise, mask=mask, bias=bias, dropout=dropout,
        grouped=grouped, generator=generator, see=see,
    )  # fmt: skip
    road = ROADS[choose(problem, backend).road]
    if autocast:
        with torch.autocast(device, enabled=False):
            context, values = road(problem)
    else:
        context, values = road(problem)
    return context if see is None else (context, Seen(as_things(see), values))


ROADS = {
    "fused": lambda problem: (fused.attend_fused(problem), []),
    "tiled": tiled.attend_tiled,
    "definition": attend_by_definition,
}


def is_plain_softmax(normalise: AnyNormaliser) -> bool:
    """Softmax at temperature one."""
    if normalise is SOFTMAX:
        return True
    return type(normalise) is Softmax and type(normalise.temperature) is float and normalise.temperature == 1.0


def plain(query: Tensor | None, key: Tensor, value: Tensor) -> bool:
    """Whether PyTorch's kernel takes these tensors as they are and gives what we promise."""
    try:
        shape, of_key, of_value = query.shape, key.shape, value.shape  # type: ignore[union-attr]
        return (
            2 <= len(shape) <= 4 and shape[:-2] == of_key[:-2] == of_value[:-2] and shape[-1] == of_key[-1]
            and of_key[-2] == of_value[-2] and 0 not in shape and 0 not in of_key and 0 not in of_value
            and query.dtype == key.dtype == value.dtype  # type: ignore[union-attr]
            and query.device == key.device == value.device  # type: ignore[union-attr]
            and key.is_floating_point()
        )  # fmt: skip
    except AttributeError:
        return False


def straight(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
    """PyTorch's kernel, in the four dimensions that it is fast in."""
    if query.dim() == 4:
        return scaled_dot_product_attention(query, key, value, scale=scale)
    if query.dim() == 3:
        return scaled_dot_product_attention(query[:, None], key[:, None], value[:, None], scale=scale)[:, 0]
    return scaled_dot_product_attention(query[None, None], key[None, None], value[None, None], scale=scale)[0, 0]


def rounded(tensor: Maybe, dtype: torch.dtype) -> Maybe:
    """What autocast would make of it before a matrix product, on every road alike."""
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return tensor
    return tensor.to(dtype)


def coattend(
    a: Tensor,
    b: Tensor,
    value_a: Tensor | None = None,
    value_b: Tensor | None = None,
    *,
    score: AnyScore = SCALED_DOT,
    normalise: AnyNormaliser = SOFTMAX,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    see: Thing | list[Thing] | None = None,
    backend: str = "auto",
) -> tuple[Contexts, Contexts]:
    """Both contexts from one affinity score(a, b) [*batch a b]: each side looks at the other (Xiong et al., 2017).

    a [*batch, n, width], b [*batch, m, width] -> what each of a sees of b [*batch, n, …], what each of b sees of a;
    with `see`, each is (context, Seen). Values are a and b themselves where none are given. mask and bias are over
    (a, b), and are turned around for the second.
    """
    known = as_score(score)
    left, right = known.query_side(a), known.key_side(b)
    here_mask = None if mask is None else masks.as_mask(mask)
    here_bias = None if bias is None else biases.as_bias(bias)
    back_mask = None if here_mask is None else masks.Turned(here_mask)
    back_bias = None if here_bias is None else biases.Turned(here_bias)

    def one(query: Tensor, key: Tensor, value: Tensor, *, pair: Pair, mask: Mask | None, bias: Bias | None) -> Contexts:
        return attend(
            query, key, value, score=pair, normalise=normalise, mask=mask, bias=bias, dropout=dropout,
            generator=generator, see=see, backend=backend,
        )  # fmt: skip

    from_b = one(left, right, b if value_b is None else value_b, pair=known.pair, mask=here_mask, bias=here_bias)
    from_a = one(
        right, left, a if value_a is None else value_a, pair=exchanged(known.pair), mask=back_mask, bias=back_bias
    )
    return from_b, from_a


def exchanged(pair: Pair) -> Pair:
    """The pair form with its sides exchanged: ours are symmetric, a function of the user's is turned around."""
    if isinstance(pair, Own):
        function = pair.function
        return Own(lambda query, key: function(key, query).mT)
    return pair
