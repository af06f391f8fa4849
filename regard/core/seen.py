"""What came back of what was asked to be seen, and how the parts of it come together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor

from regard.core.see import Best, Parts, Thing


class Seen(Mapping[Thing, object]):
    """What was asked to be seen: `seen.entropy` by name, `seen[thing]` by the thing that was asked for."""

    def __init__(self, things: Sequence[Thing], values: Sequence[object]) -> None:
        self._things = tuple(things)
        self._values = tuple(values)

    def __getitem__(self, thing: Thing) -> object:
        for known, value in zip(self._things, self._values, strict=True):
            if known is thing or known == thing:
                return value
        raise KeyError(f"{thing}: not asked for. Asked: {', '.join(known.name for known in self._things)}.")

    def __getattr__(self, name: str) -> Tensor | Best:
        if not name.startswith("_"):
            for thing, value in zip(self._things, self._values, strict=True):
                if thing.name == name:
                    return value  # type: ignore[return-value]  # a thing's value is a tensor, or Best for Top
        asked = ", ".join(thing.name for thing in self.__dict__.get("_things", ()))
        raise AttributeError(f"{name}: not asked for; see={asked or 'nothing'}. Remedy: add it to see=[…].")

    def __iter__(self) -> Iterator[Thing]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def __repr__(self) -> str:
        return f"Seen({', '.join(thing.name for thing in self._things)})"


def as_things(see: object) -> tuple[Thing, ...]:
    """One thing or several, or an error that says what can be seen."""
    things = (see,) if isinstance(see, Thing | type | str) else see
    if things is None:
        return ()
    if isinstance(things, Sequence):
        bad = next((thing for thing in things if not isinstance(thing, Thing)), None)
        if bad is None:
            return tuple(things)
        things = bad
    name = things.__name__ if isinstance(things, type) else repr(things)
    raise TypeError(
        f"see: came {name}, wanted Weights(), Entropy(), Received(), Top(k), Map(), Tile(rows, keys), LogSumExp() or "
        f"LogProbability(), one or a list. Remedy: see=[regard.Entropy(), regard.Top(8)]."
    )


def combine(thing: Thing, parts: Sequence[Parts]) -> Parts:
    """The parts of several blocks of rows, in order, as one."""
    columns = tuple(zip(*parts, strict=True))
    if thing.merge == "sum":
        return tuple(reduce(torch.add, column) for column in columns)
    return tuple(torch.cat(column, thing.dimension) if len(column) > 1 else column[0] for column in columns)
