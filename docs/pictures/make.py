"""Draw the pictures of the pages: `python docs/pictures/make.py [NAME …]`, which needs matplotlib.

Every number in them is computed by regard. Each function below draws one picture, NAME.svg for the page NAME.md. The
colours are those of Okabe and Ito and one blue scale; the card is white, so that it reads the same on a dark page.
With `--png FOLDER` they are drawn as PNG into that folder, to look at.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

import regard
from regard.core.additive import position_terms, window_terms

HERE = Path(__file__).parent
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

Picture = Callable[[], plt.Figure]
PICTURES: dict[str, Picture] = {}


def picture(draw: Picture) -> Picture:
    PICTURES[draw.__name__.replace("_", "-")] = draw
    return draw


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


def as_they_are(scores: Tensor, _: Tensor | None) -> Tensor:
    return scores


def plane(axes: Axes, score: object, query: Tensor, title: str, *, keys: Tensor | None = None) -> None:
    """The score of one query with every key of the plane, as contours, and softmax's weights on some keys."""
    ticks = torch.linspace(-2.2, 2.2, 61)
    grid = torch.stack(torch.meshgrid(ticks, ticks, indexing="xy"), -1).reshape(-1, 2)
    scores = regard.weigh(query[None], grid, score=score, normalise=as_they_are)[0].reshape(61, 61)
    levels = torch.linspace(scores.min().item(), scores.max().item(), 9).tolist()
    axes.contourf(ticks, ticks, scores, levels, cmap=PLANE)
    axes.contour(ticks, ticks, scores, levels, colors=GREY, linewidths=0.5, linestyles="solid")
    axes.annotate("", query.tolist(), (0, 0), arrowprops={"arrowstyle": "-|>", "color": RED, "lw": 1.8})
    axes.text(-0.1, -0.05, "query", color="#A34700", weight="bold", ha="right", va="center")
    if keys is not None:
        weights = regard.weigh(query[None], keys, score=score)[0]
        axes.scatter(*keys.T, s=22, color=INK, zorder=3)
        for place, weight in zip(keys.tolist(), weights.tolist(), strict=True):
            axes.annotate(f"{weight:.2f}".lstrip("0"), place, (5, -9), textcoords="offset points", size=8)
    axes.set(aspect="equal", xticks=[], yticks=[], title=title, xlim=(-2.2, 2.2), ylim=(-2.2, 2.2))
    for spine in axes.spines.values():
        spine.set_visible(False)


QUERY = torch.tensor([1.1, 0.7])
KEYS = torch.tensor([[0.6, 0.4], [1.7, 1.1], [-0.5, 1.5], [1.2, -1.1], [-1.4, -0.8]])


def bars(axes: Axes, heights: Tensor, labels: list[str], title: str, colour: str = BLUE) -> None:
    drawn = axes.bar(range(len(labels)), heights.tolist(), color=colour, width=0.72)
    axes.bar_label(drawn, [f"{h:.2f}".lstrip("0") if h else "0" for h in heights.tolist()], size=8, padding=1)
    axes.set(title=title, ylim=(0, 1.12), yticks=[])
    axes.set_xticks(range(len(labels)), labels)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)


