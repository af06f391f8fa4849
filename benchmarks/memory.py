"""How much memory a long text takes: python -m benchmarks.memory [--length 16384] [--keep].

Additive attention, one head, forward and backward, in a fresh process; what is counted is the largest resident size
beyond the process with its inputs in place, outputs and gradients included.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import torch

from benchmarks.record import append, origin

WIDTH = 64


def resident() -> float:
    """The largest resident size so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def once(length: int) -> None:
    """Run in the fresh process: print MB and seconds."""
    import regard

    warm = torch.randn(64, WIDTH, requires_grad=True)
    weight = (torch.randn(WIDTH) / 8).requires_grad_()
    regard.attend(warm, warm, warm, score=regard.additive(weight), backend="tiled").sum().backward()
    query, key, value = (torch.randn(length, WIDTH, requires_grad=True) for _ in range(3))
    upstream = torch.randn(length, WIDTH)
    before, begun = resident(), time.perf_counter()
    context = regard.attend(query, key, value, score=regard.additive(weight))
    torch.autograd.grad(context, (query, key, value, weight), upstream)
    print(f"{resident() - before:.1f} {time.perf_counter() - begun:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--length", type=int, nargs="+", default=[4096, 8192, 16384])
    parser.add_argument("--once", type=int, help="measure this length in this process")
    parser.add_argument("--keep", action="store_true", help="add the rows to benchmarks/results")
    options = parser.parse_args()
    if options.once:
        once(options.once)
        return
    for length in options.length:
        words = [sys.executable, "-m", "benchmarks.memory", "--once", str(length)]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        print(f"additive forward+backward {length}x{WIDTH}: {said[0]} MB beyond its inputs, {said[1]} s")
        row = {
            **origin(torch.device("cpu")),
            "case": f"additive forward+backward {length}x{WIDTH}",
            "mb_beyond_inputs": said[0],
            "seconds": said[1],
        }
        if options.keep:
            append("memory.csv", [row])


if __name__ == "__main__":
    main()
