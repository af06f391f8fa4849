"""Laws of tensors: layout, shapes, types, meta tensors, autocast, torch.func and torch.compile."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

import regard
from tests.cases import Case
from tests.held import Results, agree, everywhere, hold, looked, numbers, statistics


def layout_does_not_matter(case: Case, road: str) -> None:
    """Tensors that are transposed, strided or expanded in memory give what contiguous ones give."""

    def scattered(tensor: Tensor) -> Tensor:
        if tensor.dim() < 2:
            return torch.stack([tensor, tensor + 1], -1)[..., 0]
        padded = torch.zeros(*tensor.shape[:-2], tensor.shape[-1] * 2, tensor.shape[-2] + 1, dtype=tensor.dtype)
        padded[..., ::2, 1:] = tensor.mT
        return padded[..., ::2, 1:].mT

    things = statistics() if case.serves(road, statistics()) else []
    agree(case, looked(case.changed(scattered), road, things), lambda c: looked(c, road, things), "another layout")


def results_have_the_shape_and_type_of_the_call(case: Case, road: str) -> None:
    """The context has the values' type and width and the queries' length; what is seen is float32 or wider."""
    *batch, queries, keys = case.shape
    context = case.attend(road)
    wanted = (*batch, queries, case.value.shape[-1])
    hold(context.shape == wanted, f"the context is {list(context.shape)}, wanted {list(wanted)}")
    hold(context.dtype == case.dtype, f"the context is {context.dtype}, wanted {case.dtype}")
    if not case.serves(road, statistics()):
        return
    seen = case.look(road, [*statistics(), regard.Top(2)])
    shapes = {"weights": (queries, keys), "entropy": (queries,), "received": (keys,), "logsumexp": (queries,)}
    wide = torch.promote_types(case.dtype, torch.float32)
    for name, shape in shapes.items():
        value = getattr(seen, name)
        hold(value.shape == (*batch, *shape), f"{name} is {list(value.shape)}, wanted {[*batch, *shape]}")
        hold(value.dtype == wide, f"{name} is {value.dtype}, wanted {wide}")
    hold(seen.top.indices.shape == (*batch, queries, 2), f"top 2 is {list(seen.top.indices.shape)}")
    hold(seen.top.indices.dtype == torch.int64, f"indices are {seen.top.indices.dtype}")


def meta_tensors_give_the_shapes(case: Case, road: str) -> None:
    """A call on the meta device gives the shapes and types of the same call on a real one."""
    things = statistics() if case.serves(road, statistics()) else []
    real, empty = looked(case, road, things), looked(case.to("meta"), road, things)
    for name, tensor in real.items():
        other = empty[name]
        hold(other.is_meta, f"{name} is on {other.device}, wanted meta")
        hold(other.shape == tensor.shape, f"{name} is {list(other.shape)} on meta, and {list(tensor.shape)}")
        hold(other.dtype == tensor.dtype, f"{name} is {other.dtype} on meta, and {tensor.dtype}")


def autocast_is_casting_by_hand(case: Case, road: str) -> None:
    """Under autocast, a call does what it does with queries, keys and values in the half type."""
    half = torch.bfloat16
    with torch.autocast("cpu", half):
        found = case.attend(road)
    query = None if case.query is None else case.query.to(half)
    by_hand = replace(case, query=query, key=case.key.to(half), value=case.value.to(half)).attend(road)
    hold(found.dtype == half, f"the context is {found.dtype} under autocast")
    everywhere((found == by_hand) | found.isnan(), "autocast is casting by hand", found, by_hand)


def vmap_is_a_batch(case: Case, road: str) -> None:
    """torch.func.vmap over a call is the call over one more batch dimension."""
    names = [name for name in ("query", "key", "value") if name in case.leaves()]
    more = [case.leaves()[name] for name in names]
    stacked = [torch.stack([tensor, tensor.flip(-2), tensor * 0.5]) for tensor in more]

    def one(*tensors: Tensor) -> Tensor:
        return case.with_leaves(case.leaves() | dict(zip(names, tensors, strict=True))).attend(road)

    def each(other: Case) -> Results:
        leaves = other.leaves()
        three = [leaves, {n: leaves[n].flip(-2) for n in names}, {n: leaves[n] * 0.5 for n in names}]
        return {"context": torch.stack([other.with_leaves(leaves | new).attend(road) for new in three])}

    agree(case, {"context": torch.func.vmap(one)(*stacked)}, each, "vmap")


def the_gradient_transform_is_backward(case: Case, road: str) -> None:
    """torch.func.grad of a call is what backward gives."""
    push = torch.randn((*case.shape[:-1], case.value.shape[-1]), generator=numbers(case, 11), dtype=torch.float64)

    def loss(leaves: dict[str, Tensor]) -> Tensor:
        return (case.with_leaves(leaves).attend(road) * push.to(case.dtype)).sum()

    found = torch.func.grad(loss)(case.leaves())

    def backward(other: Case) -> Results:
        learning = other.learning()
        (learning.attend(road) * push.to(other.dtype)).sum().backward()
        return {n: torch.zeros_like(t) if t.grad is None else t.grad for n, t in learning.leaves().items()}

    agree(case, found, backward, "torch.func.grad")


def compiled_is_as_written(case: Case, road: str) -> None:
    """A call under torch.compile, in one graph, gives what it gives without."""
    torch.compiler.reset()
    leaves, mask = case.leaves(), case.arguments()["mask"]  # made outside: torch.compile does not know ~ of an object
    things = [regard.Entropy(), regard.Weights()]
    things = things if case.serves(road, things) else []

    def call(tensors: dict[str, Tensor]) -> Tensor | tuple[Tensor, regard.Seen]:
        other = replace(case, mask=None).with_leaves(tensors)
        arguments = other.arguments() | {"mask": mask}
        return regard.attend(other.query, other.key, other.value, **arguments, see=things or None, backend=road)

    def results(answer: Tensor | tuple[Tensor, regard.Seen]) -> Results:
        if isinstance(answer, Tensor):
            return {"context": answer}
        return {"context": answer[0], "entropy": answer[1].entropy, "weights": answer[1].weights}

    compiled = torch.compile(call, fullgraph=True, backend="eager")
    agree(case, results(compiled(leaves)), lambda c: results(call(c.leaves())), "compiled")