@picture
def index() -> plt.Figure:
    figure, (axes,) = card(height=2.1)
    axes.set(xlim=(0, 13.2), ylim=(0, 4.2))
    axes.axis("off")

    def box(x: float, y: float, text: str, colour: str, width: float = 1.9) -> None:
        style = {"boxstyle": "round,pad=0.06", "facecolor": "white", "edgecolor": colour, "linewidth": 1.4}
        axes.add_patch(FancyBboxPatch((x, y - 0.36), width, 0.72, **style))
        axes.text(x + width / 2, y, text, ha="center", va="center")

    def arrow(start: tuple[float, float], stop: tuple[float, float], label: str = "") -> None:
        axes.annotate("", stop, start, arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 1.1})
        if label:
            axes.text((start[0] + stop[0]) / 2, start[1] + 0.16, label, ha="center", size=8, color=GREY)

    for y, name in ((3.4, "query"), (2.0, "key"), (0.6, "value")):
        box(0.1, y, name, GREY, 1.4)
    box(2.9, 2.7, "score", BLUE)
    box(6.3, 2.7, "normalise", BLUE)
    box(9.7, 1.65, "sum", BLUE, 1.3)
    arrow((1.6, 3.4), (2.8, 2.9))
    arrow((1.6, 2.0), (2.8, 2.5))
    arrow((4.95, 2.7), (6.15, 2.7), "scores")
    arrow((8.35, 2.7), (9.6, 1.9))
    axes.text(9.25, 2.55, "weights", size=8, color=GREY)
    arrow((1.6, 0.6), (9.6, 1.45))
    arrow((11.1, 1.65), (12.0, 1.65))
    axes.text(12.1, 1.65, "context", va="center")
    axes.text(5.6, 3.55, "+ bias, mask", ha="center", size=8, color="#8A5D00")
    arrow((5.6, 3.45), (5.6, 2.95))
    axes.text(9.3, 3.75, "see", size=9, color="#A34700", weight="bold", ha="center")
    axes.annotate("", (9.3, 3.65), (9.0, 2.75), arrowprops={"arrowstyle": "-|>", "color": RED, "lw": 1.1, "ls": ":"})
    return figure


@picture
def dot() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    plane(axes[0], regard.dot(), QUERY, "q · k over the plane of keys", keys=KEYS)
    plane(axes[1], regard.dot(), 2 * QUERY, "a query twice as long", keys=KEYS)
    return figure


@picture
def scaled_dot() -> plt.Figure:
    figure, (axes,) = card(width=5.0)
    widths = [2**i for i in range(2, 11)]
    random = torch.Generator().manual_seed(0)
    lines: dict[str, list[float]] = {"q · k": [], "q · k / √d": []}
    for width in widths:
        query, key = torch.randn(2, 512, 64, width, generator=random)
        for name, score in (("q · k", regard.dot()), ("q · k / √d", regard.scaled_dot())):
            lines[name].append(regard.weigh(query, key, score=score).amax(-1).mean().item())
    for (name, line), colour, height in zip(lines.items(), (RED, BLUE), (0.76, 0.2), strict=True):
        axes.plot(widths, line, color=colour, marker="o", markersize=3.5)
        axes.text(300, height, name, color=colour, weight="bold", va="center")
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths[::2], [str(width) for width in widths[::2]])
    axes.set(ylim=(0, 1), xlabel="width d", title="mean largest weight among 64 random keys")
    return figure


@picture
def bilinear() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    plane(axes[0], regard.bilinear(torch.eye(2)), QUERY, "W = identity: the dot product", keys=KEYS)
    plane(axes[1], regard.bilinear(turn), QUERY, "W = a quarter turn", keys=KEYS)
    return figure


@picture
def additive() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    one = regard.additive(torch.tensor([2.0]), torch.tensor([[1.0, 0.0]]), torch.tensor([[1.2, 0.9]]))
    random = torch.Generator().manual_seed(4)
    matrices = torch.randn(2, 6, 2, generator=random) * 1.3
    six = regard.additive(torch.randn(6, generator=random), *matrices)
    plane(axes[0], one, QUERY, "one tanh: a step", keys=KEYS)
    plane(axes[1], six, QUERY, "six: hills and valleys", keys=KEYS)
    return figure


@picture
def cosine() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    plane(axes[0], regard.cosine(), QUERY, "cosine: only the direction", keys=KEYS)
    plane(axes[1], regard.cosine(8.0), QUERY, "cosine × 8: heavier on the best", keys=KEYS)
    return figure


@picture
def distance() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    plane(axes[0], regard.squared_distance(0.5), QUERY, "−½|q − k|²", keys=KEYS)
    plane(axes[1], regard.squared_distance(4.0), QUERY, "−4|q − k|²", keys=KEYS)
    return figure


@picture
def soft_dictionary() -> plt.Figure:
    figure, (axes,) = card(width=5.6)
    key, value = torch.tensor([0.0, 1.0, 1.6, 3.0, 4.0])[:, None], torch.tensor([1.0, 2.4, 0.4, 2.0, 1.2])[:, None]
    query = torch.linspace(-0.6, 4.6, 600)[:, None]
    for power, colour, style in ((0.5, GREEN, "--"), (1.0, BLUE, "-"), (4.0, RED, "-.")):
        found = regard.attend(query, key, value, score=regard.soft_dictionary(power, epsilon=1e-3))
        axes.plot(query[:, 0], found[:, 0], color=colour, ls=style, label=f"power {power:g}")
    axes.scatter(key, value, color=INK, zorder=3, s=26)
    axes.set(xlabel="query (dots: keys with their values)", title="what is found", ylim=(0.2, 2.7))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


