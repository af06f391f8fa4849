"""Heads that learn how sparse to be: entmax with an order for each head, and its gradient.

    python examples/learned_entmax.py [--keys 12] [--steps 400] [--seed 0]

Two heads see the same keys. One has to give the value of the best key alone, the other the mean of all values. Both
start at order 1.5. The first goes on to sparser weights and ends with about one key; the second goes back towards
softmax until all keys count, and stays there.
"""

import argparse

import torch
from torch import Tensor

import regard
from regard.layers import LearnedEntmax, ScaledDotScore


def drawn(batch: int, keys: int, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Query, key and value [batch, 2 heads, …], and what each head should give [batch, 2, 1, width]."""
    query, key = torch.randn(batch, 1, 1, width), torch.randn(batch, 1, keys, width)
    value = torch.randn(batch, 1, keys, width)
    best = (query @ key.mT).argmax(-1, keepdim=True)
    wanted = torch.cat([value.take_along_dim(best, -2), value.mean(-2, keepdim=True)], 1)
    return query.expand(-1, 2, -1, -1), key.expand(-1, 2, -1, -1), value.expand(-1, 2, -1, -1), wanted


def main(arguments: list[str] | None = None) -> list[float]:
    reader = argparse.ArgumentParser(description="Two heads learn how sparse to be.")
    reader.add_argument("--keys", type=int, default=12)
    reader.add_argument("--steps", type=int, default=400)
    reader.add_argument("--seed", type=int, default=0)
    asked = reader.parse_args(arguments)
    torch.manual_seed(asked.seed)

    normalise = LearnedEntmax(heads=2, alpha=1.5, most=4.0)
    attention = regard.Attention(ScaledDotScore(8, heads=2), normalise)
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.02)
    print("        loss        order           keys with weight")
    for step in range(asked.steps + 1):
        query, key, value, wanted = drawn(256, asked.keys, 8)
        context, seen = attention(query, key, value, see=regard.Weights())
        loss = (context - wanted).square().mean()
        if step % max(asked.steps // 8, 1) == 0:
            order, support = normalise.alpha.tolist(), (seen.weights > 0).sum(-1).float().mean((0, 2)).tolist()
            told = f"{order[0]:.2f}   {order[1]:.2f}     {support[0]:5.1f}   {support[1]:5.1f}"
            print(f"{step:5d}  {loss.item():6.3f}    {told}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return normalise.alpha.tolist()


if __name__ == "__main__":
    main()
