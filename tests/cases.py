"""Random cases: a score, a normaliser, a mask, a bias, sizes, heads, a type and magnitudes, all from one number.

`draw(seed)` gives the same case on every machine. `Kinds` says what to draw from, so that a law names the cases it
holds for. Nothing here computes attention: `Case.attend` asks regard, and `tests/plain.py` reads the same data.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

import regard
from regard.core.see import Thing
from regard.core.seen import Seen
from regard.kernels.route import RefusedError
from tests import parts
from tests.parts import Part

Option = TypeVar("Option")

SIZES = (0, 1, 2, 3, 5, 7, 11, 13)
LONG = (17, 31, 67, 131, 257)
BATCHES = ((), (), (1,), (2,), (3,), (2, 3), (3, 2), (2, 1, 3), (0,))
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
ORDERS = (1.0, 1 + 1e-7, 1.001, 1.05, 1.25, 4 / 3, 1.5, 1.75, 2.0, 2.5, 3.0, 5.0, 20.0, 100.0)
ROADS = ("definition", "tiled", "fused", "auto")

SMOOTH = (
    "softmax",
    "softmax at a temperature",
    "softmax at a learned temperature",
    "gumbel",
    "edited",
    "own",
)
SPARSE = ("sparsemax", "entmax", "entmax of a learned order")
HARD = ("hard", "hard, drawn", "hard, straight through", "gumbel, straight through")
DRAWN = ("hard, drawn", "hard, straight through", "gumbel", "gumbel, straight through")
SOFTMAX = ("softmax", "softmax at a temperature", "softmax at a learned temperature")


@dataclass(frozen=True)
class Kinds:
    """What cases are drawn from; `wild` is the share whose magnitudes are log-uniform from 1e-3 to 1e4."""

    scores: tuple[str, ...] = tuple(parts.SCORES)
    normalisers: tuple[str, ...] = tuple(parts.NORMALISERS)
    masks: tuple[str, ...] = ("none", *parts.MASKS)
    biases: tuple[str, ...] = ("none", *parts.BIASES)
    dtypes: tuple[torch.dtype, ...] = DTYPES
    batches: tuple[tuple[int, ...], ...] = BATCHES
    queries: tuple[int, ...] = SIZES
    keys: tuple[int, ...] = SIZES
    orders: tuple[float, ...] = ORDERS
    grouped: tuple[bool, ...] = (False, False, True)
    wild: float = 0.2
    dropout: float = 0.0
    long: float = 0.03  # the share with a size of LONG among the queries, and among the keys
    square: bool = False  # as many keys as queries


ANY = Kinds()


def without(names: Sequence[str], *left_out: str) -> tuple[str, ...]:
    return tuple(name for name in names if name not in left_out)


@dataclass(frozen=True, eq=False)
class Case:
    """One call of attention, as data."""

    seed: int
    query: Tensor | None
    key: Tensor
    value: Tensor
    score: Part
    normalise: Part
    mask: Part | None
    bias: Part | None
    dropout: float
    grouped: bool
    batch: tuple[int, ...]
    queries: int
    keys: int

    @property
    def dtype(self) -> torch.dtype:
        return self.key.dtype

    @property
    def draws(self) -> bool:
        """Whether chance has a part in it."""
        return self.dropout > 0 or self.normalise.name in DRAWN

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the scores."""
        return (*self.batch, self.queries, self.keys)

    def leaves(self) -> dict[str, Tensor]:
        """Every tensor that has a gradient, by name."""
        tensors = {"query": self.query, "key": self.key, "value": self.value}
        found = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        for name in ("score", "normalise", "mask", "bias"):
            part = getattr(self, name)
            if part is not None:
                found.update(part.leaves(name))
        return found

    def with_leaves(self, leaves: dict[str, Tensor]) -> Case:
        """The same case with other tensors of those names."""
        changed = {
            name: part.with_leaves(name, leaves)
            for name in ("score", "normalise", "mask", "bias")
            if (part := getattr(self, name)) is not None
        }
        return replace(self, query=leaves.get("query"), key=leaves["key"], value=leaves["value"], **changed)

    def changed(self, change: Callable[[Tensor], Tensor]) -> Case:
        """The same case with every leaf changed."""
        return self.with_leaves({name: change(tensor) for name, tensor in self.leaves().items()})

    def to(self, to: torch.dtype | torch.device | str) -> Case:
        """The same case in another type, or on another device (the masks too)."""
        if isinstance(to, torch.dtype):
            return self.changed(lambda tensor: tensor.to(to))
        moved = {
            name: part.mapped(lambda tensor: tensor.to(to))
            for name in ("score", "normalise", "mask", "bias")
            if (part := getattr(self, name)) is not None
        }
        query = None if self.query is None else self.query.to(to)
        return replace(self, query=query, key=self.key.to(to), value=self.value.to(to), **moved)

    def learning(self) -> Case:
        """The same case with leaves that want a gradient."""
        return self.changed(lambda tensor: tensor.detach().clone().requires_grad_())

    def arguments(self) -> dict[str, object]:
        """What regard gets, after query, key and value, on the roads and in `weigh`."""
        return {
            "score": parts.SCORES[self.score.name](self.score),
            "normalise": parts.NORMALISERS[self.normalise.name](self.normalise),
            "mask": None if self.mask is None else parts.MASKS[self.mask.name](self.mask),
            "bias": None if self.bias is None else parts.BIASES[self.bias.name](self.bias),
            "grouped": self.grouped,
        }

    def generator(self) -> torch.Generator:
        """Where this case's random numbers start; a fresh one for every call."""
        return torch.Generator().manual_seed(self.seed)

    def attend(self, road: str, see: Thing | list[Thing] | None = None) -> Tensor | tuple[Tensor, Seen]:
        return regard.attend(
            self.query,
            self.key,
            self.value,
            **self.arguments(),
            dropout=self.dropout,
            generator=self.generator() if self.draws else None,
            see=see,
            backend=road,
        )

    def look(self, road: str, see: Thing | list[Thing]) -> Seen:
        return self.attend(road, see)[1]

    def weights(self) -> Tensor:
        """All of them, by the definition, over the batch of the values too."""
        return self.look("definition", regard.Weights()).weights

    def serves(self, road: str, see: Thing | list[Thing] | None = None) -> bool:
        """Whether a road takes this case."""
        try:
            regard.route(
                self.query, self.key, self.value, **self.arguments(), dropout=self.dropout, see=see, backend=road
            )
        except RefusedError:
            return False
        return True

    def __repr__(self) -> str:
        tensors = {"query": self.query, "key": self.key, "value": self.value}
        sizes = ", ".join(f"{name} {list(t.shape)}" for name, t in tensors.items() if t is not None)
        more = [repr(part) for part in (self.score, self.normalise, self.mask, self.bias) if part is not None]
        grouped = ", grouped" * self.grouped
        dropout = f", dropout {self.dropout}" if self.dropout else ""
        name = str(self.dtype).removeprefix("torch.")
        return f"case {self.seed}: {name} {sizes}{grouped}{dropout}; {'; '.join(more)}"


