"""What the tests of core/ say of broken code: python -m benchmarks.mutants [--keep], after `mutmut run`.

mutmut breaks every function of core/ in every way it knows, one at a time, and runs the tests that reach it. A mutant
that no test notices survives. Why it may is said in benchmarks/results/survivors.csv, which names it by what was
written before and after; those of which nothing is said are printed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.record import RESULTS, append, origin

FOUND = Path("mutants/regard/core")
KILLED, SURVIVED = (1, 3), 0  # pytest's exit status: tests failed, or could not even begin
Change = tuple[str, str, str]  # module, before, after


def verdicts() -> dict[str, dict[str, int | None]]:
    """The exit status of the tests for each mutant of each module."""
    files = sorted(FOUND.glob("*.meta"))
    if not files:
        raise SystemExit(f"mutants: {FOUND} holds nothing. Remedy: make mutants.")
    return {
        file.name.removesuffix(".py.meta"): json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
        for file in files
    }


def functions(module: str) -> Iterator[tuple[str, list[str]]]:
    """Each version of each function that mutmut wrote, by its name, and its lines without that name."""
    text = (FOUND / f"{module}.py").read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name:
            body = lines[node.lineno - 1 : node.end_lineno]
            yield node.name, [re.sub(r"\bx(_|ǁ\w+ǁ)(\w+?)__mutmut_\w+\(", r"\2(", line).strip() for line in body]


def changes(module: str, names: list[str]) -> list[Change]:
    """What each of these mutants of a module changed."""
    written = dict(functions(module))
    found = []
    for name in names:
        own = name.rsplit(".", 1)[-1]
        whole = written[re.sub(r"__mutmut_\d+$", "__mutmut_orig", own)]
        lines = list(difflib.ndiff(whole, written[own]))
        before, after = (" ".join(line[2:] for line in lines if line.startswith(sign)) for sign in "-+")
        found.append((module, before, after))
    return found


def explained() -> dict[Change, str]:
    """Why a mutant may live, for those of which it has been said."""
    path = RESULTS / "survivors.csv"
    with path.open(newline="", encoding="utf-8") as lines:
        return {(row["module"], row["before"], row["after"]): row["why"] for row in csv.DictReader(lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--keep", action="store_true", help="add a row for each module to benchmarks/results")
    options = parser.parse_args()
    known, rows = explained(), []
    for module, statuses in verdicts().items():
        if not statuses:
            continue
        found = list(statuses.values())
        survivors = changes(module, [name for name, status in statuses.items() if status == SURVIVED])
        unknown = [change for change in survivors if change not in known]
        killed = sum(found.count(status) for status in KILLED)
        row = {
            **origin(torch.device("cpu")),
            "module": module,
            "mutants": str(len(found)),
            "killed": str(killed),
            "survived": str(len(survivors)),
            "explained": str(len(survivors) - len(unknown)),
            "other": str(len(found) - killed - len(survivors)),  # too slow, or not run
        }
        print(f"{module:16} {killed:5} of {len(found):5} killed, {len(survivors)} survived, {row['other']} other")
        for _, before, after in unknown:
            print(f"    - {before}\n    + {after}")
        rows.append(row)
    whole, killed = (sum(int(row[name]) for row in rows) for name in ("mutants", "killed"))
    print(f"{'all':16} {killed:5} of {whole:5} killed: {killed / whole:.1%}")
    if options.keep:
        append("mutants.csv", rows)


if __name__ == "__main__":
    main()
