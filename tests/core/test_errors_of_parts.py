"""Errors of normalisers, masks and biases by their full text; those of scores are in test_errors_of_scores."""

import pytest
import torch

import regard
from regard.core.additive import position_terms, window_terms
from regard.core.positions import rotated
from tests.errors import attend, hold, says

TRUE = torch.ones(5, 7, dtype=torch.bool)

ERRORS = {
    "dot for dot()": says(
        TypeError,
        "score: came the function scaled_dot itself; wanted what it makes. "
        "Remedy: call it: score=regard.scaled_dot(…).",
        lambda: attend(score=regard.scaled_dot),
    ),
    "softmax for softmax()": says(
        TypeError,
        "normalise: came the function softmax itself; wanted what it makes. "
        "Remedy: call it: normalise=regard.softmax(…).",
        lambda: attend(normalise=regard.softmax),
    ),
    "causal for causal()": says(
        TypeError,
        "mask: came the function causal itself; wanted what it makes. Remedy: call it: mask=regard.causal(…).",
        lambda: attend(mask=regard.causal),
    ),
    "alibi for alibi()": says(
        TypeError,
        "bias: came the function alibi itself; wanted what it makes. Remedy: call it: bias=regard.alibi(…).",
        lambda: attend(bias=regard.alibi),
    ),
    "a normaliser that is none": says(
        TypeError,
        "normalise: came str, wanted a normaliser such as regard.softmax() or a function (scores, mask) -> weights. "
        "Remedy: call it: normalise=regard.softmax().",
        lambda: attend(normalise="softmax"),
    ),
    "a normaliser of its own": says(
        ValueError,
        "normalise: your function gave float32[2, 5] for scores [2, 5, 7]; wanted weights of the same shape. "
        "Remedy: normalise over the last dimension.",
        lambda: attend(normalise=lambda scores, mask: scores.sum(-1)),
    ),
    "a normaliser's heads": says(
        ValueError,
        "normalise: it holds float32[3] for scores [2, 5, 7]; wanted leading dimensions that broadcast to the batch "
        "[2]. Remedy: one number a head is [heads], where heads come last.",
        lambda: attend(normalise=regard.softmax(torch.ones(3))),
    ),
    "a temperature": says(
        ValueError,
        "temperature: came 0, wanted a positive number. Remedy: hard() is its limit at zero.",
        lambda: regard.softmax(0),
    ),
    "gumbel's temperature": says(
        ValueError,
        "temperature: came -1, wanted a positive number. Remedy: 0.5 to 1.",
        lambda: regard.gumbel(-1),
    ),
    "gumbel's temperature of nothing": says(
        ValueError,
        "temperature: came 0, wanted a positive number. Remedy: 0.5 to 1.",
        lambda: regard.gumbel(0),
    ),
    "an order below one": says(
        ValueError,
        "alpha: came 0.5, wanted 1 (softmax) to 100 (nearly hard). Remedy: 1.5 or 2; hard() is the limit.",
        lambda: regard.entmax(0.5),
    ),
    "an integer order": says(
        TypeError,
        "alpha: came an integer tensor [2], wanted a floating one. Remedy: .float()",
        lambda: regard.entmax(torch.tensor([1, 2])),
    ),
    "an estimate": says(
        ValueError,
        "estimate: came 'reinforce', wanted 'score function' or 'straight-through'. Remedy: one of the two.",
        lambda: regard.hard(estimate="reinforce"),
    ),
    "given weights": says(
        ValueError,
        "weights: came float32[2, 5, 6] for scores [2, 5, 7]; wanted weights that broadcast to them. "
        "Remedy: [*batch, 5, 7].",
        lambda: attend(normalise=regard.given(torch.ones(2, 5, 6))),
    ),
    "an edit": says(
        TypeError,
        "edited: came Softmax and float, wanted a normaliser and a function of weights. "
        "Remedy: edited(softmax(), lambda weights: weights.flip(-1)).",
        lambda: regard.edited(regard.softmax(), 0.5),
    ),
    "an edit's shape": says(
        ValueError,
        "function: it gave float32[2, 5] for weights [2, 5, 7]; wanted the same shape. "
        "Remedy: change the weights, not their number.",
        lambda: attend(normalise=regard.edited(regard.softmax(), lambda weights: weights.sum(-1))),
    ),
    "a float mask": says(
        TypeError,
        "mask: came float32[5, 7]; wanted booleans, True where a query may look. A float mask is a bias. "
        "Remedy: bias=mask, or mask=mask == 0.",
        lambda: attend(mask=torch.zeros(5, 7)),
    ),
    "an integer mask": says(
        TypeError,
        "mask: came int64[5, 7], wanted booleans, True where a query may look. "
        "Remedy: mask.bool() for ones and zeros; bias=mask for numbers to add.",
        lambda: attend(mask=torch.ones(5, 7, dtype=torch.long)),
    ),
    "a mask that is none": says(
        TypeError,
        "mask: came str, wanted a mask such as regard.causal() or a boolean tensor. "
        "Remedy: regard.allow(function) for a rule of your own.",
        lambda: attend(mask="causal"),
    ),
    "a rule that is none": says(
        TypeError,
        "mask: came int, wanted a boolean tensor or a function. Remedy: allow(tensor).",
        lambda: regard.allow(3),
    ),
    "a rule's numbers": says(
        ValueError,
        "mask: the rule gave int64[5, 7]; wanted booleans that broadcast to [2, 5, 7], from query indices [5, 1] and "
        "key indices [1, 7]. Remedy: compare the two indices.",
        lambda: attend(mask=regard.allow(lambda i, j: i - j), backend="definition"),
    ),
    "a rule's row": says(
        ValueError,
        "mask: the rule gave bool[7]; wanted booleans that broadcast to [2, 5, 7], from query indices [5, 1] and "
        "key indices [1, 7]. Remedy: compare the two indices.",
        lambda: attend(mask=regard.allow(lambda i, j: j[0] > 2), backend="definition"),
    ),
    "a rule of another size": says(
        ValueError,
        "mask: the rule gave bool[3, 7]; wanted booleans that broadcast to [2, 5, 7], from query indices [5, 1] and "
        "key indices [1, 7]. Remedy: compare the two indices.",
        lambda: attend(mask=regard.allow(lambda i, j: (i > j)[:3]), backend="definition"),
    ),
    "a padding mask": says(
        ValueError,
        "mask: came bool[2, 7] for scores [2, 5, 7]; wanted a mask that broadcasts to them, from the right. Remedy: "
        "for one mask a sequence, lengths(…) or mask[:, None, :] (and one more None for heads); PyTorch's "
        "key_padding_mask is True for padding, the opposite: ~padding[:, None, :].",
        lambda: attend(mask=torch.ones(2, 7, dtype=torch.bool)),
    ),
    "a mask with more dimensions": says(
        ValueError,
        "mask: came bool[1, 1, 5, 7] for scores [2, 5, 7]; wanted a mask that broadcasts to them, from the right. "
        "Remedy: for one mask a sequence, lengths(…) or mask[:, None, :] (and one more None for heads); PyTorch's "
        "key_padding_mask is True for padding, the opposite: ~padding[:, None, :].",
        lambda: attend(mask=TRUE[None, None]),
    ),
    "a padding mask as lengths": says(
        TypeError,
        "keys: came bool[2, 7], a mask; wanted lengths. PyTorch's key_padding_mask is True for padding, the opposite "
        "of a mask here. Remedy: lengths((~padding).sum(-1)), or mask=~padding[:, None, :].",
        lambda: regard.lengths(torch.ones(2, 7, dtype=torch.bool)),
    ),
    "lengths in a list": says(
        TypeError,
        "queries: came list, wanted an integer tensor of lengths. "
        "Remedy: torch.tensor([7, 5, 3]), or (~padding).sum(-1) from a padding mask.",
        lambda: regard.lengths(queries=[3, 4]),
    ),
    "lengths with a point": says(
        TypeError,
        "keys: came float32[2], wanted an integer tensor of lengths. "
        "Remedy: torch.tensor([7, 5, 3]), or (~padding).sum(-1) from a padding mask.",
        lambda: regard.lengths(torch.ones(2)),
    ),
    "lengths of queries that fall on heads": says(
        ValueError,
        "queries: came int64[5] for scores [2, 5, 3, 7]; wanted its dimensions to be the first ones of the batch "
        "[2, 5]. Remedy: one entry for every sequence, in the order of the leading dimensions.",
        lambda: regard.lengths(queries=torch.ones(5, dtype=torch.long)).dense(2, 5, 3, 7),
    ),
    "lengths that fall on heads": says(
        ValueError,
        "keys: came int64[5] for scores [2, 5, 3, 7]; wanted its dimensions to be the first ones of the batch [2, 5]. "
        "Remedy: one entry for every sequence, in the order of the leading dimensions.",
        lambda: regard.lengths(torch.ones(5, dtype=torch.long)).dense(2, 5, 3, 7),
    ),
    "document ids": says(
        TypeError,
        "keys: came float32[7], wanted integer document ids [..., length]. Remedy: torch.tensor([0, 0, 0, 1, 1]).",
        lambda: regard.documents(torch.zeros(7)),
    ),
    "document ids of queries": says(
        TypeError,
        "queries: came list, wanted integer document ids [..., length]. Remedy: torch.tensor([0, 0, 0, 1, 1]).",
        lambda: regard.documents(torch.zeros(7, dtype=torch.long), [0, 1]),
    ),
    "documents that fall on heads": says(
        ValueError,
        "keys: came int64[5, 7] for scores [2, 5, 3, 7]; wanted its dimensions to be the first ones of the batch "
        "[2, 5]. Remedy: one entry for every sequence, in the order of the leading dimensions.",
        lambda: regard.documents(torch.ones(5, 7, dtype=torch.long)).dense(2, 5, 3, 7),
    ),
    "documents of queries that fall on heads": says(
        ValueError,
        "queries: came int64[5, 3] for scores [2, 5, 3, 7]; wanted its dimensions to be the first ones of the batch "
        "[2, 5]. Remedy: one entry for every sequence, in the order of the leading dimensions.",
        lambda: regard.documents(*(torch.ones(shape, dtype=torch.long) for shape in (7, (5, 3)))).dense(2, 5, 3, 7),
    ),
    "documents by a number": says(
        TypeError,
        "queries: came int64[], wanted integer document ids [..., length]. Remedy: torch.tensor([0, 0, 0, 1, 1]).",
        lambda: regard.documents(torch.zeros(7, dtype=torch.long), torch.tensor(3)),
    ),
    "too few document ids of keys": says(
        ValueError,
        "keys: came 3 document ids for 7 keys; wanted one each. "
        "Remedy: documents(keys=…, queries=…) when they differ in number.",
        lambda: attend(mask=regard.documents(torch.zeros(2, 3, dtype=torch.long))),
    ),
    "too few document ids of several sequences": says(
        ValueError,
        "queries: came 3 document ids for 5 queries; wanted one each. "
        "Remedy: documents(keys=…, queries=…) when they differ in number.",
        lambda: regard.documents(*(torch.zeros(2, n, dtype=torch.long) for n in (7, 3))).dense(2, 4, 5, 7),
    ),
    "too few document ids": says(
        ValueError,
        "queries: came 7 document ids for 5 queries; wanted one each. "
        "Remedy: documents(keys=…, queries=…) when they differ in number.",
        lambda: attend(mask=regard.documents(torch.zeros(7, dtype=torch.long))),
    ),
    "a window": says(
        ValueError,
        "window: came left=-1, right=2; wanted counts of keys, zero or more. Remedy: right=0 for none.",
        lambda: regard.window(-1, right=2),
    ),
    "a prefix": says(
        ValueError,
        "prefix: came -1, wanted a count of keys, zero or more. Remedy: the prefix's length.",
        lambda: regard.prefix(-1),
    ),
    "an alignment": says(
        ValueError,
        "align: came 'left', wanted 'end' (the last query sees all keys: decoding with a cache) or 'start' "
        "(the first query sees the first key: PyTorch's is_causal). Remedy: one of the two.",
        lambda: regard.causal("left"),
    ),
    "a boolean bias": says(
        TypeError,
        "bias: came bool[5, 7]; wanted numbers to add. A boolean tensor is a mask. Remedy: mask=bias.",
        lambda: attend(bias=TRUE),
    ),
    "a bias that is none": says(
        TypeError,
        "bias: came str, wanted a floating-point tensor or a rule such as regard.alibi(8). "
        "Remedy: regard.rule(function, *tensors) for a rule of your own.",
        lambda: attend(bias="alibi"),
    ),
    "a bias's shape": says(
        ValueError,
        "bias: came float32[3, 5, 7] for scores [2, 5, 7]; wanted a tensor that broadcasts to them, from the right. "
        "Remedy: unsqueeze the dimensions that are missing.",
        lambda: attend(bias=torch.zeros(3, 5, 7)),
    ),
    "a bias's heads": says(
        ValueError,
        "bias: it gave float32[3, 5, 7] for 5 queries and 7 keys of scores [2, 5, 7]; wanted numbers that broadcast to "
        "them. Remedy: heads in front, as many as the scores have in dimension -3.",
        lambda: attend(bias=regard.alibi(3)),
    ),
    "a bias's rule": says(
        ValueError,
        "bias: the rule gave int64[5, 7]; wanted floating-point numbers [..., 5, 7] from query indices [5, 1] and key "
        "indices [1, 7]. Remedy: one number for every pair, heads in front.",
        lambda: attend(bias=regard.rule(lambda i, j: i - j)),
    ),
    "a rule for biases that is none": says(
        TypeError,
        "bias: came float, wanted a function. Remedy: rule(lambda i, j: …).",
        lambda: regard.rule(0.5),
    ),
    "an even table": says(
        ValueError,
        "table: came float32[4], an even number of distances; wanted [..., 2 reach + 1]. "
        "Remedy: one entry for zero and as many on each side.",
        lambda: regard.relative(torch.zeros(4)),
    ),
    "no heads": says(
        ValueError,
        "slopes: came 0 heads, wanted one or more. Remedy: the number of query heads.",
        lambda: regard.alibi(0),
    ),
    "buckets": says(
        ValueError,
        "table: came float32[7]; wanted [..., buckets] with at least 4 and an even number of buckets. "
        "Remedy: 32, as in the paper.",
        lambda: regard.t5_buckets(torch.zeros(7)),
    ),
    "one bucket": says(
        ValueError,
        "table: came float32[1]; wanted [..., buckets] with at least 2 buckets. Remedy: 32, as in the paper.",
        lambda: regard.t5_buckets(torch.zeros(1), bidirectional=False),
    ),
    "the farthest bucket": says(
        ValueError,
        "farthest: came 8, wanted more than the exact buckets. Remedy: 128.",
        lambda: regard.t5_buckets(torch.zeros(32), farthest=8),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    hold(ERRORS[name])


MAKERS = {
    "additive": ("weight", regard.additive),
    "additive's query": ("query_weight", lambda wrong: regard.additive(torch.ones(4), wrong)),
    "additive's key": ("key_weight", lambda wrong: regard.additive(torch.ones(4), None, wrong)),
    "concatenated": ("matrix", lambda wrong: regard.concatenated(torch.ones(4), wrong, 2)),
    "bilinear": ("weight", regard.bilinear),
    "location": ("weight", regard.location),
    "importance": ("vector", regard.importance),
    "relative": ("table", regard.relative),
    "t5_buckets": ("table", regard.t5_buckets),
    "alibi": ("slopes", regard.alibi),
    "given": ("weights", regard.given),
    "a window": ("weights", lambda wrong: window_terms(wrong, torch.ones(4, 3))),
    "a window's matrix": ("matrix", lambda wrong: window_terms(torch.ones(5), wrong)),
    "a position's matrix": ("matrix", lambda wrong: position_terms(wrong, 5, 7)),
    "rotated": ("tensor", lambda wrong: rotated(wrong, torch.arange(1))),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_what_is_made_names_its_argument(maker: str) -> None:
    name, make = MAKERS[maker]
    hold(
        says(
            TypeError,
            f"{name}: came list, wanted a torch.Tensor. Remedy: torch.as_tensor({name}).",
            lambda: make([1.0]),
        )
    )
