"""Time every case beside its peer: python -m benchmarks.run [--device cuda] [--only additive] [--rounds 9] [--keep].

The tests of the roads run first, and nothing is timed when one fails. Contestants take turns within a round, so that
what else the machine does falls on all of them; a ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.cases import CASES, GPU_CASES, Case
from benchmarks.record import append, origin

GATE = ["tests/kernels"]


def gate(device: torch.device) -> None:
    """No speed on a red gate."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", *GATE] + (["-m", "gpu"] if device.type == "cuda" else [])
    if subprocess.run(words, cwd=Path(__file__).parent.parent, check=False).returncode:
        raise SystemExit("benchmarks: the tests of the roads fail, so nothing is timed. Remedy: make test.")


def seconds(function: Callable[[], object], calls: int, device: torch.device) -> float:
    """One measurement: so many calls, by events on a GPU, by the clock elsewhere."""
    if device.type == "cuda":
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(calls):
            function()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / 1e3 / calls
    begun = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - begun) / calls


def calls_for(function: Callable[[], object], device: torch.device) -> int:
    """As many calls as take about 20 ms, after two to warm up."""
    function()
    function()
    return max(1, min(2000, int(0.02 / max(seconds(function, 1, device), 1e-7))))


def first_tensor(answer: object) -> Tensor:
    while isinstance(answer, tuple):
        answer = answer[0]
    assert isinstance(answer, Tensor)
    return answer


def difference(contestants: dict[str, Callable[[], object]]) -> list[float]:
    """How far each one's first result is from the peer's, relative to its size."""
    results = [first_tensor(function()).double() for function in contestants.values()]
    return [float((result - results[0]).norm() / results[0].norm().clamp_min(1e-30)) for result in results]


def measure(case: Case, device: torch.device, rounds: int) -> list[dict[str, str]]:
    """One row for each contestant."""
    torch.manual_seed(0)
    contestants = case.make(device)
    labels = list(contestants)
    calls = [calls_for(function, device) for function in contestants.values()]
    times: list[list[float]] = [[] for _ in labels]
    for _ in range(rounds):
        for place, function in enumerate(contestants.values()):
            times[place].append(seconds(function, calls[place], device))
    rows = []
    for label, taken, off in zip(labels, times, difference(contestants), strict=True):
        low, middle, high = (statistics.quantiles(taken, n=10)[i] for i in (0, 4, 8))
        ratio = statistics.median(peer / mine for peer, mine in zip(times[0], taken, strict=True))
        rows.append(
            {
                **origin(device),
                "case": case.name,
                "who": label,
                "rounds": str(rounds),
                "q10_us": f"{low * 1e6:.1f}",
                "median_us": f"{middle * 1e6:.1f}",
                "q90_us": f"{high * 1e6:.1f}",
                "times_faster_than_peer": f"{ratio:.3f}",
                "difference_from_peer": f"{off:.1e}",
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="a part of the names of the cases to run")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--keep", action="store_true", help="add the rows to benchmarks/results")
    options = parser.parse_args()
    device = torch.device(options.device)
    gate(device)
    print(f"{'case':52} {'who':14} {'median us':>12} {'x peer':>8} {'difference':>10}")
    for case in GPU_CASES if device.type == "cuda" else CASES:
        if options.only not in case.name:
            continue
        rows = measure(case, device, options.rounds)
        for row in rows:
            faster = row["times_faster_than_peer"]
            print(
                f"{row['case']:52} {row['who']:14} {row['median_us']:>12} {faster:>8} {row['difference_from_peer']:>10}"
            )
        if options.keep:
            append(f"{device.type}.csv", rows)


if __name__ == "__main__":
    main()
