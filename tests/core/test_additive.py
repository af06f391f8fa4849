"""The additive score: its two forms, and what is added inside the tanh. Its loops are in test_scores."""

import math

import pytest
import torch

import regard
from regard.core.additive import position_terms, window_terms


def test_the_concatenated_form_is_the_same_and_converts_both_ways() -> None:
    weight, matrix, bias = torch.randn(13), torch.randn(13, 3 + 5), torch.randn(13)
    query, key = torch.randn(2, 7, 3), torch.randn(2, 11, 5)
    score = regard.concatenated(weight, matrix, 3, bias)
    pairs = torch.cat([query[:, :, None].expand(2, 7, 11, 3), key[:, None].expand(2, 7, 11, 5)], -1)
    wanted = torch.tanh(pairs @ matrix.mT + bias) @ weight
    torch.testing.assert_close(score(query, key), wanted)
    back, whole = score.concatenated()
    assert back is weight
    assert torch.equal(whole, matrix)
    of_heads = regard.concatenated(torch.randn(2, 4), torch.randn(2, 4, 6 + 5), 6)
    assert torch.equal(torch.cat([of_heads.query_weight, of_heads.key_weight], -1), of_heads.concatenated()[1])
    layer = torch.nn.Linear(3, 13, bias=False)
    assert regard.additive(weight, layer.weight, torch.randn(13, 5)).query_side(query).shape == (2, 7, 13)


@pytest.mark.parametrize("side", ["query", "key"])
def test_a_side_without_a_matrix_is_not_concatenated(side: str) -> None:
    matrices = {"query_weight": torch.randn(4, 3), "key_weight": torch.randn(4, 3)}
    matrices[f"{side}_weight"] = None
    with pytest.raises(ValueError, match=f"no matrix on the {side} side"):
        regard.additive(torch.randn(4), **matrices).concatenated()


def test_position_terms_are_cohn_s() -> None:
    matrix = torch.randn(5, 3, dtype=torch.float64)
    query_term, key_term = position_terms(matrix, 7, 11, start=2)
    assert query_term.shape == (7, 5)
    assert key_term.shape == (11, 5)
    for j in range(7):
        wanted = matrix[:, 0] * math.log(1 + j + 3)
        torch.testing.assert_close(query_term[j], wanted, rtol=1e-14, atol=1e-14)
    for i in range(11):
        wanted = matrix[:, 1] * math.log(1 + i + 1) + matrix[:, 2] * math.log(1 + 11)
        torch.testing.assert_close(key_term[i], wanted, rtol=1e-14, atol=1e-14)
    heads, _ = position_terms(matrix.expand(2, 5, 3), 7, 11)
    assert heads.shape == (2, 7, 5)
    assert torch.equal(position_terms(matrix, 7, 11)[0], position_terms(matrix, 7, 11, start=0)[0])


@pytest.mark.parametrize("radius", [0, 1, 3])
def test_window_terms_look_around_each_key(radius: int) -> None:
    weights, matrix = torch.rand(2, 5, dtype=torch.float64), torch.randn(7, 2 * radius + 1, dtype=torch.float64)
    found = window_terms(weights, matrix)
    assert found.shape == (2, 5, 7)
    for b in range(2):
        for j in range(5):
            around = [weights[b, j + o].item() if 0 <= j + o < 5 else 0.0 for o in range(-radius, radius + 1)]
            torch.testing.assert_close(found[b, j], matrix @ torch.tensor(around, dtype=torch.float64))
    torch.testing.assert_close(window_terms(weights[1], matrix), found[1])
    heads = torch.randn(3, 6, 2 * radius + 1, dtype=torch.float64)
    several = window_terms(weights[:, None].expand(2, 3, 5), heads)
    for h in range(3):
        torch.testing.assert_close(several[:, h], window_terms(weights, heads[h]))


def test_terms_stand_inside_the_tanh() -> None:
    weight, term = torch.randn(3), torch.randn(11, 3)
    query, key = torch.randn(2, 7, 3), torch.randn(2, 11, 3)
    found = regard.additive(weight, key_term=term, query_term=torch.ones(1, 3))(query, key)
    wanted = torch.tanh(query[:, :, None] + 1 + key[:, None] + term) @ weight
    torch.testing.assert_close(found, wanted)


def test_a_coverage_step_by_step() -> None:
    """See et al.: the summed weights of the steps so far are a term of the next, one step at a time."""
    weight, matrix = torch.randn(4), torch.randn(4, 3)
    query, key = torch.randn(1, 5, 4), torch.randn(1, 6, 4)
    covered = torch.zeros(1, 6)
    for t in range(5):
        score = regard.additive(weight, key_term=window_terms(covered, matrix))
        weights = regard.weigh(query[:, t : t + 1], key, score=score)[:, 0]
        covered = covered + weights
    assert covered.sum().item() == pytest.approx(5, rel=1e-5)
