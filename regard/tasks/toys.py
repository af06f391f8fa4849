"""Toys: a row of letters to copy or to reverse, whose right alignment is known at every position."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Literal

Toy = Literal["copy", "reverse"]


@dataclass(frozen=True)
class Row:
    """Letters in, letters out, and where in the source each letter of the target comes from."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    places: tuple[int, ...]


def drawn(toy: Toy, chance: random.Random, length: int, letters: Sequence[str] = ascii_lowercase) -> Row:
    """A row of this many letters."""
    if toy not in ("copy", "reverse"):
        raise ValueError(f"toy: came {toy!r}, wanted 'copy' or 'reverse'. Remedy: one of the two.")
    if length < 0 or not letters:
        raise ValueError(f"length: came {length} of {len(letters)} letters, wanted letters to draw. Remedy: length=20.")
    source = tuple(chance.choice(letters) for _ in range(length))
    places = tuple(range(length) if toy == "copy" else reversed(range(length)))
    return Row(source, tuple(source[place] for place in places), places)
