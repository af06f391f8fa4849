"""Write docs/results.md, what was measured, from the rows in benchmarks/results: `python docs/make_results.py`.

Of each file the newest rows count: those of the last row's commit, device and day, or of several kinds the last of
each. Nothing here is typed in by hand but the words; tests/test_results_page.py holds the page to the rows.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROWS = HERE.parent / "benchmarks" / "results"
KIND = {"soak.csv": "what", "suite.csv": "torch"}  # files of which the last row of each kind counts
Row = dict[str, str]

INTRODUCTION = """\
# Results

What was measured, where, and the command that measures it again. Rows lie in `benchmarks/results/`, one file for each
command, with the commit they were taken at; this page is written from them.

A ratio compares two contestants that took turns in one run, so that a busy machine falls on both; absolute times mean
little on shared processors. "Times faster" is the median of the rounds' ratios: 2 is half the time, 0.5 is twice.
Differences are from the peer's result, relative to its size. Sizes are batch, queries, keys and width of the additive
score; batch, heads, length and width of the dot form; length and width of the rest.
"""


def newest(file: str) -> list[Row]:
    """The rows of the last run that a file holds, or of the last run of each kind."""
    path = ROWS / file
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    if file in KIND:
        return list({row[KIND[file]]: row for row in rows}.values())
    return [row for row in rows if all(row[name] == rows[-1][name] for name in ("date", "commit", "device"))]


def origin(rows: list[Row]) -> str:
    """Where the rows come from, as a sentence."""
    row = rows[-1]
    return f"{row['device']}, torch {row['torch']}, commit `{row['commit']}`, {row['date']}."


def table(heads: list[str], lines: list[list[str]]) -> str:
    rule = ["---" if place == 0 else "---:" for place in range(len(heads))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, rule, *lines])


def time(microseconds: str) -> str:
    value = float(microseconds)
    return f"{value:.1f} µs" if value < 1e3 else f"{value / 1e3:.1f} ms" if value < 1e6 else f"{value / 1e6:.2f} s"


def speed(rows: list[Row]) -> str:
    """Each case: the peer and regard side by side."""
    lines = []
    for case in dict.fromkeys(row["case"] for row in rows):
        peer, *others = [row for row in rows if row["case"] == case]
        lines += [
            [
                case,
                f"{peer['who']}, {time(peer['median_us'])}",
                time(mine["median_us"]),
                f"{float(mine['times_faster_than_peer']):.2f}",
                "none" if float(mine["difference_from_peer"]) == 0 else mine["difference_from_peer"],
            ]
            for mine in others
        ]
    return table(["case", "peer", "regard", "times faster", "difference"], lines)


def memory(rows: list[Row]) -> str:
    lines = [[row["case"], f"{float(row['mb_beyond_inputs']):.0f} MB", f"{row['seconds']} s"] for row in rows]
    return table(["case", "beyond its inputs", "time"], lines)


def startup(rows: list[Row]) -> str:
    lines = [[f"`{row['what']}`", f"{row['seconds']} s", f"{row['seconds_more']} s", row["beside"]] for row in rows]
    return table(["what", "takes", "more", "than"], lines)


def hard(rows: list[Row]) -> str:
    lines = [[row[n] for n in ("baseline", "entropy_weight", "expectation", "standard_errors")] for row in rows]
    return table(["baseline", "weight of the entropy", "share of expectations", "standard errors, at most"], lines)


def soak(rows: list[Row]) -> str:
    counts = ("cases", "failures", "rows", "left_out", "by_own", "repeated")
    lines = [
        [row["what"], *(f"{int(row[name]):,}" for name in counts), row["seed"], f"`{row['commit']}`"] for row in rows
    ]
    heads = ["what", "cases", "failures", "rows", "left out", "by their own error", "beside a corner", "seed", "commit"]
    return table(heads, lines)


def suite(rows: list[Row]) -> str:
    heads = ["device", "python", "torch", "passed", "failed", "error", "skipped", "commit"]
    lines = [[f"`{row[name]}`" if name == "commit" else row[name] for name in heads] for row in rows]
    return table(heads, lines)


def mutants(rows: list[Row]) -> str:
    counts = ("mutants", "killed", "survived", "explained", "other")
    lines = [[f"`{row['module']}`", *(row[name] for name in counts)] for row in rows]
    whole = [sum(int(row[name]) for row in rows) for name in counts]
    lines.append(["all", str(whole[0]), f"{whole[1]} ({whole[1] / whole[0]:.1%})", *map(str, whole[2:])])
    with (ROWS / "survivors.csv").open(newline="", encoding="utf-8") as kept:
        reasons = Counter(row["why"] for row in csv.DictReader(kept))
    why = table(["why a mutant lives", "changes"], [[reason, str(count)] for reason, count in reasons.most_common()])
    return table(["module of core/", "mutants", *counts[1:]], lines) + "\n\n" + why


@dataclass(frozen=True)
class Section:
    """A command, the file of its rows, how they are shown, and what to know about them."""

    title: str
    file: str
    command: str
    write: Callable[[list[Row]], str]
    words: str


SECTIONS = [
    Section(
        "The suite",
        "suite.csv",
        "python -m benchmarks.suite --keep",
        suite,
        """
