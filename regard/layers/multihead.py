"""Multi-head attention: n heads of width/n, each looking in its own way; with the parts it is given.

Tokens are [*batch, length, width]. For decoding, `remember(tokens, after=past)` projects what is new and gives it with
what came before: a value that is passed in and returned; nothing is stored on the module between calls.
"""

from __future__ import annotations

from collections.abc import MutableMapping

import torch
from torch import Tensor, nn

from regard.core.biases import Bias, as_bias
from regard.core.masks import Mask
from regard.core.scores import Location
from regard.core.see import Thing
from regard.core.seen import Seen
from regard.core.shapes import check_inputs, check_tensor, check_width, describe
from regard.core.weigh import SCALED_DOT, SOFTMAX
from regard.kernels.attend import attend
from regard.layers.attention import AnyScore, Remembered, check_remembered, check_share, guarded, named
from regard.layers.normalisers import AnyNormaliser, NormaliserLayer, normaliser_of
from regard.layers.positions import PositionPart
from regard.layers.scores import glorot, listed, score_of, sized


class MultiHeadAttention(nn.Module):
    """n heads of width/n, projected in and out (Vaswani et al., 2017).

    width, heads   of the layer; each head is width/heads wide
    key_heads      fewer heads for keys and values, each shared by several query heads
    key_width, value_width
                   of the keys and values that come in, where they differ from `width`
    score, normalise
                   as for `Attention`; a score of parameters sees heads of width/heads
    positions      rotary, relative, ALiBi, …: a part from `regard.layers.positions`
    dropout        the share of weights set to zero in training
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        key_heads: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        score: AnyScore = SCALED_DOT,
        normalise: NormaliserLayer | AnyNormaliser = SOFTMAX,
        positions: PositionPart | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sized(
            ("width", width), ("heads", heads), ("key_heads", key_heads), ("key_width", key_width),
            ("value_width", value_width),
        )  # fmt: skip
        key_heads = heads if key_heads is None else key_heads
        if width % heads:
            raise ValueError(
                f"heads: came {heads} for width {width}; wanted a number that divides it: each head is width/heads "
                f"wide. Remedy: width {width + heads - width % heads}."
            )
        if heads % key_heads:
            raise ValueError(
                f"key_heads: came {key_heads} for {heads} heads; wanted a number that divides them. "
                f"Remedy: 1, or {heads}."
            )
        if positions is not None and not isinstance(positions, PositionPart):
            raise TypeError(
                f"positions: came {describe(positions)}, wanted a position part such as RotaryPositions(). Remedy: "
                f"sinusoidal and learned positions are added to the embeddings, before attention."
            )
        score_of(score)  # says now what is wrong with it
        self.width, self.heads, self.key_heads = width, heads, key_heads
        self.score, self.normalise, self.positions = score, normalise, positions
        self.dropout = check_share(dropout)
        inner = width // heads * key_heads
        self.query = linear(width, width, bias, generator)
        self.key = linear(width if key_width is None else key_width, inner, bias, generator)
        self.value = linear(width if value_width is None else value_width, inner, bias, generator)
        self.output = linear(width, width, bias, generator)
        self.register_load_state_dict_pre_hook(unpack)  # type: ignore[no-untyped-call]

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> MultiHeadAttention:
        """The same layer with copies of its parameters. Tokens are [batch, length, width], whatever batch_first."""
        if module.add_zero_attn:
            raise ValueError(
                "add_zero_attn: this module looks at a zero that is appended to the keys, which is not served here. "
                "Remedy: append the zero key and value yourself."
            )
        layer = cls(
            module.embed_dim, module.num_heads, key_width=module.kdim, value_width=module.vdim,
            dropout=module.dropout, bias=module.out_proj.bias is not None,
        )  # fmt: skip
        layer = layer.to(module.out_proj.weight).train(module.training)
        layer.load_state_dict(module.state_dict())
        return layer

    def remember(self, key: Tensor, value: Tensor | None = None, *, after: Remembered | None = None) -> Remembered:
        """Keys and values projected once, [*batch, key_heads, k, width/heads]; values are the keys if not given.

        The layer takes it in the key's place, at any number of calls. `after` is what was remembered before: a
        decoder's cache.
        """
        check_inputs(None, key, value)
        if after is not None and isinstance(score_of(self.score), Location):
            raise ValueError(
                "after: a location score knows keys by their index, which would start again. "
                "Remedy: remember all keys at once."
            )
        return self._remember(key, value, 0 if after is None else len(after), True).following(after)

    def _remember(self, key: Tensor, value: Tensor | None, start: int, guard: bool) -> Remembered:
        value = key if value is None else value
        check_width("key", key, self.key.in_features, "the layer's key_width")
        check_width("value", value, self.value.in_features, "the layer's value_width")

        def side(tokens: Tensor) -> Tensor:
            apart = split(self.key(tokens), self.key_heads)
            placed = apart if self.positions is None else self.positions.turned_keys(apart, start)
            return score_of(self.score).key_side(placed).to(apart.dtype)

        def valued(tokens: Tensor) -> Tensor:
            return split(self.value(tokens), self.key_heads)

        return Remembered(guarded(side, key, guard, heads=True), guarded(valued, value, guard, heads=True))

    def _ask(self, query: Tensor, keys: int, guard: bool) -> Tensor:
        def side(tokens: Tensor) -> Tensor:
            apart = split(self.query(tokens), self.heads)
            placed = apart if self.positions is None else self.positions.turned_queries(apart, keys)
            return score_of(self.score).query_side(placed).to(apart.dtype)

        return guarded(side, query, guard, heads=True)

    def _bias(self, bias: Bias | Tensor | None) -> Bias | Tensor | None:
        own = None if self.positions is None else self.positions.bias()
        if own is None or bias is None:
            return own if bias is None else bias
        return as_bias(bias) + own

    def forward(
        self,
        query: Tensor,
        key: Tensor | Remembered | None = None,
        value: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        see: Thing | list[Thing] | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor | tuple[Tensor, Seen]:
        """[*batch, q, width] -> [*batch, q, width]; with `see`, (output, Seen), per head: [*batch, heads, …].

        Without a key the tokens look at each other. The key may be what `remember` gave.
        """
        check_tensor("query", query, 2)
        check_width("query", query, self.width, "the layer's width")
        check_heads_apart("mask", mask, query)
        check_heads_apart("bias", bias, query)
        guard = mask is not None
        if isinstance(key, Remembered):
            past = check_remembered(key, value)
        else:
            key = query if key is None else key
            check_inputs(query, key, value)
            past = self._remember(key, value, 0, guard)
        answer = attend(
            self._ask(query, len(past), guard), past.key, past.value,
            score=score_of(self.score).pair, normalise=normaliser_of(self.normalise), mask=mask, bias=self._bias(bias),
            dropout=self.dropout if self.training else 0.0, grouped=self.key_heads != self.heads,
            generator=generator, see=see,
        )  # fmt: skip
        context, seen = answer if isinstance(answer, tuple) else (answer, None)
        output = guarded(self.output, joined(context), guard)
        return output if seen is None else (output, seen)

    def extra_repr(self) -> str:
        return listed(
            ("width", self.width),
            ("heads", self.heads),
            ("key_heads", None if self.key_heads == self.heads else self.key_heads),
            ("score", None if isinstance(self.score, nn.Module) else named(self.score)),
            ("normalise", None if isinstance(self.normalise, nn.Module) else named(self.normalise)),
            ("dropout", self.dropout or None),
        )


def linear(inputs: int, outputs: int, bias: bool, generator: torch.Generator | None) -> nn.Linear:
    """A linear layer with Glorot's weights and no bias to start with."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    layer.weight = glorot((outputs, inputs), generator)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def split(tensor: Tensor, heads: int) -> Tensor:
    """[*batch, length, heads width] -> [*batch, heads, length, width]"""
    apart: Tensor = tensor.unflatten(-1, (heads, -1))
    return apart.transpose(-2, -3)