class Draw:
    """Choices and tensors from one seed."""

    def __init__(self, seed: int, kinds: Kinds) -> None:
        self.chance = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.kinds = kinds
        self.wild = self.chance.random() < kinds.wild
        self.dtype = self.chance.choice(kinds.dtypes)
        self.grouped = self.chance.choice(kinds.grouped)
        self.groups = self.chance.choice((1, 2, 3)) if self.grouped else 1
        self.batch = self.chance.choice(kinds.batches)
        if self.grouped:
            self.batch = (*self.batch[:-1], self.chance.choice((1, 2, 3)) * self.groups)
        self.queries = self.length(kinds.queries)
        self.keys = self.queries if kinds.square else self.length(kinds.keys)

    def length(self, sizes: tuple[int, ...]) -> int:
        return self.chance.choice(LONG if self.chance.random() < self.kinds.long else sizes)

    def choose(self, options: Sequence[Option]) -> Option:
        return self.chance.choice(options)

    def width(self) -> int:
        return self.choose((2, 3, 5, 7, 11, 1)) if self.chance.random() < 0.99 else 0

    def magnitude(self) -> float:
        """About one; log-uniform from 1e-3 to 1e4 in wild cases."""
        return 10 ** self.chance.uniform(-3, 4) if self.wild else self.choose((0.3, 1.0, 3.0))

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        """A leaf: normal numbers, rounded to the case's type."""
        most = 6e4  # of float16
        numbers = torch.randn(shape, generator=self.generator, dtype=torch.float64) * scale
        return numbers.clamp_(-most, most).to(self.dtype)

    def positive(self, *shape: int) -> Tensor:
        return torch.exp(0.5 * torch.randn(shape, generator=self.generator, dtype=torch.float64)).to(self.dtype)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=self.generator)

    def booleans(self, *shape: int) -> Tensor:
        share = self.choose((0.1, 0.5, 0.9))
        return torch.rand(shape, generator=self.generator) < share

    def lead(self, *, key_heads: bool = False) -> tuple[int, ...]:
        """Leading dimensions of a parameter: none, the heads, or the whole batch."""
        batch = self.key_batch if key_heads else self.batch
        return batch[self.choose((len(batch), len(batch), max(len(batch) - 1, 0), 0)) :]

    @property
    def key_batch(self) -> tuple[int, ...]:
        """The batch with the heads of the keys."""
        return (*self.batch[:-1], self.batch[-1] // self.groups) if self.grouped else self.batch

    def broadcast(self, batch: tuple[int, ...]) -> tuple[int, ...]:
        """Leading dimensions that broadcast to these; the heads stay where they are grouped."""
        lead, heads = (batch[:-1], batch[-1:]) if self.grouped else (batch, ())
        if self.chance.random() < 0.7 or not lead:
            return batch
        if self.chance.random() < 0.5:
            return (*lead[self.chance.randrange(1, len(lead) + 1) :], *heads)
        return (*(1 if self.chance.random() < 0.5 else size for size in lead), *heads)

    def align(self) -> str:
        return self.choose(("end", "start"))


def score(draw: Draw, name: str, query_width: int, key_width: int) -> Part:
    """A score for queries and keys as wide as this."""
    options: dict[str, object] = {}
    tensors: dict[str, Tensor] = {}
    width = draw.choose((1, 2, 3, 5, 7, 11))
    if name in ("dot times a number", "cosine"):
        options["scale"] = draw.choose((0.25, 1.0, 3.0, -0.7))
    elif name in ("learned scale", "cosine with a learned scale"):
        tensors["scale"] = draw.normal(*draw.lead(), scale=draw.choose((1.0, 3.0)))
    elif name == "bilinear":
        tensors["weight"] = draw.normal(*draw.lead(), query_width, key_width)
    elif name in ("additive", "additive with terms"):
        tensors["weight"] = draw.normal(*draw.lead(), width, scale=draw.magnitude())
        tensors["query_weight"] = draw.normal(*draw.lead(), width, query_width)
        tensors["key_weight"] = draw.normal(*draw.lead(key_heads=True), width, key_width)
        if name == "additive":
            tensors["bias"] = draw.normal(*draw.lead(), width)
        else:
            tensors["query_term"] = draw.normal(draw.queries, width)
            tensors["key_term"] = draw.normal(draw.keys, width)
    elif name == "additive of sides":
        tensors["weight"] = draw.normal(*draw.lead(), key_width, scale=draw.magnitude())
    elif name == "concatenated":
        options["query_width"] = query_width
        tensors["weight"] = draw.normal(width, scale=draw.magnitude())
        tensors["matrix"] = draw.normal(width, query_width + key_width)
        tensors["bias"] = draw.normal(width)
    elif name == "squared distance":
        options["scale"] = draw.choose((0.25, 1.0))
    elif name == "soft dictionary":
        options |= {"power": draw.choose((0.5, 1.0, 2.0)), "epsilon": draw.choose((1e-3, 0.1, 1.0))}
    elif name == "importance":
        tensors["vector"] = draw.normal(width, scale=draw.magnitude())
        tensors["weight"] = draw.normal(width, key_width)
        tensors["bias"] = draw.normal(*draw.lead(key_heads=True), width)
    elif name == "importance of several":
        tensors["vector"] = draw.normal(*draw.batch, draw.queries, key_width, scale=draw.magnitude())
    elif name == "location":
        tensors["weight"] = draw.normal(*draw.lead(key_heads=True), draw.keys + draw.choose((0, 2)), query_width)
    return Part(name, options, tensors)


def normaliser(draw: Draw, name: str, batch: tuple[int, ...]) -> Part:
    options: dict[str, object] = {}
    tensors: dict[str, Tensor] = {}
    if name in ("softmax at a temperature", "gumbel", "gumbel, straight through"):
        options["temperature"] = draw.choose((0.1, 0.5, 2.0, 10.0))
    elif name == "softmax at a learned temperature":
        tensors["temperature"] = draw.positive(*batch_lead(draw, batch))
    elif name == "entmax":
        options["alpha"] = draw.choose(draw.kinds.orders)
    elif name == "entmax of a learned order":
        tensors["alpha"] = 1 + 0.5 * draw.positive(*batch_lead(draw, batch))
    elif name == "given":
        rows = draw.choose((1, draw.queries))
        tensors["weights"] = draw.positive(*batch_lead(draw, batch), rows, draw.keys) / max(draw.keys, 1)
    return Part(name, options, tensors)


def batch_lead(draw: Draw, batch: tuple[int, ...]) -> tuple[int, ...]:
    return batch[draw.choose((len(batch), max(len(batch) - 1, 0), 0)) :]


def mask(draw: Draw, name: str, shape: tuple[int, ...], depth: int = 0) -> Part | None:
    """A mask for scores of this shape; combinations are at most three deep."""
    *batch, queries, keys = shape
    if name in ("both", "either", "not"):
        names = [n for n in parts.MASKS if depth < 2 or n not in ("both", "either", "not")]
        count = 1 if name == "not" else 2
        inner = [mask(draw, draw.choose(names), shape, depth + 1) for _ in range(count)]
        return Part(name, parts=tuple(part for part in inner if part is not None))
    options: dict[str, object] = {}
    fixed: dict[str, Tensor] = {}
    first = tuple(batch[: draw.choose((0, 1, len(batch)))])
    if name == "none":
        return None
    if name in ("causal", "window"):
        options["align"] = draw.align()
    if name == "window":
        options |= {"left": draw.choose((0, 1, 2, 5)), "right": draw.choose((0, 1, 3))}
    elif name == "prefix":
        options["length"] = draw.choose((0, 1, 2, keys, keys + 1))
    elif name == "lengths":
        given = draw.choose((("keys",), ("queries",), ("keys", "queries")))
        for what, most in (("keys", keys), ("queries", queries)):
            if what in given:
                fixed[what] = draw.integers(0, most + 1, *first)
    elif name == "documents":
        fixed["keys"] = draw.integers(0, 3, *first, keys).sort(-1).values
        if queries != keys or draw.choose((True, False)):
            fixed["queries"] = draw.integers(0, 3, *first, queries)
    elif name == "tensor":
        down, across = draw.choose((queries, queries, 1)), draw.choose((keys, keys, keys, 1))
        fixed["seen"] = draw.booleans(*batch_lead(draw, tuple(batch)), down, across)
    return Part(name, options, {}, fixed)


def bias(draw: Draw, name: str, shape: tuple[int, ...]) -> Part | None:
    """A bias for scores of this shape."""
    *batch, queries, keys = shape
    if name == "none":
        return None
    if name == "sum":
        two = [bias(draw, draw.choose(without(tuple(parts.BIASES), "sum")), shape) for _ in range(2)]
        return Part(name, parts=tuple(part for part in two if part is not None))
    options: dict[str, object] = {}
    tensors: dict[str, Tensor] = {}
    fixed: dict[str, Tensor] = {}
    heads = tuple(batch[-1:]) if draw.choose((True, False)) else ()
    scale = draw.magnitude()
    if name in ("tensor", "tensor with holes"):
        down, across = draw.choose((queries, queries, 1)), draw.choose((keys, keys, keys, 1))
        if across == 1:  # the same for all keys of a row: a large one would only drown the scores
            scale = min(scale, 3.0)
        tensors["bias"] = draw.normal(*batch_lead(draw, tuple(batch)), down, across, scale=scale)
        if name == "tensor with holes":
            fixed["holes"] = draw.booleans(*tensors["bias"].shape)
    elif name == "rule":
        tensors["amplitude"] = draw.normal(*heads, scale=min(scale, 3.0))  # it repeats itself, as above
    else:
        options["align"] = draw.align()
        if name == "relative":
            tensors["table"] = draw.normal(*heads, 2 * draw.choose((0, 1, 3, 8)) + 1, scale=scale)
        elif name == "alibi":
            tensors["slopes"] = draw.positive(*heads)
        else:
            options |= {"bidirectional": draw.choose((True, False)), "farthest": draw.choose((20, 128))}
            tensors["table"] = draw.normal(*heads, draw.choose((4, 8, 32)), scale=scale)
    return Part(name, options, tensors, fixed)


def draw(seed: int, kinds: Kinds = ANY) -> Case:
    """The case of this number."""
    made = Draw(seed, kinds)
    score_name = made.choose(kinds.scores)
    if score_name == "importance":
        made.queries = 1
        made.grouped, made.groups = False, 1
    key_width = made.width()
    apart = score_name in ("bilinear", "additive", "additive with terms", "concatenated", "location")
    query_width = made.width() if apart else key_width
    if score_name == "concatenated":
        query_width, key_width = max(query_width, 1), max(key_width, 1)
    query = made.normal(*made.broadcast(made.batch), made.queries, query_width, scale=made.magnitude())
    key = made.normal(*made.broadcast(made.key_batch), made.keys, key_width, scale=made.magnitude())
    value = made.normal(*made.broadcast(made.key_batch), made.keys, made.width(), scale=made.magnitude())
    how = score(made, score_name, query_width, key_width)
    asks = not score_name.startswith("importance")
    batch = whole_batch(made, query if asks else None, key, value, how)
    shape = (*batch, made.queries, made.keys)
    return Case(
        seed,
        query if asks else None,
        key,
        value,
        how,
        normaliser(made, made.choose(kinds.normalisers), batch),
        mask(made, made.choose(kinds.masks), shape),
        bias(made, made.choose(kinds.biases), shape),
        made.choose((0.1, 0.5, 0.9)) if made.chance.random() < kinds.dropout else 0.0,
        made.grouped,
        batch,
        made.queries,
        made.keys,
    )


OWN = {"weight": 1, "query_weight": 2, "key_weight": 2, "matrix": 2, "bias": 1, "vector": 2, "scale": 0}


def whole_batch(made: Draw, query: Tensor | None, key: Tensor, value: Tensor, how: Part) -> tuple[int, ...]:
    """What the leading dimensions of everything broadcast to, heads of queries last where they are grouped."""
    own = OWN | ({"weight": 2} if how.name in ("bilinear", "location", "importance") else {})
    leads = [(name, tensor.shape[: max(tensor.dim() - own.get(name, 2), 0)]) for name, tensor in how.tensors.items()]
    leads += [(name, t.shape[:-2]) for name, t in (("query", query), ("key", key), ("value", value)) if t is not None]
    if not made.grouped:
        return tuple(torch.broadcast_shapes(*(lead for _, lead in leads)))
    return (*torch.broadcast_shapes(*(lead[:-1] for _, lead in leads)), made.batch[-1])
