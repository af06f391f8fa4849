"""Learned importance: without a query, one row or several. Its loops are in test_scores."""

import torch

import regard


def test_what_matters_whoever_asks() -> None:
    vector, weight, bias = torch.randn(11), torch.randn(11, 3), torch.randn(11)
    key, value = torch.randn(2, 7, 3), torch.randn(2, 7, 5)
    score = regard.importance(vector, weight, bias)
    context = regard.attend(None, key, value, score=score)
    weights = torch.softmax(torch.tanh(key @ weight.mT + bias) @ vector, -1)
    torch.testing.assert_close(context, (weights[:, None] @ value))


def test_several_rows_and_heads_of_their_own() -> None:
    vector, weight, bias = torch.randn(2, 5, 11), torch.randn(2, 11, 3), torch.randn(2, 11)
    key, value = torch.randn(3, 1, 7, 3), torch.randn(3, 2, 7, 5)
    context = regard.attend(None, key, value, score=regard.importance(vector, weight, bias))
    assert context.shape == (3, 2, 5, 5)
    for head in range(2):
        own = regard.importance(vector[head], weight[head], bias[head])
        torch.testing.assert_close(context[:, head], regard.attend(None, key[:, 0], value[:, head], score=own))


def test_a_key_without_a_matrix_is_taken_as_it_is() -> None:
    key = torch.randn(2, 7, 3)
    score = regard.importance(torch.ones(3))
    torch.testing.assert_close(score(None, key)[:, 0], key.tanh().sum(-1))
    assert torch.equal(score.query_side(None), torch.ones(1, 3))


def test_padding_is_not_looked_at() -> None:
    key = torch.randn(2, 7, 3)
    key[0, 4:] = torch.nan
    mask = regard.lengths(torch.tensor([4, 7]))
    context, seen = regard.attend(None, key, key, score=regard.importance(torch.randn(3)), mask=mask, see=regard.Top(1))
    assert torch.isfinite(context).all()
    assert seen.top.indices[0].item() < 4


def test_parameters_follow_the_key_s_type() -> None:
    vector, weight, key = torch.randn(11), torch.randn(11, 3), torch.randn(2, 7, 3)
    side = regard.importance(vector, weight).key_side(key.bfloat16())
    assert side.dtype == torch.bfloat16
    torch.testing.assert_close(side.float(), torch.tanh(key @ weight.mT), atol=5e-2, rtol=5e-2)
