"""What every picture is drawn with: the card, its colours, squares and bars.

The colours are those of Okabe and Ito and one blue scale; the card is white, so that it reads the same on a dark page.
"""

from __future__ import annotations

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

INK, GREY, PALE = "#222222", "#767676", "#D9D9D9"
BLUE, RED, GREEN, GOLD = "#0072B2", "#D55E00", "#009E73", "#B07700"
SHADES = LinearSegmentedColormap.from_list("shades", ["#FFFFFF", "#9CC8E3", "#0072B2", "#00304C"])
PLANE = LinearSegmentedColormap.from_list("plane", ["#FFFFFF", "#C6E2F1", "#5AA7D0"])
SENTENCE = ["the", "dog", "saw", "the", "cat"]

mpl.rcParams.update({
    "svg.hashsalt": "regard", "svg.fonttype": "path", "font.size": 9, "font.family": "DejaVu Sans",
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": GREY,
    "axes.titlesize": 9.5, "axes.titlelocation": "left", "axes.linewidth": 0.7, "axes.spines.top": False,
    "axes.spines.right": False, "xtick.major.width": 0.7, "ytick.major.width": 0.7, "lines.linewidth": 1.8,
    "legend.frameon": False, "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
})  # fmt: skip


def card(columns: int = 1, *, width: float = 6.6, height: float = 2.5, **grid: object) -> tuple[plt.Figure, list[Axes]]:
    """A white card with rounded corners and a row of axes on it."""
    figure, axes = plt.subplots(1, columns, figsize=(width, height), layout="constrained", squeeze=False, **grid)
    figure.get_layout_engine().set(w_pad=0.14, h_pad=0.12)
    round_ = FancyBboxPatch(
        (0.012 * height / width, 0.012), 1 - 0.024 * height / width, 0.976, transform=figure.transFigure,
        boxstyle="round,pad=0,rounding_size=0.035", mutation_aspect=width / height, facecolor="white",
        edgecolor="#C8C8C8", linewidth=0.8, zorder=-10,
    )  # fmt: skip
    round_.set_in_layout(False)
    figure.patches.append(round_)
    return figure, list(axes[0])


def heat(
    axes: Axes, weights: Tensor, *, rows: list[str] | None = None, columns: list[str] | None = None, title: str = "",
    numbers: bool = False, most: float = 1.0,
) -> None:  # fmt: skip
    """A matrix as squares, the first query on top."""
    axes.pcolormesh(weights.detach().numpy(), cmap=SHADES, vmin=0, vmax=most, edgecolors="white", linewidth=0.7)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.set_title(title)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks([i + 0.5 for i in range(weights.shape[1])] if columns else [], columns or [])
    axes.set_yticks([i + 0.5 for i in range(weights.shape[0])] if rows else [], rows or [])
    axes.xaxis.tick_top()
    if numbers:
        for i, row in enumerate(weights.tolist()):
            for j, number in enumerate(row):
                ink = "white" if number > 0.5 * most else INK
                axes.text(j + 0.5, i + 0.5, f"{number:.2f}".lstrip("0"), ha="center", va="center", color=ink, size=7.5)


def bars(axes: Axes, heights: Tensor, labels: list[str], title: str, colour: str = BLUE) -> None:
    drawn = axes.bar(range(len(labels)), heights.tolist(), color=colour, width=0.72)
    axes.bar_label(drawn, [f"{h:.2f}".lstrip("0") if h else "0" for h in heights.tolist()], size=8, padding=1)
    axes.set(title=title, ylim=(0, 1.12), yticks=[])
    axes.set_xticks(range(len(labels)), labels)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