@picture
def importance() -> plt.Figure:
    """A query-free score learned in a second: the one word that decides has to be found."""
    figure, axes = card(3, height=1.9, width=6.8)
    filler, telling = ["the", "food", "was", "and", "we", "went"], ["good", "great", "bad", "awful"]
    vocabulary = filler + telling
    random = torch.Generator().manual_seed(0)
    table, weight, vector = (
        torch.randn(*size, generator=random).mul(0.4).requires_grad_() for size in ((10, 8), (8, 8), (8,))
    )
    out = torch.randn(8, 4, generator=random).requires_grad_()
    optimizer = torch.optim.Adam([table, weight, vector, out], lr=0.03)
    for _ in range(300):
        words = torch.randint(6, (64, 6), generator=random)
        which = torch.randint(4, (64,), generator=random)
        words[torch.arange(64), torch.randint(6, (64,), generator=random)] = which + 6
        key = table[words]
        context = regard.attend(None, key, key, score=regard.importance(vector, weight))[:, 0]
        loss = torch.nn.functional.cross_entropy(context @ out, which)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for panel, text in zip(axes, ("the food was great", "we went and was bad", "awful the food was"), strict=True):
        words = text.split()
        key = table[torch.tensor([vocabulary.index(word) for word in words])].detach()
        bars(panel, regard.weigh(None, key, score=regard.importance(vector, weight))[0].detach(), words, "")
    return figure


@picture
def location() -> plt.Figure:
    figure, axes = card(2, height=1.9, width=6.0, width_ratios=[8, 5])
    places = torch.arange(8.0)
    weight = torch.stack([-0.5 * places**2, places, torch.ones(8)], -1)  # score -(i - j)²/2, from the query alone
    steps = torch.arange(5.0) * 1.7
    query = torch.stack([torch.ones(5), steps, -0.5 * steps**2], -1)
    for panel, count in zip(axes, (8, 5), strict=True):
        weights = regard.weigh(query, torch.zeros(count, 3), score=regard.location(weight))
        heat(panel, weights, title=f"a source of {count}", rows=[f"step {i + 1}" for i in range(5)])
    return figure


@picture
def terms() -> plt.Figure:
    figure, axes = card(3, height=2.2, width=6.8)
    random = torch.Generator().manual_seed(2)
    steps, places = 6, 8
    weight, key = torch.tensor([6.0, -6.0, -5.0]), 0.25 * torch.randn(places, 3, generator=random)
    query = torch.zeros(steps, 3)
    heat(axes[0], regard.weigh(query, key, score=regard.additive(weight)), title="content alone", most=0.8)
    matrix = torch.tensor([[4.0, -4.0, 0.0], [4.0, -4.0, 0.0], [0.0, 0.0, 0.0]])  # two tanh around j = i: a ridge
    matrix_bias = torch.tensor([0.9, -0.9, 0.0])
    query_term, key_term = position_terms(matrix, steps, places)
    ridge = regard.additive(weight, bias=matrix_bias, query_term=query_term, key_term=key_term)
    heat(axes[1], regard.weigh(query, key, score=ridge), title="+ position", most=0.8)
    so_far, rows = torch.zeros(places), []
    for _ in range(steps):
        seen = window_terms(so_far, torch.tensor([[0.0], [0.0], [1.5]]))
        rows.append(regard.weigh(query[:1], key, score=regard.additive(weight, key_term=seen))[0])
        so_far = so_far + rows[-1]
    heat(axes[2], torch.stack(rows), title="+ coverage", most=0.8)
    for panel in axes:
        panel.set_ylabel("step" if panel is axes[0] else "")
        panel.set_xlabel("source")
    return figure


