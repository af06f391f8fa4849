"""What the tests of core/ say of broken code: python -m benchmarks.mutants [--keep], after `mutmut run`.

mutmut breaks every function of core/ in every way it knows, one at a time, and runs the tests that reach it. A mutant
that no test notices survives; what is left of them is read with `mutmut show NAME`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from benchmarks.record import append, origin

FOUND = Path("mutants/regard/core")
KILLED, SURVIVED = (1, 3), 0  # pytest's exit status: tests failed, or could not even begin


def verdicts() -> dict[str, dict[str, int | None]]:
    """The exit status of the tests for each mutant of each module."""
    files = sorted(FOUND.glob("*.meta"))
    if not files:
        raise SystemExit(f"mutants: {FOUND} holds nothing. Remedy: make mutants.")
    return {
        file.name.removesuffix(".py.meta"): json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
        for file in files
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--keep", action="store_true", help="add a row for each module to benchmarks/results")
    options = parser.parse_args()
    rows = []
    for module, statuses in verdicts().items():
        if not statuses:
            continue
        found = list(statuses.values())
        survived = found.count(SURVIVED)
        killed = sum(found.count(status) for status in KILLED)
        row = {
            **origin(torch.device("cpu")),
            "module": module,
            "mutants": str(len(found)),
            "killed": str(killed),
            "survived": str(survived),
            "other": str(len(found) - killed - survived),  # too slow, or not run
        }
        print(f"{module:16} {killed:5} of {len(found):5} killed, {survived} survived, {row['other']} other")
        rows.append(row)
    whole, killed = (sum(int(row[name]) for row in rows) for name in ("mutants", "killed"))
    print(f"{'all':16} {killed:5} of {whole:5} killed: {killed / whole:.1%}")
    if options.keep:
        append("mutants.csv", rows)


if __name__ == "__main__":
    main()
