"""Shapes and sentences: what is checked before anything is computed, and how an error reads.

Every error says the argument, what came, what was wanted and the remedy, with the caller's own shapes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from types import FunctionType

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def wide(tensor: Tensor) -> Tensor:
    """The tensor in the type that scores are computed in: float32, or float64 where that came in."""
    return tensor.float() if tensor.dtype in HALF else tensor


def may_look(tensor: Tensor) -> bool:
    """Whether a decision may depend on the numbers: on a CPU, outside graphs, transforms and meta tensors."""
    return (
        tensor.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and not isinstance(tensor, torch._subclasses.FakeTensor)
    )


def describe(tensor: object) -> str:
    """`float32[2, 5, 7]` for a tensor, its type for anything else but None."""
    if not isinstance(tensor, Tensor):
        return "None" if tensor is None else type(tensor).__name__
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def nearest(name: str, options: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest known one, and all of them."""
    known = sorted(options)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} Known: {', '.join(known)}."


def broadcast(name: str, shapes: Sequence[tuple[str, torch.Size]]) -> torch.Size:
    """The shape that all of them broadcast to, or an error that lists them by name."""
    whole: list[int] = []  # from the right
    for _, shape in shapes:
        for place, size in enumerate(reversed(shape)):
            if place == len(whole):
                whole.append(size)
            elif whole[place] == 1:
                whole[place] = size
            elif size not in (1, whole[place]):
                listed = ", ".join(f"{who} {list(each)}" for who, each in shapes)
                raise ValueError(
                    f"{name}: these leading dimensions do not broadcast: {listed}. Wanted: equal sizes, or 1, from the "
                    f"right. Remedy: unsqueeze a dimension where one is missing; heads that share keys need "
                    f"grouped=True."
                )
    return torch.Size(reversed(whole))


def fits(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether a tensor of this shape broadcasts to the whole, adding nothing to it."""
    sizes = zip(reversed(shape), reversed(whole), strict=False)
    return len(shape) <= len(whole) and all(have in (1, want) for have, want in sizes)


def check_part(name: str, part: Tensor, own: Sequence[int], of: str, tensor: Tensor) -> None:
    """A parameter [*batch, own sizes] whose batch broadcasts with the tensor's; an own size may be one."""
    lead, sizes = part.shape[: part.dim() - len(own)], part.shape[max(part.dim() - len(own), 0) :]
    batch = tensor.shape[:-2]
    together = all(1 in pair or pair[0] == pair[1] for pair in zip(reversed(lead), reversed(batch), strict=False))
    if not (together and len(sizes) == len(own) and fits(sizes, own)):
        raise ValueError(
            f"{name}: came {describe(part)} for {of} {describe(tensor)}; wanted "
            f"[{', '.join(['*batch', *map(str, own)])}] with a batch that broadcasts with {list(batch)}. Remedy: "
            f"unsqueeze a dimension where one is missing."
        )


def check_device(name: str, tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor that goes with the keys is where they are."""
    if tensor.device != device:
        raise ValueError(
            f"{name}: it holds {describe(tensor)} on {tensor.device} but key is on {device}; wanted one device. "
            f"Remedy: move it to key.device."
        )
    return tensor


def check_called(name: str, value: object) -> None:
    """One of our own functions, where what it makes is wanted."""
    if isinstance(value, FunctionType) and (value.__module__ or "").split(".")[0] == "regard":
        raise TypeError(
            f"{name}: came the function {value.__name__} itself; wanted what it makes. "
            f"Remedy: call it: {name}=regard.{value.__name__}(…)."
        )


def check_tensor(name: str, tensor: object, least: int) -> Tensor:
    """A floating-point tensor of at least so many dimensions."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: came {describe(tensor)}, wanted a torch.Tensor. Remedy: torch.as_tensor({name}).")
    if not tensor.is_floating_point():
        raise TypeError(
            f"{name}: came {describe(tensor)}, wanted a floating-point tensor. Remedy: {name}.float(), or embed it."
        )
    if tensor.dim() < least:
        wanted = "[..., length, width]" if least == 2 else "[..., width]"
        raise ValueError(f"{name}: came {describe(tensor)}, wanted {wanted}. Remedy: add the missing dimension.")
    return tensor


def check_inputs(query: Tensor | None, key: Tensor, value: Tensor | None) -> None:
    """Types, devices and lengths of what attention takes."""
    check_tensor("key", key, 2)
    for name, tensor in (("query", query), ("value", value)):
        if tensor is None:
            continue
        check_tensor(name, tensor, 2)
        if tensor.dtype != key.dtype:
            raise TypeError(
                f"{name}: its type is {describe(tensor)} but key is {describe(key)}; wanted one type. "
                f"Remedy: {name}.to(key.dtype), or torch.autocast around the model."
            )
        if tensor.device != key.device:
            raise ValueError(
                f"{name}: it is on {tensor.device} but key is on {key.device}; wanted one device. "
                f"Remedy: {name}.to(key.device)."
            )
    if value is not None and value.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"value: came {describe(value)} for key {describe(key)}; wanted as many values as keys "
            f"({key.shape[-2]} in dimension -2). Remedy: pass the value of each key, in the keys' order."
        )


def check_width(name: str, tensor: Tensor, width: int, because: str) -> None:
    """The last dimension is what a parameter or the other side expects."""
    if tensor.shape[-1] != width:
        raise ValueError(
            f"{name}: came {describe(tensor)}, its width is {tensor.shape[-1]}; wanted width {width}, {because}. "
            f"Remedy: project it first, or use a score that does (bilinear, additive)."
        )


def check_heads(query_heads: int, key_heads: int) -> int:
    """How many query heads share one key head."""
    if key_heads == 0 or query_heads % key_heads:
        raise ValueError(
            f"query: {query_heads} heads in dimension -3 for {key_heads} key heads, with grouped=True; wanted a "
            f"multiple of the key heads. Remedy: grouped=False, or as many key heads as divide {query_heads}."
        )
    return query_heads // key_heads


def split_heads(tensor: Tensor, event: int, groups: int) -> Tensor:
    """Query heads into (key heads, group): the dimension before the last `event` ones, where there is one.

    [*batch heads, ...] -> [*batch key_heads, groups, ...]; a head dimension of size one stays broadcastable.
    """
    if tensor.dim() <= event:
        return tensor
    place = tensor.dim() - event - 1
    heads = tensor.shape[place]
    if heads == 1:
        return tensor.unsqueeze(place)
    split: Tensor = tensor.unflatten(place, (heads // groups, groups))
    return split


def join_heads(tensor: Tensor, event: int) -> Tensor:
    """The inverse of `split_heads` for a tensor that holds both dimensions."""
    place = tensor.dim() - event - 2
    return tensor.flatten(place, place + 1)
