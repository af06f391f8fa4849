"""`regard demo`: additive attention learns to read backwards, and its weights are shown before and after."""

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.core.see import Weights
from regard.layers import AdditiveScore, Attention


def run(seed: int = 0, *, word: str = "attention", steps: int = 200, width: int = 32) -> float:
    """Learn, show, and return the share of new words that are read without a mistake. Same seed, same numbers."""
    generator = torch.Generator().manual_seed(seed)
    console = Console(highlight=False)
    shades = " .:*#" if console.options.ascii_only else " ░▒▓█"

    def parameter(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).div(shape[-1] ** 0.5).requires_grad_()

    letters, places, asked = parameter(26, width), parameter(len(word), width), parameter(len(word), width)
    layer = Attention(AdditiveScore(width, width, width, generator=generator))
    optimizer = torch.optim.Adam([letters, places, asked, *layer.parameters()], lr=0.01)

    def read(words: Tensor) -> tuple[Tensor, Tensor]:
        """For every place of the answer a score for each letter, and where the layer looked for it."""
        query, key, value = asked.expand(len(words), -1, -1), letters[words] + places, letters[words]
        context, seen = layer(query, key, value, see=Weights())
        return context @ letters.T, seen.weights

    def new_words(count: int) -> Tensor:
        return torch.randint(26, (count, len(word)), generator=generator)

    @torch.no_grad()
    def examined() -> tuple[Table, float, float]:
        """The weights on the word, drawn; of new words the share read right, and the weight on the right letter."""
        weights = read(torch.tensor([[ord(letter) - ord("a") for letter in word]]))[1][0]
        picture = Table.grid()
        picture.add_row("  ", *(f"{letter} " for letter in word), style="bold")
        for letter, row in zip(reversed(word), weights, strict=True):
            cells = [2 * shades[round(share * (len(shades) - 1))] for share in row.tolist()]
            picture.add_row(f"[bold]{letter} [/]", *(f"[cyan]{cell}[/]" for cell in cells))
        words = new_words(1000)
        scores, weights = read(words)
        right = (scores.argmax(-1) == words.flip(1)).all(-1).double().mean().item()
        return picture, right, weights.flip(1).diagonal(dim1=1, dim2=2).mean().item()

    before, *first = examined()
    for _ in range(steps):
        words = new_words(64)
        loss = cross_entropy(read(words)[0].flatten(0, 1), words.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after, *last = examined()

    console.print(f"\n[bold]Additive attention learns to read '{word}' backwards[/]", soft_wrap=True)
    console.print(
        "Rows: what it writes. Columns: what it reads. The darker, the more it looks there.\n", soft_wrap=True
    )
    pictures, table = Table.grid(padding=(0, 6)), Table.grid(padding=(0, 3))
    pictures.add_row("before", f"after {steps} steps of random letters", style="bold")
    pictures.add_row(before, after)
    table.add_row("", "before", "after", style="bold")
    for name, was, came in zip(
        ("new words read without a mistake", "weight on the right letter"), first, last, strict=True
    ):
        table.add_row(name, f"{was:.1%}", f"{came:.1%}")
    console.print(pictures, "", table, sep="\n")
    return last[0]
