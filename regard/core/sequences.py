"""Masks of sequences: lengths in a padded batch, documents packed into one row.

Both line up with the leading batch dimensions and refuse anything else: lengths that broadcast from the right would
fall onto the heads without a word whenever there are as many heads as sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.masks import Block, Mask, positions
from regard.core.shapes import describe


def along_batch(name: str, tensor: Tensor, own: int, shape: torch.Size) -> Tensor:
    """A tensor [*first batch dims, ...own] spread over [*batch ...own], or an error: lengths never fall onto heads."""
    lead, batch = tensor.shape[: tensor.dim() - own], shape[:-2]
    fits = len(lead) <= len(batch) and all(have in (1, want) for have, want in zip(lead, batch, strict=False))
    if not fits:
        raise ValueError(
            f"{name}: came {describe(tensor)} for scores {list(shape)}; wanted its dimensions to be the first ones of "
            f"the batch {list(batch)}. Remedy: one entry for every sequence, in the order of the leading dimensions."
        )
    return tensor.reshape((*lead, *(1,) * (len(batch) - len(lead)), *tensor.shape[tensor.dim() - own :]))


@dataclass(frozen=True, eq=False)
class Lengths(Mask):
    """Sequences of different lengths in one batch: padding is neither looked at nor looking."""

    keys: Tensor | None
    queries: Tensor | None

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        seen: Tensor | bool = True
        if self.keys is not None:
            count = along_batch("keys", self.keys.to(device), 0, shape)
            seen = positions(columns, device) < count[..., None, None]
        if self.queries is not None:
            count = along_batch("queries", self.queries.to(device), 0, shape)
            seen = seen & (positions(rows, device)[:, None] < count[..., None, None])
        return seen

    def span(self, rows: Block, shape: torch.Size) -> Block:
        return range(shape[-1])

    def __repr__(self) -> str:
        given = (("keys", self.keys), ("queries", self.queries))
        return f"lengths({', '.join(f'{name}={tensor.tolist()}' for name, tensor in given if tensor is not None)})"


def lengths(keys: Tensor | None = None, queries: Tensor | None = None) -> Lengths:
    """How many keys (and queries) of each sequence are real: integer tensors over the leading batch dimensions."""
    for name, tensor in (("keys", keys), ("queries", queries)):
        if tensor is not None and (not isinstance(tensor, Tensor) or tensor.is_floating_point() or tensor.is_complex()):
            raise TypeError(
                f"{name}: came {describe(tensor)}, wanted an integer tensor of lengths. "
                f"Remedy: torch.tensor([7, 5, 3]), or (~padding).sum(-1) from a padding mask."
            )
        if tensor is not None and tensor.dtype == torch.bool:
            raise TypeError(
                f"{name}: came {describe(tensor)}, a mask; wanted lengths. PyTorch's key_padding_mask is True for "
                f"padding, the opposite of a mask here. Remedy: lengths((~padding).sum(-1)), or "
                f"mask=~padding[:, None, :]."
            )
    return Lengths(keys, queries)


@dataclass(frozen=True, eq=False)
class Documents(Mask):
    """Several documents packed into one row: each sees itself."""

    keys: Tensor
    queries: Tensor

    def tile(self, rows: Block, columns: Block, shape: torch.Size, device: torch.device) -> Tensor | bool:
        keys = along_batch("keys", self.keys.to(device), 1, shape)
        queries = along_batch("queries", self.queries.to(device), 1, shape)
        for name, ids, count in (("keys", keys, shape[-1]), ("queries", queries, shape[-2])):
            if ids.shape[-1] != count:
                raise ValueError(
                    f"{name}: came {ids.shape[-1]} document ids for {count} {name}; wanted one each. "
                    f"Remedy: documents(keys=…, queries=…) when they differ in number."
                )
        return queries[..., rows.start : rows.stop, None] == keys[..., None, columns.start : columns.stop]

    def span(self, rows: Block, shape: torch.Size) -> Block:
        return range(shape[-1])

    def __repr__(self) -> str:
        same = self.keys is self.queries
        return f"documents({describe(self.keys)}{'' if same else ', queries=' + describe(self.queries)})"


def documents(keys: Tensor, queries: Tensor | None = None) -> Documents:
    """The document of every key (and query), integers [*batch, length]; a query sees its own document."""
    for name, tensor in (("keys", keys), ("queries", queries)):
        if tensor is None and name == "queries":
            continue
        if not isinstance(tensor, Tensor) or tensor.is_floating_point() or tensor.dim() < 1:
            raise TypeError(
                f"{name}: came {describe(tensor)}, wanted integer document ids [..., length]. "
                f"Remedy: torch.tensor([0, 0, 0, 1, 1])."
            )
    return Documents(keys, keys if queries is None else queries)