Where all tests have passed, last. On a machine with a GPU none of its tests is skipped.
""",
    ),
    Section(
        "Speed on two cores",
        "cpu.csv",
        "python -m benchmarks.run --keep",
        speed,
        """
Additive attention is scored by matrix products (`kernels/rational.py`), large magnitudes (`spread 50`) by tanh. The
dot form is PyTorch's own kernel; what a mask adds is the look for NaN behind it and for rows without anything to
see. A decoding step and other small calls take the definition, where what is left is bookkeeping. Entmax of order
1.5 and 2 competes with sorting, other orders with 50 bisections.
""",
    ),
    Section(
        "Speed on a GPU",
        "cuda.csv",
        "python -m benchmarks.run --device cuda --keep",
        speed,
        """
The roads so far are written in PyTorch's own operations, and on a GPU they buy memory, not time: kernels of our own
come later.
""",
    ),
    Section(
        "Memory",
        "memory.csv",
        "python -m benchmarks.memory --keep",
        memory,
        """
The largest resident size beyond the process with its inputs in place; outputs and gradients are counted in. At
16,384 tokens PyTorch as everyone writes it holds a temporary of 69 GB.
""",
    ),
    Section(
        "Beginning",
        "startup.csv",
        "python -m benchmarks.startup --keep",
        startup,
        """
Seconds of a core of fresh interpreters.
""",
    ),
    Section(
        "Hard attention",
        "hard.csv",
        "python -m benchmarks.hard --keep",
        hard,
        """
The mean of 100,000 gradients by the learning rule against the exact gradient, with each technique off and on: the
largest distance over all parameters and seeds. Which options are biased, and for what: [hard
attention](mechanisms/hard.md).
""",
    ),
    Section(
        "Long random runs",
        "soak.csv",
        "python -m benchmarks.soak --keep",
        soak,
        """
Random calls on every road against plain PyTorch in float64, gradients against finite differences, and every
[law](laws.md). A result may be off by the larger of a fixed tolerance (float32: 1e-5 and 1.3e-6 of its size) and
twice plain PyTorch's own error. Where plain PyTorch was luckier than rounding allows, mostly a handful of numbers
in half types, a case is held to twice what rounding its inputs once may change (`tests/tolerances.py`): these are
counted as by their own error. Left out are rows of argmax, top-k and support whose margin is within the score's own
error, or whose scores overflow their type in plain PyTorch too.

The file keeps the rows of earlier runs, with how many cases failed in them; what was wrong, and how it was mended, is
in the history.
""",
    ),
    Section(
        "Mutants",
        "mutants.csv",
        "make mutants",
        mutants,
        """
Every function of `core/` broken in every way that mutmut knows, one at a time, against `tests/core`. What no test
notices is named in `benchmarks/results/survivors.csv`, by what was written before and after, with the reason why it may
live; any other survivor is printed. "Other" are runs that outlasted their limit.
""",
    ),
]


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for part in SECTIONS:
        rows = newest(part.file)
        if rows:
            parts.append(f"## {part.title}\n\n`{part.command}`: {origin(rows)}\n{part.words}\n{part.write(rows)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (HERE / "results.md").write_text(page(), encoding="utf-8")