def joined(tensor: Tensor) -> Tensor:
    """The inverse of `split`."""
    return tensor.transpose(-2, -3).flatten(-2)


def check_heads_apart(name: str, given: object, query: Tensor) -> None:
    """A tensor over sequences would fall onto the heads without a word, so it must say where they are."""
    if isinstance(given, Tensor) and 2 < given.dim() <= query.dim() and given.shape[:-2].numel() > 1:
        raise ValueError(
            f"{name}: came {describe(given)} for query {describe(query)}; with as many dimensions it would line up "
            f"with the heads. Wanted [q, k], or [*batch, heads or 1, q, k]. Remedy: {name}.unsqueeze(-3) for one a "
            f"sequence, {name}[None] for one a head."
        )


def unpack(_: nn.Module, state: MutableMapping[str, Tensor], prefix: str, *__: object) -> None:
    """torch.nn.MultiheadAttention's names for the same parameters, under ours."""
    if f"{prefix}bias_k" in state or f"{prefix}bias_v" in state:
        raise ValueError(
            f"add_bias_kv: the state holds {prefix}bias_k and {prefix}bias_v, a learned key and value that are "
            f"appended to those given, which is not served here. Remedy: append them yourself."
        )
    parts = ("query", "key", "value")
    for kind in ("weight", "bias"):
        packed = state.pop(f"{prefix}in_proj_{kind}", None)
        if packed is not None:
            for name, rows in zip(parts, packed.chunk(3), strict=True):
                state[f"{prefix}{name}.{kind}"] = rows
        if f"{prefix}out_proj.{kind}" in state:
            state[f"{prefix}output.{kind}"] = state.pop(f"{prefix}out_proj.{kind}")
    for name in parts:
        if f"{prefix}{name[0]}_proj_weight" in state:
            state[f"{prefix}{name}.weight"] = state.pop(f"{prefix}{name[0]}_proj_weight")
