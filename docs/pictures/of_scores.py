"""Pictures of the scores: what one query makes of keys in a plane, and what is added inside the tanh."""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from paper import BLUE, GREEN, GREY, INK, PLANE, RED, bars, card, heat
from torch import Tensor

import regard
from regard.core.additive import position_terms, window_terms


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


def dot() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    plane(axes[0], regard.dot(), QUERY, "q · k over the plane of keys", keys=KEYS)
    plane(axes[1], regard.dot(), 2 * QUERY, "a query twice as long", keys=KEYS)
    return figure


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


def bilinear() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    plane(axes[0], regard.bilinear(torch.eye(2)), QUERY, "W = identity: the dot product", keys=KEYS)
    plane(axes[1], regard.bilinear(turn), QUERY, "W = a quarter turn", keys=KEYS)
    return figure


def additive() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    one = regard.additive(torch.tensor([2.0]), torch.tensor([[1.0, 0.0]]), torch.tensor([[1.2, 0.9]]))
    random = torch.Generator().manual_seed(4)
    matrices = torch.randn(2, 6, 2, generator=random) * 1.3
    six = regard.additive(torch.randn(6, generator=random), *matrices)
    plane(axes[0], one, QUERY, "one tanh: a step", keys=KEYS)
    plane(axes[1], six, QUERY, "six: hills and valleys", keys=KEYS)
    return figure


def cosine() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    plane(axes[0], regard.cosine(), QUERY, "cosine: only the direction", keys=KEYS)
    plane(axes[1], regard.cosine(8.0), QUERY, "cosine × 8: heavier on the best", keys=KEYS)
    return figure


def distance() -> plt.Figure:
    figure, axes = card(2, height=2.9, width=6.0)
    plane(axes[0], regard.squared_distance(0.5), QUERY, "−½|q − k|²", keys=KEYS)
    plane(axes[1], regard.squared_distance(4.0), QUERY, "−4|q − k|²", keys=KEYS)
    return figure


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
