"""What is wrong in the lines of a file, and what is done about it: it is left out and counted, or reading stops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

Action = Literal["stop", "skip"]
SHOWN = 3  # places of each kind that a summary names


class DataError(ValueError):
    """A line that cannot be used, where the policy is to stop; says the file, the line and the remedy."""


@dataclass(frozen=True)
class Policy:
    """What is done about each kind of trouble: "stop" or "skip". What is skipped is counted, and never silent."""

    encoding: Action = "stop"  # bytes that are not UTF-8
    empty: Action = "skip"  # nothing but white space, on either side
    long: Action = "skip"  # more than `longest` characters, on either side
    columns: Action = "stop"  # a column or a key that is not there, or no JSON
    unequal: Action = "stop"  # one file ends before the other; "skip" leaves out what is over
    longest: int = 5000

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name != "longest" and value not in ("stop", "skip"):
                raise ValueError(f"{one.name}: came {value!r}, wanted 'stop' or 'skip'. Remedy: one of the two.")
        if self.longest < 1:
            raise ValueError(f"longest: came {self.longest}, wanted a count of characters. Remedy: 5000.")


@dataclass
class Troubles:
    """What was left out, by kind: how often, and where first."""

    policy: Policy = field(default_factory=Policy)
    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)

    def meet(self, kind: str, file: Path, line: int, what: str) -> None:
        """Stop with an error, or count the line as left out."""
        if getattr(self.policy, kind) == "stop":
            raise DataError(
                f"{file}:{line}: {what}. Remedy: mend the line, or leave such lines out with {kind}='skip'."
            )
        self.counts[kind] = self.counts.get(kind, 0) + 1
        places = self.places.setdefault(kind, [])
        if len(places) < SHOWN:
            places.append(f"{file}:{line}")

    def __iter__(self) -> Iterator[str]:
        for kind, count in sorted(self.counts.items()):
            more = ", …" if count > len(self.places[kind]) else ""
            yield f"{kind}: {count:,} left out ({', '.join(self.places[kind])}{more})"

    def __str__(self) -> str:
        return "; ".join(self) or "nothing left out"
