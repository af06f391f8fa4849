"""How long it takes to begin: python -m benchmarks.startup [--rounds 15] [--keep].

Each contestant is a fresh interpreter, and they take turns. Counted are seconds of a core, as on a machine with nothing
else to do; what regard adds is the median of the rounds' differences.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

import torch

from benchmarks.record import append, origin

WORDS = {
    "an interpreter": ("-c", "pass"),
    "regard --help": ("-m", "regard", "--help"),
    "import torch": ("-c", "import torch"),
    "import torch, regard": ("-c", "import torch, regard"),
}
BESIDE = {"regard --help": "an interpreter", "import torch, regard": "import torch"}


def seconds(words: tuple[str, ...]) -> float:
    """Of a core, of a process from beginning to end."""
    before = os.times()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--keep", action="store_true", help="add the rows to benchmarks/results")
    options = parser.parse_args()
    for words in WORDS.values():
        seconds(words)  # from disk, the first time
    times: dict[str, list[float]] = {name: [] for name in WORDS}
    for _ in range(options.rounds):
        for name, words in WORDS.items():
            times[name].append(seconds(words))
    rows = []
    for name, peer in BESIDE.items():
        added = statistics.median(mine - its for mine, its in zip(times[name], times[peer], strict=True))
        middle = statistics.median(times[name])
        print(f"{name}: {middle:.3f} s, {added:.3f} s more than {peer}")
        rows.append(
            {
                **origin(torch.device("cpu")),
                "what": name,
                "beside": peer,
                "rounds": str(options.rounds),
                "seconds": f"{middle:.3f}",
                "seconds_more": f"{added:.3f}",
            }
        )
    if options.keep:
        append("startup.csv", rows)


if __name__ == "__main__":
    main()
