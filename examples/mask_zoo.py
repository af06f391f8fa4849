"""Masks that draw themselves: what may be looked at, queries down, keys across.

    python examples/mask_zoo.py [--queries 8] [--keys 8]

With fewer queries than keys (--queries 4), watch where causal and window start: at the end, as decoding with a cache
needs it.
"""

import argparse

import torch

import regard
from regard.core.masks import Mask


def zoo(queries: int, keys: int) -> dict[str, Mask]:
    """One of each, and some of what comes of combining them."""
    written = torch.arange(keys) * 3 // keys  # three documents in one row
    asking = written[-queries:] if queries <= keys else torch.arange(queries) * 3 // queries
    documents = regard.documents(written, asking)
    return {
        "causal": regard.causal(),
        "causal, as PyTorch's is_causal": regard.causal(align="start"),
        "two before, one after": regard.window(2, right=1),
        "prefix": regard.prefix(3),
        "the last three keys are padding": regard.lengths(keys=torch.tensor(keys - 3)),
        "documents": documents,
        "every third key": regard.allow(lambda i, j: (j + 0 * i) % 3 == 0),
        "a language model with a prompt": regard.causal() | regard.prefix(3),
        "local, with a place that all can see": regard.causal() & (regard.window(2) | regard.prefix(1)),
        "packed training": regard.causal() & documents,
        "everybody but oneself": ~regard.window(0),
    }


def main(arguments: list[str] | None = None) -> None:
    reader = argparse.ArgumentParser(description="Masks that draw themselves.")
    reader.add_argument("--queries", type=int, default=8)
    reader.add_argument("--keys", type=int, default=8)
    asked = reader.parse_args(arguments)
    for name, mask in zoo(asked.queries, asked.keys).items():
        print(f"{name}\n{mask!r}\n{mask.draw(asked.queries, asked.keys)}\n")


if __name__ == "__main__":
    main()
