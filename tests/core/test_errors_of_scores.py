"""Errors of scores by their full text, as `attend` meets them and as the scores themselves do."""

import pytest
import torch

import regard
from regard.core.additive import position_terms, window_terms
from tests.errors import KEY, QUERY, attend, hold, says

ERRORS = {
    "a query for importance": says(
        ValueError,
        "query: came float32[2, 5, 3], wanted None: learned importance has no query but its own vector. "
        "Remedy: query=None, or a score that compares (additive, bilinear).",
        lambda: attend(score=regard.importance(torch.randn(3))),
    ),
    "importance's width": says(
        ValueError,
        "vector: came float32[4], its width is 4; wanted width 3, as the key side's is: float32[2, 7, 3]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(query=None, score=regard.importance(torch.randn(4))),
    ),
    "importance's matrix": says(
        ValueError,
        "key: came float32[2, 7, 3], its width is 3; wanted width 5, by weight float32[4, 5]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(query=None, score=regard.importance(torch.randn(4), torch.randn(4, 5))),
    ),
    "importance's bias": says(
        ValueError,
        "bias: came float32[5] for the key side float32[2, 7, 4]; wanted [*batch, 4] with a batch that broadcasts with "
        "[2]. Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(query=None, score=regard.importance(torch.randn(4), torch.randn(4, 3), torch.randn(5))),
    ),
    "importance's vector": says(
        TypeError,
        "vector: came int64[3], wanted a floating-point tensor. Remedy: vector.float(), or embed it.",
        lambda: regard.importance(torch.ones(3, dtype=torch.int64)),
    ),
    "importance's heads": says(
        ValueError,
        "weight: came float32[5, 4, 3] for key float32[2, 7, 3]; wanted [*batch, 4, 3] with a batch that broadcasts "
        "with [2]. Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(query=None, score=regard.importance(torch.randn(4), torch.randn(5, 4, 3))),
    ),
    "a query for importance itself": says(
        ValueError,
        "query: came float32[2, 5, 3], wanted None: learned importance has no query but its own vector. "
        "Remedy: query=None, or a score that compares (additive, bilinear).",
        lambda: regard.importance(torch.randn(3))(QUERY, KEY),
    ),
    "distance's width": says(
        ValueError,
        "query: came float32[2, 5, 4], its width is 4; wanted width 3, as the key's is: key float32[2, 7, 3]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: regard.squared_distance()(torch.randn(2, 5, 4), KEY),
    ),
    "bilinear's query": says(
        ValueError,
        "query: came float32[2, 5, 3], its width is 3; wanted width 4, by weight float32[4, 3]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(score=regard.bilinear(torch.randn(4, 3))),
    ),
    "bilinear's key": says(
        ValueError,
        "key: came float32[2, 7, 3], its width is 3; wanted width 4, by weight float32[3, 4]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(score=regard.bilinear(torch.randn(3, 4))),
    ),
    "bilinear's heads": says(
        ValueError,
        "weight: came float32[3, 3, 3] for query float32[2, 5, 3]; wanted [*batch, 3, 3] with a batch that broadcasts "
        "with [2]. Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(score=regard.bilinear(torch.randn(3, 3, 3))),
    ),
    "a vector for a matrix": says(
        ValueError,
        "weight: came float32[3], wanted [..., length, width]. Remedy: add the missing dimension.",
        lambda: regard.bilinear(torch.randn(3)),
    ),
    "a scale a head": says(
        ValueError,
        "scale: came float32[3] for query float32[2, 5, 3]; wanted [*batch] with a batch that broadcasts with [2]. "
        "Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(score=regard.dot(torch.randn(3))),
    ),
    "a cosine's scale": says(
        ValueError,
        "scale: came float32[3] for query float32[2, 5, 3]; wanted [*batch] with a batch that broadcasts with [2]. "
        "Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(score=regard.cosine(torch.randn(3))),
    ),
    "cosine's epsilon": says(
        ValueError,
        "epsilon: came 0, wanted a positive length. Remedy: leave it at 1e-6.",
        lambda: regard.cosine(epsilon=0),
    ),
    "the dictionary's epsilon": says(
        ValueError,
        "epsilon: came 0, wanted a positive number: at 0 an exact match divides by zero. Remedy: 1e-3.",
        lambda: regard.soft_dictionary(epsilon=0),
    ),
    "the dictionary's power of zero": says(
        ValueError,
        "power: came 0, wanted a positive number. Remedy: 0.5, the inverse distance.",
        lambda: regard.soft_dictionary(0),
    ),
    "the dictionary's power": says(
        ValueError,
        "power: came -1, wanted a positive number. Remedy: 0.5, the inverse distance.",
        lambda: regard.soft_dictionary(-1),
    ),
    "additive's layout": says(
        ValueError,
        "key_weight: came float32[3, 4] for weight float32[4]; wanted [..., 4, its side's width]. "
        "Remedy: torch.nn.Linear's weight has this layout.",
        lambda: regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(3, 4)),
    ),
    "additive's width": says(
        ValueError,
        "key: came float32[2, 7, 3], its width is 3; wanted width 5, by key_weight float32[4, 5]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(score=regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(4, 5))),
    ),
    "additive's weight": says(
        ValueError,
        "query: came float32[2, 5, 3], its width is 3; wanted width 4, by weight float32[4]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(score=regard.additive(torch.randn(4))),
    ),
    "additive's heads": says(
        ValueError,
        "query_weight: came float32[3, 4, 3] for query float32[2, 5, 3]; wanted [*batch, 4, 3] with a batch that "
        "broadcasts with [2]. Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(score=regard.additive(torch.randn(4), torch.randn(3, 4, 3), torch.randn(4, 3))),
    ),
    "additive's bias": says(
        ValueError,
        "bias: came float32[5] for the query side float32[2, 5, 4]; wanted [*batch, 4] with a batch that broadcasts "
        "with [2]. Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(
            score=regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(4, 3), torch.randn(5)),
        ),
    ),
    "additive's term": says(
        ValueError,
        "key_term: came float32[5, 4] for the key side float32[2, 7, 4]; wanted [*batch, 7, 4] with a batch that "
        "broadcasts with [2]. Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(
            score=regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(4, 3), key_term=torch.randn(5, 4)),
        ),
    ),
    "additive's scalar": says(
        ValueError,
        "weight: came float32[], wanted [..., width]. Remedy: add the missing dimension.",
        lambda: regard.additive(torch.tensor(1.0)),
    ),
    "concatenated's width": says(
        ValueError,
        "query_width: came 6 for matrix float32[4, 6]; wanted between 1 and 5. Remedy: the width of q in [q; k].",
        lambda: regard.concatenated(torch.randn(4), torch.randn(4, 6), 6),
    ),
    "nothing to concatenate": says(
        ValueError,
        "concatenated: this score has no matrix on the key side, so there is nothing to concatenate. "
        "Remedy: build it with query_weight and key_weight.",
        lambda: regard.additive(torch.randn(4), torch.randn(4, 3)).concatenated(),
    ),
    "places": says(
        ValueError,
        "key: came float32[2, 7, 3], 7 keys; the location weight float32[5, 3] knows 5 places. "
        "Remedy: a weight with a row for every place, or shorter sources.",
        lambda: attend(score=regard.location(torch.randn(5, 3))),
    ),
    "a score of its own": says(
        ValueError,
        "score: your function gave float32[2, 7, 5] for query float32[2, 5, 3] and key float32[2, 7, 3]; "
        "wanted [..., 5, 7]. Remedy: one number for every pair.",
        lambda: attend(score=lambda query, key: key @ query.mT),
    ),
    "a score that is none": says(
        TypeError,
        "score: came str, wanted a score such as regard.scaled_dot() or a function (query, key) -> scores. "
        "Remedy: call it, with its parameters.",
        lambda: attend(score="dot"),
    ),
    "a score's class": says(
        TypeError,
        "score: came Dot, wanted a score such as regard.scaled_dot() or a function (query, key) -> scores. "
        "Remedy: call it, with its parameters.",
        lambda: attend(score=type(regard.dot())),
    ),
    "position terms": says(
        ValueError,
        "matrix: came float32[4, 2], its width is 2; wanted width 3, one column each for log(1+j), log(1+i), log(1+I). "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: position_terms(torch.randn(4, 2), 5, 7),
    ),
    "window terms": says(
        ValueError,
        "matrix: came float32[4, 2], an even window; wanted [width, 2 radius + 1]. Remedy: an odd window.",
        lambda: window_terms(torch.rand(2, 7), torch.randn(4, 2)),
    ),
    "a scaled dot's width": says(
        ValueError,
        "query: came float32[2, 5, 4], its width is 4; wanted width 3, as the key's is: key float32[2, 7, 3]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: regard.scaled_dot()(torch.randn(2, 5, 4), KEY),
    ),
    "bilinear's query itself": says(
        ValueError,
        "query: came float32[2, 5, 3], its width is 3; wanted width 4, by weight float32[4, 3]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: regard.bilinear(torch.randn(4, 3))(QUERY, KEY),
    ),
    "bilinear's key itself": says(
        ValueError,
        "key: came float32[2, 7, 3], its width is 3; wanted width 4, by weight float32[3, 4]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: regard.bilinear(torch.randn(3, 4))(QUERY, KEY),
    ),
    "a vector of places": says(
        ValueError,
        "weight: came float32[3], wanted [..., length, width]. Remedy: add the missing dimension.",
        lambda: regard.location(torch.randn(3)),
    ),
    "additive's query itself": says(
        ValueError,
        "query: came float32[2, 5, 3], its width is 3; wanted width 4, by weight float32[4]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: regard.additive(torch.randn(4))(QUERY, torch.randn(2, 7, 4)),
    ),
    "additive's key itself": says(
        ValueError,
        "key: came float32[2, 7, 3], its width is 3; wanted width 4, by weight float32[4]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: regard.additive(torch.randn(4))(torch.randn(2, 5, 4), KEY),
    ),
    "additive's query through its matrix": says(
        ValueError,
        "query: came float32[2, 5, 3], its width is 3; wanted width 2, by query_weight float32[4, 2]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(score=regard.additive(torch.randn(4), torch.randn(4, 2), torch.randn(4, 3))),
    ),
    "additive's key through its matrix": says(
        ValueError,
        "key: came float32[2, 7, 3], its width is 3; wanted width 2, by key_weight float32[4, 2]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: attend(score=regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(4, 2))),
    ),
    "additive's matrix of the key": says(
        ValueError,
        "key_weight: came float32[5, 3] for weight float32[4]; wanted [..., 4, its side's width]. "
        "Remedy: torch.nn.Linear's weight has this layout.",
        lambda: regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(5, 3)),
    ),
    "additive's vector for a matrix": says(
        ValueError,
        "key_weight: came float32[4], wanted [..., length, width]. Remedy: add the missing dimension.",
        lambda: regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(4)),
    ),
    "additive's heads of keys": says(
        ValueError,
        "key_weight: came float32[3, 4, 3] for key float32[2, 7, 3]; wanted [*batch, 4, 3] with a batch that "
        "broadcasts with [2]. Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(score=regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(3, 4, 3))),
    ),
    "additive's term of the query": says(
        ValueError,
        "query_term: came float32[7, 4] for the query side float32[2, 5, 4]; wanted [*batch, 5, 4] with a batch that "
        "broadcasts with [2]. Remedy: unsqueeze a dimension where one is missing.",
        lambda: attend(
            score=regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(4, 3), query_term=torch.randn(7, 4)),
        ),
    ),
    "nothing to concatenate for the query": says(
        ValueError,
        "concatenated: this score has no matrix on the query side, so there is nothing to concatenate. "
        "Remedy: build it with query_weight and key_weight.",
        lambda: regard.additive(torch.randn(4), None, torch.randn(4, 3)).concatenated(),
    ),
    "concatenated's vector": says(
        ValueError,
        "matrix: came float32[6], wanted [..., length, width]. Remedy: add the missing dimension.",
        lambda: regard.concatenated(torch.randn(4), torch.randn(6), 2),
    ),
    "concatenated's width of all, with heads": says(
        ValueError,
        "query_width: came 9 for matrix float32[2, 4, 9]; wanted between 1 and 8. Remedy: the width of q in [q; k].",
        lambda: regard.concatenated(torch.randn(2, 4), torch.randn(2, 4, 9), 9),
    ),
    "additive's query by the definition": says(
        ValueError,
        "query: came float32[2, 5, 3], its width is 3; wanted width 6, by query_weight float32[4, 6]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: regard.additive(torch.randn(4), torch.randn(4, 6), torch.randn(4, 3))(QUERY, KEY),
    ),
    "additive's key by the definition": says(
        ValueError,
        "key: came float32[2, 7, 3], its width is 3; wanted width 6, by key_weight float32[4, 6]. "
        "Remedy: project it first, or use a score that does (bilinear, additive).",
        lambda: regard.additive(torch.randn(4), torch.randn(4, 3), torch.randn(4, 6))(QUERY, KEY),
    ),
    "concatenated's width of none": says(
        ValueError,
        "query_width: came 0 for matrix float32[4, 6]; wanted between 1 and 5. Remedy: the width of q in [q; k].",
        lambda: regard.concatenated(torch.randn(4), torch.randn(4, 6), 0),
    ),
    "whole numbers for a window": says(
        TypeError,
        "weights: came int64[2, 7], wanted a floating-point tensor. Remedy: weights.float(), or embed it.",
        lambda: window_terms(torch.ones(2, 7, dtype=torch.int64), torch.randn(4, 3)),
    ),
    "an empty function": says(
        ValueError,
        "score: your function gave None for query float32[2, 5, 3] and key float32[2, 7, 3]; "
        "wanted [..., 5, 7]. Remedy: one number for every pair.",
        lambda: attend(score=lambda query, key: None),
    ),
    "a function of numbers": says(
        ValueError,
        "score: your function gave float32[7] for query float32[2, 5, 3] and key float32[2, 7, 3]; "
        "wanted [..., 5, 7]. Remedy: one number for every pair.",
        lambda: attend(score=lambda query, key: torch.randn(7)),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    hold(ERRORS[name])
