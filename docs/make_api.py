"""Write docs/api.md, the reference of every public name, from signatures and docstrings: `python docs/make_api.py`.

The sections below say the order and nothing else; tests/test_api_page.py holds them complete and the page up to date.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

import regard
from regard.core.weigh import SCALED_DOT, SOFTMAX
from regard.layers.blocks import CAUSAL

HERE = Path(__file__).parent
WIDTH = 96  # of a signature on one line

# Title, a sentence, and the names: of regard itself, or with their module.
SECTIONS: list[tuple[str, str, list[str]]] = [
    (
        "Attention",
        "The five functions that everything else is an argument of.",
        ["attend", "coattend", "weigh", "gather", "route"],
    ),
    (
        "Scores",
        "How well each query matches each key; see [the mechanisms](mechanisms/index.md#scores).",
        [
            "scaled_dot", "dot", "bilinear", "additive", "concatenated", "cosine", "squared_distance",
            "soft_dictionary", "importance", "location",
        ],
    ),
    (
        "Normalisers",
        "From scores to weights.",
        ["softmax", "sparsemax", "entmax", "hard", "gumbel", "given", "edited"],
    ),
    (
        "Masks",
        "What may be looked at. They combine with `&`, `|` and `~`.",
        ["causal", "window", "prefix", "lengths", "documents", "allow"],
    ),
    ("Biases", "What is added to the scores. They add up with `+`.", ["alibi", "relative", "t5_buckets", "rule"]),
    (
        "What to see",
        "What `see=` takes, and what comes back; each is defined [on its page](mechanisms/seeing.md).",
        [
            "Weights", "Entropy", "Received", "Top", "Map", "Tile", "LogSumExp", "LogProbability", "Seen",
            "merge_queries", "merge_keys",
        ],
    ),
    (
        "Layers",
        "Modules that hold parameters and are given their parts.",
        ["Attention", "MultiHeadAttention", "Pooling", "Memory", "TransformerBlock"],
    ),
    (
        "Parts of layers",
        "In `regard.layers`: what layers are made of.",
        [
            f"regard.layers.{name}"
            for name in (
                "ScaledDotScore", "BilinearScore", "AdditiveScore", "CosineScore", "ImportanceScore", "LocationScore",
                "ScoreLayer", "LearnedTemperature", "LearnedEntmax", "NormaliserLayer", "SinusoidalPositions",
                "LearnedPositions", "RotaryPositions", "RelativePositions", "AlibiPositions", "BucketedPositions",
                "PositionPart", "PreNorm", "PostNorm", "Remembered", "HardAttention", "HardChoice", "GumbelChoice",
                "Choice", "Reinforce", "reinforce", "who_draws", "redundancy",
            )
        ],
    ),
    (
        "To build with",
        "In the rooms `core` and `kernels`: what the pages use, and what to write to add a part of your own.",
        [
            "regard.core.positions.sinusoids", "regard.core.positions.rotated", "regard.core.biases.alibi_slopes",
            "regard.core.additive.position_terms", "regard.core.additive.window_terms", "regard.core.scores.Score",
            "regard.core.scores.Pair", "regard.core.normalisers.Normaliser", "regard.core.masks.Mask",
            "regard.core.biases.Bias", "regard.core.see.Thing", "regard.kernels.route.Route",
            "regard.kernels.route.RefusedError",
        ],
    ),
]  # fmt: skip
ROOMS = ["core", "kernels", "layers"]

SHOWN = {id(SCALED_DOT): "scaled_dot()", id(SOFTMAX): "softmax()", id(CAUSAL): "causal()"}
ALIASES = {
    r"\bAnyScore\b": "Score | Callable",
    r"\bAnyNormaliser\b": "Callable",
    r"\bAnyAttention\b": "Attention | MultiHeadAttention",
    r"\bAlign\b": "'end' | 'start'",
    r"\bPrecision\b": "'exact' | 'half'",
    r"\bEstimate\b": "'score function' | 'straight-through'",
    r"\bBlock\b": "range",
    r"\bParts\b": "tuple[Tensor, ...]",
    r"ForwardRef\('(\w+)'.*?\)": r"\1",
    r"Callable\[\[.*?\], \w+\]|Callable\[\.\.\., \w+\]": "Callable",
}


def found(name: str) -> tuple[str, object]:
    """How it is called, and what it is."""
    module, _, last = name.rpartition(".")
    return (f"regard.{last}", getattr(regard, last)) if not module else (name, vars_of(module)[last])


def vars_of(module: str) -> dict[str, object]:
    return vars(importlib.import_module(module))


def annotated(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    for long, short in ALIASES.items():
        text = re.sub(long, short, text)
    return text


def parameter(one: inspect.Parameter, optional: frozenset[str]) -> str:
    text = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "") + one.name
    if one.annotation is not one.empty:
        text += f": {annotated(one.annotation)}"
    if one.name in optional:
        text += " = …"
    elif one.default is not one.empty:
        text += f" = {SHOWN.get(id(one.default)) or repr(one.default)}"
    return text


def signature(name: str, what: object) -> str:
    """`name(parameters) -> result`, one parameter a line where it is long."""
    taken = inspect.signature(what)  # type: ignore[arg-type]
    made = frozenset(f.name for f in fields(what) if f.default_factory is not MISSING) if is_dataclass(what) else ()
    parts, starred = [], False
    for one in taken.parameters.values():
        if one.name == "self":
            continue
        starred = starred or one.kind is one.VAR_POSITIONAL
        if one.kind is one.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(parameter(one, frozenset(made)))
    returns = taken.return_annotation
    result = "" if inspect.isclass(what) or returns is taken.empty else f" -> {annotated(returns)}"
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def described(docstring: str | None) -> str:
    """A docstring as Markdown: paragraphs flow, what is set in columns stays as it is."""
    blocks = inspect.cleandoc(docstring or "").split("\n\n")
    shown = []
    for block in blocks:
        table = re.search(r"^ ", block, re.MULTILINE) or re.search(r"\S {2,}\S", block)
        shown.append(f"```\n{block}\n```" if table else flowing(" ".join(block.splitlines())))
    return "\n\n".join(shown).replace("\n```\n\n```\n", "\n\n")


def flowing(text: str) -> str:
    """Prose: shapes in brackets as code, and no star that Markdown would take for emphasis."""
    parts = re.split(r"(`[^`]*`)", text)
    for place in range(0, len(parts), 2):
        shaped = re.sub(r"\[[^\[\]]*\](?!\()", r"`\g<0>`", parts[place])
        parts[place] = "`".join(
            piece if inside % 2 else piece.replace("*", r"\*") for inside, piece in enumerate(shaped.split("`"))
        )
    return "".join(parts)


def own_methods(what: type) -> list[tuple[str, object]]:
    """Public methods that the class itself defines and describes; `forward` first, since it is what a call does."""
    kept = []
    for name, value in vars(what).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            kept.append((name, value))
    return sorted(kept, key=lambda pair: pair[0] != "forward")


def entry(name: str) -> str:
    called, what = found(name)
    short = called.rpartition(".")[2]
    home = inspect.getmodule(what).__name__.replace(".", "/")  # type: ignore[union-attr]
    lines = [f"### {short}", f"```py\n{head(called, what)}\n```", described(what.__doc__)]
    if inspect.isclass(what):
        for method, value in own_methods(what):
            lines.append(f"```py\n{signature(f'.{method}', getattr(what, method))}\n```")
            lines.append(described((value.__func__ if isinstance(value, classmethod) else value).__doc__))
    lines.append(f"In `{home}.py`." if "/" in home else "")
    return "\n\n".join(line for line in lines if line)


def head(called: str, what: object) -> str:
    """The signature; an abstract class has none worth showing."""
    if inspect.isclass(what) and (inspect.isabstract(what) or issubclass(what, Exception)):
        return f"class {called}"
    return signature(called, what)


def page() -> str:
    parts = [
        "# Reference",
        "Every public name, with its signature and its docstring. `docs/make_api.py` writes this page.",
        "In shapes, `*batch` stands for any number of leading dimensions; see [words and symbols](notation.md).",
        "A `Callable` score is a function (query, key) -> scores, a `Callable` normaliser (scores, mask) -> weights.",
    ]
    for title, sentence, names in SECTIONS:
        parts += [f"## {title}", sentence, *(entry(name) for name in names)]
    parts += ["## Rooms"]
    parts += [f"**`regard.{room}`** · {described(getattr(regard, room).__doc__)}" for room in ROOMS]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    (HERE / "api.md").write_text(page(), encoding="utf-8", newline="\n")
