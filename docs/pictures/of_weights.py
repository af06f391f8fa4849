"""Pictures of all that is not a score: the whole, what makes weights of scores, masks, biases, heads, what is seen."""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import FancyBboxPatch
from paper import BLUE, GREEN, GREY, PALE, RED, SENTENCE, bars, card, heat

import regard


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


def softmax() -> plt.Figure:
    figure, axes = card(3, height=1.9, width=6.8)
    labels = [f"{number:g}".replace("-", "−") for number in SCORES[0].tolist()]
    for panel, temperature in zip(axes, (0.3, 1.0, 3.0), strict=True):
        bars(panel, regard.softmax(temperature)(SCORES)[0], labels, f"temperature {temperature:g}")
        panel.set_xlabel("score")
    return figure


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
