"""Scores of distance: weights in proportion, and right far from the origin. Their loops are in test_scores."""

import pytest
import torch

import regard


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_soft_dictionary_s_weights_are_in_proportion(power: float) -> None:
    query, key = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(2, 7, 3, dtype=torch.float64)
    share = 1 / (0.01 + torch.cdist(query, key) ** 2) ** power
    weights = regard.weigh(query, key, score=regard.soft_dictionary(power, epsilon=0.01))
    torch.testing.assert_close(weights, share / share.sum(-1, keepdim=True))


def test_an_exact_match_takes_nearly_all() -> None:
    key = torch.randn(1, 7, 3) * 3
    weights = regard.weigh(key[:, 2:3], key, score=regard.soft_dictionary(2.0, epsilon=1e-3))
    assert weights[0, 0].argmax() == 2
    assert weights[0, 0, 2] > 0.999


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0])
def test_distances_are_right_far_from_the_origin(dtype: torch.dtype, offset: float) -> None:
    """An expanded square would lose them: at an offset of 1000, differences of one are a millionth of the squares."""
    query, key = (torch.randn(5, 3) + offset).to(dtype), (torch.randn(7, 3) + offset).to(dtype)
    for score in (regard.squared_distance(), regard.soft_dictionary()):
        wanted = score(query.double(), key.double())
        torch.testing.assert_close(score(query, key).double(), wanted, rtol=1e-5, atol=1e-5)


def test_what_they_are_without_arguments() -> None:
    query, key = torch.randn(5, 3, dtype=torch.float64), torch.randn(7, 3, dtype=torch.float64)
    torch.testing.assert_close(regard.squared_distance()(query, key), -torch.cdist(query, key).square())
    share = 1 / (1e-3 + torch.cdist(query, key).square()).sqrt()
    torch.testing.assert_close(regard.soft_dictionary()(query, key).exp(), share)