@picture
def coattention() -> plt.Figure:
    figure, axes = card(3, height=2.0, width=6.8)
    random = torch.Generator().manual_seed(5)
    a, b = torch.randn(4, 6, generator=random), torch.randn(6, 6, generator=random)
    document, question = [f"a{i}" for i in range(1, 5)], [f"b{i}" for i in range(1, 7)]
    affinity = regard.dot()(a, b)
    span = affinity.abs().max().item()
    heat(axes[0], (affinity / span + 1) / 2, rows=document, columns=question, title="affinity")
    heat(axes[1], regard.weigh(a, b, score=regard.dot()), rows=document, columns=question, title="rows: a looks at b")
    heat(
        axes[2],
        regard.weigh(b, a, score=regard.dot()).T,
        rows=document,
        columns=question,
        title="columns: b looks at a",
    )
    return figure


SCORES = torch.tensor([[2.0, 1.4, 0.3, -0.2, -1.0]])


@picture
def softmax() -> plt.Figure:
    figure, axes = card(3, height=1.9, width=6.8)
    labels = [f"{number:g}".replace("-", "−") for number in SCORES[0].tolist()]
    for panel, temperature in zip(axes, (0.3, 1.0, 3.0), strict=True):
        bars(panel, regard.softmax(temperature)(SCORES)[0], labels, f"temperature {temperature:g}")
        panel.set_xlabel("score")
    return figure


@picture
def sparse() -> plt.Figure:
    figure, axes = card(2, height=2.4, width=6.8, width_ratios=[1.1, 1.5])
    gap = torch.linspace(-3, 3, 241)
    pairs = torch.stack([gap, torch.zeros(241)], -1)
    orders = ((1.0, GREY, ":"), (1.5, GREEN, "--"), (2.0, BLUE, "-"), (4.0, RED, "-."))
    for order, colour, style in orders:
        axes[0].plot(gap, regard.entmax(order)(pairs)[:, 0], color=colour, ls=style, label=f"α = {order:g}")
    axes[0].set(xlabel="score of one key above the other's", title="its weight, of two", yticks=[0, 0.5, 1])
    for place, (order, colour, _) in enumerate(orders):
        weights = regard.entmax(order)(SCORES)[0]
        axes[1].bar(torch.arange(5) + 0.2 * (place - 1.5), weights, width=0.18, color=colour, label=f"α = {order:g}")
    axes[1].set(title="five keys: the last ones get exactly nothing", yticks=[], xlabel="score")
    axes[1].set_xticks(range(5), [f"{number:g}".replace("-", "−") for number in SCORES[0].tolist()])
    axes[1].spines["left"].set_visible(False)
    axes[1].legend(handlelength=1.2)
    return figure


@picture
def hard() -> plt.Figure:
    figure, axes = card(3, height=2.1, width=6.8)
    labels = [f"k{i}" for i in range(1, 6)]
    bars(axes[0], regard.softmax()(SCORES)[0], labels, "softmax")
    bars(axes[1], regard.hard()(SCORES)[0], labels, "hard(): the best")
    random = torch.Generator().manual_seed(5)
    drawn = regard.weigh(
        torch.ones(6, 1), SCORES.T, score=regard.dot(), normalise=regard.hard(sampled=True), generator=random
    )
    heat(axes[2], drawn, columns=labels, title="sampled, six times")
    return figure


@picture
def masks() -> plt.Figure:
    figure, axes = card(6, height=1.75, width=8.2)
    count = 9
    first = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2])
    shown = {
        "causal()": regard.causal(), "window(2)": regard.window(2), "prefix(3)": regard.prefix(3),
        "documents(…)": regard.documents(first), "causal() |\nprefix(3)": regard.causal() | regard.prefix(3),
        "causal() &\ndocuments(…)": regard.causal() & regard.documents(first),
    }  # fmt: skip
    for panel, (name, mask) in zip(axes, shown.items(), strict=True):
        heat(panel, mask.dense(count, count).float() * 0.62 + 0.06, title=name)
        panel.title.set_size(8)
    return figure


