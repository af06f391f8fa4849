"""Run the whole suite and keep what came of it: python -m benchmarks.suite [--workers 2] [--keep].

Rows say which versions and devices the tests have passed on.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys

import torch

from benchmarks.record import append, origin

COUNTS = ("passed", "failed", "error", "skipped")


def counted(line: str) -> dict[str, str]:
    """`2 failed, 31 passed, 1 skipped in 3.21s` as numbers by name."""
    found = {name.removesuffix("s"): number for number, name in re.findall(r"(\d+) (\w+)", line.partition(" in ")[0])}
    return {name: found.get(name, "0") for name in COUNTS}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--workers", default="2")
    parser.add_argument("--keep", action="store_true", help="add the row to benchmarks/results")
    options = parser.parse_args()
    words = [sys.executable, "-m", "pytest", "-q", "-n", options.workers, "--dist", "worksteal", "tests"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        last = ""
        for line in run.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    row = {**origin(torch.device("cuda" if torch.cuda.is_available() else "cpu")), "python": platform.python_version()}
    row |= counted(last)
    if options.keep:
        append("suite.csv", [row])
    raise SystemExit(run.returncode)


if __name__ == "__main__":
    main()
