"""Parallel text, a pair at a time: two plain files side by side, or the columns of a .tsv, or the keys of a .jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from regard.data.lines import kind, lines
from regard.data.troubles import DataError, Troubles

Pair = tuple[str, str]
Place = tuple[Path, int]


def pairs(
    source: str | Path,
    target: str | Path | None = None,
    *,
    columns: tuple[int, int] = (0, 1),
    keys: tuple[str, str] = ("source", "target"),
    troubles: Troubles | None = None,
) -> Iterator[Pair]:
    """(source, target) of every line that can be used, without white space around them.

    Two files run side by side. One file is a .tsv, whose `columns` are counted from zero, or a .jsonl with an object on
    every line, of which `keys` are taken; each of them plain, .gz or .xz. What is left out is in `troubles`.
    """
    troubles = Troubles() if troubles is None else troubles
    first = Path(source)
    if target is not None:
        found = side_by_side(first, Path(target), troubles)
    elif kind(first) == ".tsv":
        found = of_columns(first, columns, troubles)
    elif kind(first) == ".jsonl":
        found = of_objects(first, keys, troubles)
    else:
        raise DataError(
            f"{first}: one file came that is neither .tsv nor .jsonl; wanted both sides. Remedy: name the target's "
            f"file too, or give the file the ending that says what it holds."
        )
    for (file, number), pair in found:
        one, other = (text.strip() for text in pair)
        longest = max(len(one), len(other))
        if not one or not other:
            troubles.meet("empty", file, number, f"the {'target' if one else 'source'} is empty")
        elif longest > troubles.policy.longest:
            troubles.meet("long", file, number, f"{longest:,} characters, at most {troubles.policy.longest:,}")
        else:
            yield one, other


def side_by_side(source: Path, target: Path, troubles: Troubles) -> Iterator[tuple[Place, Pair]]:
    """The lines of two files; both must end together."""
    for one, other in zip_longest(lines(source, troubles), lines(target, troubles)):
        if one is None or other is None:
            longer, shorter = (target, source) if one is None else (source, target)
            number = (one or other)[0]
            troubles.meet("unequal", longer, number, f"{shorter} has only {number - 1:,} lines")
        elif one[1] is not None and other[1] is not None:
            yield (source, one[0]), (one[1], other[1])


def of_columns(file: Path, columns: tuple[int, int], troubles: Troubles) -> Iterator[tuple[Place, Pair]]:
    """Two columns of lines of columns between tabs."""
    for number, text in lines(file, troubles):
        if text is None:
            continue
        cells = text.split("\t")
        if not text.strip():
            yield (file, number), ("", "")
        elif max(columns) >= len(cells):
            troubles.meet("columns", file, number, f"{len(cells)} columns, wanted column {max(columns)} from zero")
        else:
            yield (file, number), (cells[columns[0]], cells[columns[1]])


def of_objects(file: Path, keys: tuple[str, str], troubles: Troubles) -> Iterator[tuple[Place, Pair]]:
    """Two keys of lines of JSON objects."""
    for number, text in lines(file, troubles):
        if text is None:
            continue
        if not text.strip():
            yield (file, number), ("", "")
            continue
        try:
            held = json.loads(text)
        except ValueError as error:
            troubles.meet("columns", file, number, f"no JSON: {error}")
            continue
        wrong = [key for key in keys if not (isinstance(held, dict) and isinstance(held.get(key), str))]
        if wrong:
            troubles.meet("columns", file, number, f"no text under {wrong[0]!r}")
        else:
            yield (file, number), (held[keys[0]], held[keys[1]])
