"""Transformer blocks: attention, perhaps a look at a source, and a feed-forward layer, each within a residual.

Where the norm stands is a part that the block is given: `PreNorm` or `PostNorm`, one for every layer of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as plain_dropout

from regard.core.biases import Bias
from regard.core.masks import Mask
from regard.core.see import Thing
from regard.core.seen import Seen
from regard.core.windows import causal
from regard.layers.attention import Attention, Remembered, check_share
from regard.layers.multihead import MultiHeadAttention

Work = Callable[[Tensor], Tensor]
AnyAttention = Attention | MultiHeadAttention
CAUSAL = causal()


def dropped(tensor: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Some numbers set to zero and the others made larger."""
    if generator is None or share in (0.0, 1.0):
        return plain_dropout(tensor, share)
    kept = torch.rand(tensor.shape, generator=generator, device=generator.device).to(tensor.device) >= share
    return tensor * kept / (1 - share)


class PreNorm(nn.Module):
    """x + work(norm(x))"""

    def __init__(self, norm: nn.Module, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm, self.dropout = norm, check_share(dropout)

    def forward(self, tokens: Tensor, work: Work, generator: torch.Generator | None = None) -> Tensor:
        return tokens + dropped(work(self.norm(tokens)), self.dropout if self.training else 0.0, generator)


class PostNorm(nn.Module):
    """norm(x + work(x))"""

    def __init__(self, norm: nn.Module, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm, self.dropout = norm, check_share(dropout)

    def forward(self, tokens: Tensor, work: Work, generator: torch.Generator | None = None) -> Tensor:
        done = tokens + dropped(work(tokens), self.dropout if self.training else 0.0, generator)
        return self.norm(done)  # type: ignore[no-any-return]  # a module's call has no type


class TransformerBlock(nn.Module):
    """An encoder's block; with `cross`, a decoder's, which looks at a source too.

    attention      of the tokens among themselves: MultiHeadAttention(width, heads), or any Attention
    feed_forward   any module over tokens: nn.Sequential(nn.Linear(…), nn.GELU(), nn.Linear(…))
    residuals      PreNorm(norm) or PostNorm(norm), or a module of your own that is called as they are, for each layer
                   in order: attention, cross if there is one, feed_forward
    cross          of the tokens to the source
    """

    def __init__(
        self,
        attention: AnyAttention,
        feed_forward: nn.Module,
        residuals: Sequence[nn.Module],
        *,
        cross: AnyAttention | None = None,
    ) -> None:
        super().__init__()
        wanted = 2 if cross is None else 3
        if len(residuals) != wanted:
            raise ValueError(
                f"residuals: came {len(residuals)}, wanted {wanted}, one each for attention, "
                f"{'' if cross is None else 'cross, '}feed_forward. Remedy: "
                f"[PreNorm(nn.LayerNorm(width)) for _ in range({wanted})]."
            )
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.residuals = nn.ModuleList(residuals)

    def forward(
        self,
        tokens: Tensor,
        source: Tensor | Remembered | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        source_mask: Mask | Tensor | None = None,
        see: Thing | list[Thing] | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor | tuple[Tensor, tuple[Seen, ...]]:
        """[*batch, length, width] -> the same; with `see`, (tokens, what each attention saw: its own, then cross).

        `mask` and `bias` are of the tokens among themselves, `source_mask` of the source, which may be what
        `block.cross.remember(source)` gave.
        """
        looks: list[Seen] = []

        def look(asking: Tensor) -> Tensor:
            return noted(self.attention(asking, asking, mask=mask, bias=bias, see=see, generator=generator), looks)

        tokens = self.residuals[0](tokens, look, generator)
        tokens = self._onwards(
            tokens, source=source, source_mask=source_mask, see=see, generator=generator, looks=looks
        )
        return tokens if see is None else (tokens, tuple(looks))

    def step(
        self,
        tokens: Tensor,
        past: Remembered | None = None,
        source: Tensor | Remembered | None = None,
        *,
        mask: Mask | Tensor | None = CAUSAL,
        bias: Bias | Tensor | None = None,
        source_mask: Mask | Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Remembered]:
        """The next tokens of a text of which `past` is remembered: (tokens, what is remembered now).

        Step by step or all at once under a causal mask is the same.
        """
        grown = past

        def look(asking: Tensor) -> Tensor:
            nonlocal grown
            grown = self.attention.remember(asking, after=past)
            return noted(self.attention(asking, grown, mask=mask, bias=bias, generator=generator), [])

        tokens = self.residuals[0](tokens, look, generator)
        tokens = self._onwards(tokens, source=source, source_mask=source_mask, see=None, generator=generator, looks=[])
        if grown is None:
            raise RuntimeError("residuals: the first one did not call its work. Remedy: call it, as PreNorm does.")
        return tokens, grown

    def _onwards(
        self,
        tokens: Tensor,
        *,
        source: Tensor | Remembered | None,
        source_mask: Mask | Tensor | None,
        see: Thing | list[Thing] | None,
        generator: torch.Generator | None,
        looks: list[Seen],
    ) -> Tensor:
        """What follows the look at the tokens themselves."""
        if (source is None) != (self.cross is None):
            raise ValueError(
                "source: this block has no cross-attention to look at it with. Remedy: cross=MultiHeadAttention(…)."
                if self.cross is None
                else "source: came None, and this block has cross-attention. Remedy: pass what it looks at."
            )
        if self.cross is not None:
            cross = self.cross

            def look(asking: Tensor) -> Tensor:
                return noted(cross(asking, source, mask=source_mask, see=see, generator=generator), looks)

            tokens = self.residuals[1](tokens, look, generator)
        return self.residuals[-1](tokens, self.feed_forward, generator)  # type: ignore[no-any-return]


def noted(answer: Tensor | tuple[Tensor, Seen], looks: list[Seen]) -> Tensor:
    """The context; what was seen is added to the looks."""
    if isinstance(answer, tuple):
        looks.append(answer[1])
        return answer[0]
    return answer
