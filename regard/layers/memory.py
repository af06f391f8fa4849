"""The soft dictionary: keys and values are written once and looked up softly, the nearer the key the more of its value.

A memory is an immutable value: `write` gives a new one. What it learns, if anything, are the projections and the score
of the attention layer that looks things up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NoReturn

import torch
from torch import Tensor

from regard.core.biases import Bias
from regard.core.distances import soft_dictionary
from regard.core.masks import Mask
from regard.core.see import Thing
from regard.core.seen import Seen
from regard.core.shapes import check_inputs, check_tensor, describe
from regard.layers.attention import Attention, Remembered


def by_nearness() -> Attention:
    """Weights in proportion to one over the distance, nothing projected."""
    return Attention(soft_dictionary())


@dataclass(frozen=True, eq=False)
class Memory:
    """A dictionary whose keys need not be met exactly.

        memory = Memory().write(keys, values)       # [*batch, n, width], [*batch, n, value width]
        memory[query]                               # [*batch, q, width] -> [*batch, q, value width]

    `layer` says how: by default by the inverse distance; any `Attention` stands in its place, with any score and with
    projections. Keys and values are projected once, when they are written. One key is a vector [width], and so is one
    query. Writing appends: a key that is written twice counts twice.
    """

    layer: Attention = field(default_factory=by_nearness)
    written: tuple[Tensor, Tensor] | None = None  # as they came
    projected: Remembered | None = None  # as they are looked up

    def write(self, keys: Tensor, values: Tensor) -> Memory:
        """A memory with these entries after those of this one."""
        check_tensor("keys", keys, 1)
        check_tensor("values", values, 1)
        if keys.dim() == 1 and values.dim() == 1:
            keys, values = keys[None], values[None]
        check_inputs(None, keys, values)
        new = (keys, values)
        if self.written is not None:
            new = (torch.cat([self.written[0], keys], -2), torch.cat([self.written[1], values], -2))
        return replace(self, written=new, projected=self.layer.remember(keys, values, after=self.projected))

    def look(
        self,
        query: Tensor,
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        see: Thing | list[Thing] | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor | tuple[Tensor, Seen]:
        """What `memory[query]` is, with all that a look can be asked."""
        if self.projected is None:
            raise LookupError("memory: nothing is written yet. Remedy: memory = memory.write(keys, values).")
        check_tensor("query", query, 1)
        queries = query[None] if query.dim() == 1 else query
        answer = self.layer(queries, self.projected, mask=mask, bias=bias, see=see, generator=generator)
        if query.dim() > 1:
            return answer  # type: ignore[no-any-return]  # a module's call has no type
        return (answer[0].squeeze(-2), answer[1]) if isinstance(answer, tuple) else answer.squeeze(-2)

    def __getitem__(self, query: Tensor) -> Tensor:
        answer = self.look(query)
        return answer[0] if isinstance(answer, tuple) else answer

    def __setitem__(self, key: Tensor, value: Tensor) -> NoReturn:
        raise TypeError(
            "memory: it is never changed. Remedy: memory = memory.write(key, value), which gives a new one."
        )

    def __len__(self) -> int:
        return 0 if self.projected is None else len(self.projected)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        """Whether this very key is written, [width] or [*batch, width]: softly, every key is in every memory."""
        if not isinstance(key, Tensor):
            raise TypeError(f"key: came {describe(key)}, wanted a tensor [width]. Remedy: torch.as_tensor(key).")
        if self.written is None:
            return False
        return bool((self.written[0] == key[..., None, :]).all(-1).any(-1).all())

    def keys(self) -> tuple[Tensor, ...]:
        """The keys as they were written, each [*batch, width]."""
        return () if self.written is None else self.written[0].unbind(-2)

    def values(self) -> tuple[Tensor, ...]:
        """The values as they were written, each [*batch, value width]."""
        return () if self.written is None else self.written[1].unbind(-2)

    def items(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Each key with its value."""
        return tuple(zip(self.keys(), self.values(), strict=True))

    def __repr__(self) -> str:
        return f"Memory({len(self)} written, {self.layer.extra_repr()})"
