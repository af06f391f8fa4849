"""Look into attention over a long text, on a CPU, without ever holding its map.

    python examples/long_text.py [--tokens 16384] [--width 64] [--additive] [--seed 0]

The text is made up, with things planted in it to be found: it has four parts with words of their own, its first token
draws attention from everywhere, and one passage is quoted again at the end. At 16,384 tokens the map has 268 million
weights, 1 GB; what is seen of it below takes a few megabytes. (The additive score is random here, not trained: with
it, look at the road and the time, not at what is found.)
"""

import argparse
import time

import torch
from torch import Tensor

import regard

SHADES = " ░▒▓█"


def made_up(tokens: int, width: int) -> Tensor:
    """Features of each token: what is its own, what its part of the text has in common, and one that all have."""
    parts = 0.7 * torch.randn(4, width)
    text = torch.randn(tokens, width) + parts[torch.arange(tokens) * 4 // tokens]
    quoted = tokens // 16
    text[-quoted:] = text[quoted : 2 * quoted]  # the end quotes a passage of the first part
    text[0] = 0.0
    text[:, 0] = 3.0
    text[0, 0] = 30.0  # what all have in common, the first token has most of: everybody looks there a little
    return text


def drawn(picture: Tensor) -> str:
    """A map as text; each cell against the heaviest one, on a scale of roots, so that light cells show."""
    levels = (4 * (picture / picture.max()).sqrt()).round().long()
    return "\n".join("".join(2 * SHADES[level] for level in row) for row in levels.tolist())


def main(arguments: list[str] | None = None) -> regard.Seen:
    reader = argparse.ArgumentParser(description="What is to be seen of attention over a long text.")
    reader.add_argument("--tokens", type=int, default=16384)
    reader.add_argument("--width", type=int, default=64)
    reader.add_argument("--additive", action="store_true", help="the additive score instead of the scaled dot product")
    reader.add_argument("--seed", type=int, default=0)
    asked = reader.parse_args(arguments)
    torch.manual_seed(asked.seed)

    text = made_up(asked.tokens, asked.width)
    score = regard.scaled_dot()
    if asked.additive:
        side = torch.randn(2, asked.width, asked.width) / asked.width
        score = regard.additive(torch.randn(asked.width), side[0], side[1])
    things = [regard.Entropy(), regard.Received(), regard.Top(3), regard.Map(24)]
    print(regard.route(text, text, text, score=score, see=things))

    start = time.perf_counter()
    with torch.no_grad():
        _, seen = regard.attend(text, text, text, score=score, see=things)
    print(f"\n{asked.tokens:,} tokens, {asked.tokens**2:,} weights, {time.perf_counter() - start:.1f} s\n")

    most = torch.log(torch.tensor(asked.tokens)).item()
    low, middle, high = seen.entropy.quantile(torch.tensor([0.05, 0.5, 0.95])).tolist()
    print(f"entropy of a token's weights: {low:.2f} to {high:.2f} nats, median {middle:.2f} (all alike: {most:.2f})")
    received, keys = seen.received.topk(5)
    last = seen.top.indices[-1].tolist()
    told = ", ".join(f"{key} ({share:.0f})" for key, share in zip(keys.tolist(), received.tolist(), strict=True))
    print(f"keys that receive most (mean 1): {told}")
    print(f"the last token looks most at {last}; it quotes token {asked.tokens // 16 * 2 - 1}")
    print("\nthe map, queries down, keys across:")
    print(drawn(seen.map))
    return seen


if __name__ == "__main__":
    main()