@picture
def biases() -> plt.Figure:
    figure, axes = card(4, height=2.1, width=7.6)
    shape, all_ = torch.Size((12, 12)), range(12)
    random = torch.Generator().manual_seed(1)
    shown = {
        "relative(table)": regard.relative(torch.randn(9, generator=random)),
        "alibi(slope ¼)": regard.alibi(torch.tensor(0.25)),
        "t5_buckets(table)": regard.t5_buckets(torch.randn(8, generator=random), farthest=16),
        "rule(…)": regard.rule(lambda i, j: ((i // 4 + j // 4) % 2).float()),
    }
    for panel, (name, bias) in zip(axes, shown.items(), strict=True):
        tile = bias.tile(all_, all_, shape, torch.device("cpu"))
        heat(panel, (tile - tile.min()) / (tile.max() - tile.min()), title=name)
    return figure


@picture
def heads() -> plt.Figure:
    figure, axes = card(3, height=1.7, width=6.8)
    for panel, (name, key_heads) in zip(axes, (("multi-head", 8), ("grouped", 2), ("multi-query", 1)), strict=True):
        for head in range(8):
            key = (head // (8 // key_heads) + 0.5) * 8 / key_heads - 0.5
            panel.plot([head, key], [1, 0], color=PALE, lw=1.1, zorder=1)
            panel.scatter(head, 1, s=52, color=BLUE, zorder=2)
            panel.scatter(key, 0, s=52, color=RED, marker="s", zorder=2)
        panel.set(title=name, xlim=(-0.8, 7.8), ylim=(-0.45, 1.45), xticks=[])
        panel.set_yticks([0, 1], ["key heads", "query heads"] if panel is axes[0] else ["", ""])
        panel.tick_params(length=0)
        for spine in panel.spines.values():
            spine.set_visible(False)
    return figure


@picture
def kinds() -> plt.Figure:
    figure, axes = card(3, height=2.5, width=7.0)
    random = torch.Generator().manual_seed(3)
    text, source = 1.1 * torch.randn(5, 6, generator=random), 1.1 * torch.randn(4, 6, generator=random)
    heat(axes[0], regard.weigh(text, text, score=regard.dot(0.5)), rows=SENTENCE, columns=SENTENCE, title="self")
    french = ["le", "chien", "a", "vu"]
    heat(axes[1], regard.weigh(source, text, score=regard.dot(0.5)), rows=french, columns=SENTENCE, title="cross")
    masked = regard.weigh(text, text, score=regard.dot(0.5), mask=regard.causal())
    heat(axes[2], masked, rows=SENTENCE, columns=SENTENCE, title="masked self")
    return figure


@picture
def seeing() -> plt.Figure:
    figure, axes = card(2, height=3.2, width=5.4, width_ratios=[3, 1.3])
    random = torch.Generator().manual_seed(8)
    text = 1.3 * torch.randn(5, 6, generator=random)
    things = [regard.Weights(), regard.Entropy(), regard.Received()]
    _, seen = regard.attend(text, text, text, score=regard.dot(0.25), see=things)
    heat(axes[0], seen.weights, rows=SENTENCE, columns=SENTENCE, numbers=True, title="Weights()")
    for j, total in enumerate(seen.received.tolist()):
        axes[0].text(j + 0.5, 5.4, f"{total:.2f}", ha="center", va="center", color="#A34700", size=8.5)
    axes[0].text(2.5, 6.0, "Received(): the sum of each column", ha="center", color="#A34700", size=8.5)
    axes[0].set_ylim(6.3, 0)
    axes[1].barh(torch.arange(5) + 0.5, seen.entropy, color=GREEN, height=0.6)
    for i, nats in enumerate(seen.entropy.tolist()):
        axes[1].text(nats + 0.05, i + 0.5, f"{nats:.2f}", va="center", size=8.5)
    axes[1].set(ylim=(6.3, 0), xlim=(0, 2.1), xticks=[], yticks=[], title="Entropy()")
    axes[1].spines[["left", "bottom"]].set_visible(False)
    return figure


def main() -> None:
    reader = argparse.ArgumentParser(description="Draw the pictures of the pages.")
    reader.add_argument("names", nargs="*", choices=[[], *PICTURES], help="all if none is given")
    reader.add_argument("--png", type=Path, metavar="FOLDER", help="draw PNG into this folder, to look at")
    asked = reader.parse_args()
    for name in asked.names or PICTURES:
        figure = PICTURES[name]()
        if asked.png:
            figure.savefig(asked.png / f"{name}.png", dpi=110)
        else:
            figure.savefig(HERE / f"{name}.svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
