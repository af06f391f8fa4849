"""Errors of a call by their full text: queries, keys and values, heads, what is to be seen, merging, backends."""

import re

import pytest
import torch

import regard
from regard.core.positions import rotated, sinusoids
from regard.kernels.route import RefusedError
from tests.errors import KEY, QUERY, VALUE, attend, hold, says

ERRORS = {
    "a list": says(
        TypeError,
        "query: came list, wanted a torch.Tensor. Remedy: torch.as_tensor(query).",
        lambda: attend(query=[1.0]),
    ),
    "a key that is a list": says(
        TypeError,
        "key: came list, wanted a torch.Tensor. Remedy: torch.as_tensor(key).",
        lambda: attend(key=[1.0]),
    ),
    "integers": says(
        TypeError,
        "value: came int64[2, 7, 11], wanted a floating-point tensor. Remedy: value.float(), or embed it.",
        lambda: attend(value=VALUE.long()),
    ),
    "one dimension": says(
        ValueError,
        "query: came float32[3], wanted [..., length, width]. Remedy: add the missing dimension.",
        lambda: attend(query=QUERY[0, 0]),
    ),
    "batches": says(
        ValueError,
        "query, key and value: these leading dimensions do not broadcast: query [3], key [2], value [2]. Wanted: equal "
        "sizes, or 1, from the right. Remedy: unsqueeze a dimension where one is missing; heads that share keys need "
        "grouped=True.",
        lambda: attend(query=torch.randn(3, 5, 3), mask=torch.ones(5, 7, dtype=torch.bool)),
    ),
    "heads of a score that are not those of the query": says(
        ValueError,
        "query, key and value: these leading dimensions do not broadcast: query [2], key [2], value [2], score [3]. "
        "Wanted: equal sizes, or 1, from the right. Remedy: unsqueeze a dimension where one is missing; heads that "
        "share keys need grouped=True.",
        lambda: attend(score=regard.additive(torch.randn(3, 3))),
    ),
    "fewer values": says(
        ValueError,
        "value: came float32[2, 5, 11] for key float32[2, 7, 3]; wanted as many values as keys (7 in dimension -2). "
        "Remedy: pass the value of each key, in the keys' order.",
        lambda: attend(value=VALUE[:, :5]),
    ),
    "types": says(
        TypeError,
        "query: its type is float32[2, 5, 3] but key is float64[2, 7, 3]; wanted one type. "
        "Remedy: query.to(key.dtype), or torch.autocast around the model.",
        lambda: attend(key=KEY.double(), value=VALUE.double()),
    ),
    "types without a query": says(
        TypeError,
        "value: its type is float64[2, 7, 11] but key is float32[2, 7, 3]; wanted one type. "
        "Remedy: value.to(key.dtype), or torch.autocast around the model.",
        lambda: attend(query=None, value=VALUE.double(), score=regard.importance(torch.randn(3))),
    ),
    "devices": says(
        ValueError,
        "query: it is on cpu but key is on meta; wanted one device. Remedy: query.to(key.device).",
        lambda: attend(key=KEY.to("meta"), value=VALUE.to("meta")),
    ),
    "a score's device": says(
        ValueError,
        "score (weight): it holds float32[3, 3] on meta but key is on cpu; wanted one device. "
        "Remedy: move it to key.device.",
        lambda: attend(score=regard.bilinear(torch.randn(3, 3, device="meta"))),
    ),
    "a bias's device": says(
        ValueError,
        "bias: it holds float32[2] on meta but key is on cpu; wanted one device. Remedy: move it to key.device.",
        lambda: attend(bias=regard.alibi(2) + regard.alibi(torch.ones(2, device="meta"))),
    ),
    "a normaliser's device": says(
        ValueError,
        "normalise: it holds float32[2] on meta but key is on cpu; wanted one device. Remedy: move it to key.device.",
        lambda: attend(normalise=regard.entmax(torch.ones(2, device="meta"))),
    ),
    "widths": says(
        ValueError,
        "query: came float32[2, 5, 4], its width is 4; wanted width 3, as the key's is: key float32[2, 7, 3]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(query=torch.randn(2, 5, 4)),
    ),
    "no query": says(
        ValueError,
        "query: came None, wanted a tensor [..., queries, width]: only regard.importance asks without a query. "
        "Remedy: pass the query, or score=regard.importance(vector).",
        lambda: attend(query=None),
    ),
    "Entropy for Entropy()": says(
        TypeError,
        "see: came Entropy, wanted Weights(), Entropy(), Received(), Top(k), Map(), Tile(rows, keys), LogSumExp() or "
        "LogProbability(), one or a list. Remedy: see=[regard.Entropy(), regard.Top(8)].",
        lambda: attend(see=regard.Entropy),
    ),
    "a name to see": says(
        TypeError,
        "see: came 'entropy', wanted Weights(), Entropy(), Received(), Top(k), Map(), Tile(rows, keys), LogSumExp() or "
        "LogProbability(), one or a list. Remedy: see=[regard.Entropy(), regard.Top(8)].",
        lambda: attend(see=[regard.Top(2), "entropy"]),
    ),
    "a number to see": says(
        TypeError,
        "see: came 3, wanted Weights(), Entropy(), Received(), Top(k), Map(), Tile(rows, keys), LogSumExp() or "
        "LogProbability(), one or a list. Remedy: see=[regard.Entropy(), regard.Top(8)].",
        lambda: attend(see=3),
    ),
    "a query that is not there": says(
        IndexError,
        "Weights: query 5 of 5 was asked for; wanted -5 to 4. "
        "Remedy: Weights(queries=[…]) within the queries, or Weights() for all.",
        lambda: attend(see=regard.Weights([0, 5])),
    ),
    "top none": says(
        ValueError,
        "Top: came k=0, wanted one or more. Remedy: Top(8).",
        lambda: attend(see=regard.Top(0)),
    ),
    "a map's size": says(
        ValueError,
        "Map: came size=(3, 0), wanted one or two positive numbers. Remedy: Map(256).",
        lambda: attend(see=regard.Map((3, 0))),
    ),
    "a tile that is not there": says(
        IndexError,
        "Tile: keys=range(0, 8) of 7 was asked for; wanted a range of step one from 0 to 7. "
        "Remedy: Tile(range(0, 64), range(0, 64)).",
        lambda: attend(see=regard.Tile(range(5), range(8))),
    ),
    "a tile of every second row": says(
        IndexError,
        "Tile: rows=range(0, 5, 2) of 5 was asked for; wanted a range of step one from 0 to 5. "
        "Remedy: Tile(range(0, 64), range(0, 64)).",
        lambda: attend(see=regard.Tile(range(0, 5, 2), range(7))),
    ),
    "a tile from before the first key": says(
        IndexError,
        "Tile: keys=range(-1, 3) of 7 was asked for; wanted a range of step one from 0 to 7. "
        "Remedy: Tile(range(0, 64), range(0, 64)).",
        lambda: attend(see=regard.Tile(range(5), range(-1, 3))),
    ),
    "weights of queries": says(
        ValueError,
        "Received: weights came float32[7] for 5 queries; wanted [..., 5]. Remedy: one number for every query.",
        lambda: attend(see=regard.Received(torch.ones(7))),
    ),
    "a log-probability of softmax": says(
        TypeError,
        "LogProbability: the normaliser is Softmax, which takes no single key; wanted hard attention. "
        "Remedy: normalise=regard.hard(sampled=True).",
        lambda: attend(see=regard.LogProbability(), backend="definition"),
    ),
    "something that was not seen": says(
        AttributeError,
        "weights: not asked for; see=entropy, top. Remedy: add it to see=[…].",
        lambda: attend(see=[regard.Entropy(), regard.Top(2)])[1].weights,
    ),
    "a thing that was not seen": says(
        KeyError,
        "Top(k=3): not asked for. Asked: entropy, top.",
        lambda: attend(see=[regard.Entropy(), regard.Top(2)])[1][regard.Top(3)],
    ),
    "a share to drop": says(
        ValueError,
        "dropout: came 1.5, wanted a share between 0 and 1. Remedy: 0.1.",
        lambda: attend(dropout=1.5),
    ),
    "words to drop": says(
        ValueError,
        "dropout: came '10%', wanted a share between 0 and 1. Remedy: 0.1.",
        lambda: attend(dropout="10%"),
    ),
    "a seed for a generator": says(
        TypeError,
        "generator: came int, wanted a torch.Generator. Remedy: torch.Generator().manual_seed(7).",
        lambda: attend(generator=3, dropout=0.5),
    ),
    "heads that do not divide": says(
        ValueError,
        "query: 5 heads in dimension -3 for 2 key heads, with grouped=True; wanted a multiple of the key heads. "
        "Remedy: grouped=False, or as many key heads as divide 5.",
        lambda: attend(query=torch.randn(5, 3, 3), grouped=True),
    ),
    "heads that are missing": says(
        ValueError,
        "query: came float32[5, 3], key float32[2, 7, 3], value float32[2, 7, 11], with grouped=True; wanted heads in "
        "dimension -3 of all. Remedy: [..., heads, length, width], or grouped=False.",
        lambda: attend(query=QUERY[0], grouped=True),
    ),
    "heads that are missing from keys": says(
        ValueError,
        "query: came float32[2, 5, 3], key float32[7, 3], value float32[2, 7, 11], with grouped=True; wanted heads in "
        "dimension -3 of all. Remedy: [..., heads, length, width], or grouped=False.",
        lambda: attend(key=KEY[0], grouped=True),
    ),
    "heads that are missing from values": says(
        ValueError,
        "query: came float32[2, 5, 3], key float32[2, 7, 3], value float32[7, 11], with grouped=True; wanted heads in "
        "dimension -3 of all. Remedy: [..., heads, length, width], or grouped=False.",
        lambda: attend(value=VALUE[0], grouped=True),
    ),
    "heads of values": says(
        ValueError,
        "value: came float32[6, 7, 11] for key float32[2, 7, 3], with grouped=True; wanted 2 heads in dimension -3. "
        "Remedy: as many heads of values as of keys.",
        lambda: attend(query=torch.randn(6, 5, 3), value=torch.randn(6, 7, 11), grouped=True),
    ),
    "batches of grouped heads": says(
        ValueError,
        "query, key and value: these leading dimensions do not broadcast: query [5], key [3], value [], score [3]. "
        "Wanted: equal sizes, or 1, from the right. Remedy: unsqueeze a dimension where one is missing; heads that "
        "share keys need grouped=True.",
        lambda: attend(
            query=torch.randn(5, 4, 5, 3),
            key=KEY.expand(3, 2, 7, 3),
            score=regard.additive(torch.randn(3, 4, 3)),
            grouped=True,
        ),
    ),
    "heads of a score": says(
        ValueError,
        "score: it holds parameters of [[2]] for 6 query heads, with grouped=True; wanted a last batch dimension of 6, "
        "or 1. Remedy: parameters of each query head.",
        lambda: attend(query=torch.randn(6, 5, 3), score=regard.additive(torch.randn(2, 3)), grouped=True),
    ),
    "weights to gather": says(
        ValueError,
        "value: came float32[2, 7, 11] for weights float32[2, 5, 6]; wanted 6 values, one a key. "
        "Remedy: the values in the keys' order.",
        lambda: regard.gather(torch.randn(2, 5, 6), VALUE),
    ),
    "weights that are a list": says(
        TypeError,
        "weights: came list, wanted a torch.Tensor. Remedy: torch.as_tensor(weights).",
        lambda: regard.gather([[1.0]], VALUE),
    ),
    "values that are whole numbers": says(
        TypeError,
        "value: came int64[2, 7, 11], wanted a floating-point tensor. Remedy: value.float(), or embed it.",
        lambda: regard.gather(torch.randn(2, 5, 7), VALUE.long()),
    ),
    "one value to gather": says(
        ValueError,
        "value: came float32[11], wanted [..., length, width]. Remedy: add the missing dimension.",
        lambda: regard.gather(torch.randn(2, 5, 7), VALUE[0, 0]),
    ),
    "no parts": says(
        ValueError,
        "parts: came none, wanted at least one (context, Seen). Remedy: merge what attend returned.",
        lambda: regard.merge_queries([]),
    ),
    "parts that saw other things": says(
        ValueError,
        "parts: they saw different things, Seen(entropy) and Seen(top). Remedy: the same see= in each.",
        lambda: regard.merge_queries([attend(see=regard.Entropy()), attend(see=regard.Top(2))]),
    ),
    "parts of a map": says(
        TypeError,
        "map: its parts do not merge over queries: its rows count among all queries. "
        "Remedy: ask for it over the whole.",
        lambda: regard.merge_queries([attend(see=regard.Map(2))]),
    ),
    "parts of chosen rows": says(
        TypeError,
        "weights: its parts do not merge over queries: its rows count among all queries. "
        "Remedy: ask for it over the whole.",
        lambda: regard.merge_queries([attend(see=regard.Weights([0]))]),
    ),
    "parts of a tile": says(
        TypeError,
        "tile: its parts do not merge over queries: its rows count among all queries. "
        "Remedy: ask for it over the whole.",
        lambda: regard.merge_queries([attend(see=regard.Tile(range(2), range(2)))]),
    ),
    "parts without a log-sum-exp": says(
        ValueError,
        "parts: they have not seen LogSumExp(), which says how they weigh. Remedy: see=[LogSumExp(), …].",
        lambda: regard.merge_keys([attend(see=regard.Entropy())], [7]),
    ),
    "counts of keys": says(
        ValueError,
        "keys: came 2 counts for 1 parts. Remedy: one for each part, in order.",
        lambda: regard.merge_keys([attend(see=regard.LogSumExp())], [3, 4]),
    ),
    "parts of what keys receive": says(
        TypeError,
        "received: its parts do not merge over keys: it needs the final log-sum-exp, hence a second sweep. "
        "Remedy: ask for it over the whole.",
        lambda: regard.merge_keys([attend(see=[regard.LogSumExp(), regard.Received()])], [7]),
    ),
    "an odd width": says(
        ValueError,
        "width: came 5, wanted an even number: a sine and a cosine each. Remedy: 6.",
        lambda: sinusoids(torch.arange(3), 5),
    ),
    "positions": says(
        ValueError,
        "tensor: came float32[2, 7, 4] with 5 positions; wanted an even width and one position a token. "
        "Remedy: positions=torch.arange(7), counted from the cache's length.",
        lambda: rotated(torch.randn(2, 7, 4), torch.arange(5)),
    ),
    "whole numbers to rotate": says(
        TypeError,
        "tensor: came int64[7, 4], wanted a floating-point tensor. Remedy: tensor.float(), or embed it.",
        lambda: rotated(torch.ones(7, 4, dtype=torch.int64), torch.arange(7)),
    ),
    "a backend": says(
        ValueError,
        "backend: came 'tild'. Did you mean 'tiled'? Known: auto, definition, fused, tiled.",
        lambda: attend(backend="tild"),
    ),
    "a precision": says(
        ValueError,
        "precision: came 'exactly'. Did you mean 'exact'? Known: exact, half.",
        lambda: attend(precision="exactly"),
    ),
    "a backend that cannot serve": says(
        RefusedError,
        "backend: 'fused' cannot serve this call: the normaliser is EntmaxNormaliser, not softmax with a fixed "
        "temperature. Remedy: backend='auto', which takes 'definition' here.",
        lambda: attend(normalise=regard.sparsemax(), backend="fused"),
    ),
    "a backend that shows nothing": says(
        RefusedError,
        "backend: 'fused' cannot serve this call: it gives no weights, and something is to be seen. "
        "Remedy: backend='auto', which takes 'definition' here.",
        lambda: attend(see=regard.Entropy(), backend="fused"),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    hold(ERRORS[name])


def test_route_refuses_with_the_same_words() -> None:
    with pytest.raises(TypeError, match=re.escape("A float mask is a bias. Remedy: bias=mask, or mask=mask == 0.")):
        regard.route(QUERY, KEY, VALUE, mask=torch.zeros(5, 7))
