"""How far the mean of 100,000 hard-attention gradients is from the exact one: python -m benchmarks.hard [--keep].

The problem, its exact gradient by enumeration and the estimates are those of tests/layers/test_hard.py, which holds
each combination to four standard errors; here they are repeated over seeds, and the largest of all distances is kept.
"""

from __future__ import annotations

import argparse
import itertools

import torch

from benchmarks.record import append, origin
from tests.layers.test_hard import CASE, COPIES, errors

OFF_AND_ON = {"baseline": (0.0, -1.2), "entropy_weight": (0.0, 0.3), "expectation": (0.0, 0.5)}


def worst(seed: int, *, baseline: float, entropy_weight: float, expectation: float) -> float:
    """In standard errors, over all parameters."""
    exact = CASE.exact(CASE.objective(entropy_weight, expectation))
    estimates = CASE.estimates(seed=seed, expectation=expectation, baseline=baseline, entropy_weight=entropy_weight)
    return errors(estimates, exact)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="add the rows to benchmarks/results")
    options = parser.parse_args()
    rows = []
    for baseline, entropy_weight, expectation in itertools.product(*OFF_AND_ON.values()):
        far = [
            worst(seed, baseline=baseline, entropy_weight=entropy_weight, expectation=expectation)
            for seed in range(options.seeds)
        ]
        row = {
            **origin(torch.device("cpu")),
            "baseline": f"{baseline:g}",
            "entropy_weight": f"{entropy_weight:g}",
            "expectation": f"{expectation:g}",
            "gradients": str(COPIES),
            "seeds": str(options.seeds),
            "standard_errors": f"{max(far):.2f}",
        }
        print(", ".join(f"{name} {row[name]}" for name in (*OFF_AND_ON, "standard_errors")), flush=True)
        rows.append(row)
    if options.keep:
        append("hard.csv", rows)


if __name__ == "__main__":
    main()
