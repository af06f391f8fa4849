"""Every attention mechanism in one call: fast, open to look into, and put to the test.

The names below are loaded when first used, so `import regard` costs next to nothing and loads no torch.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what editors and type checkers read; tests/test_public.py holds it to the table below
    from regard import core as core, kernels as kernels, layers as layers
    from regard.core.additive import additive as additive, concatenated as concatenated
    from regard.core.biases import alibi as alibi, relative as relative, rule as rule, t5_buckets as t5_buckets
    from regard.core.distances import soft_dictionary as soft_dictionary, squared_distance as squared_distance
    from regard.core.entmax import entmax as entmax, sparsemax as sparsemax
    from regard.core.hard import gumbel as gumbel, hard as hard
    from regard.core.importance import importance as importance
    from regard.core.likelihood import LogProbability as LogProbability, LogSumExp as LogSumExp
    from regard.core.masks import allow as allow
    from regard.core.merge import merge_keys as merge_keys, merge_queries as merge_queries
    from regard.core.normalisers import edited as edited, given as given, softmax as softmax
    from regard.core.scores import (
        bilinear as bilinear,
        cosine as cosine,
        dot as dot,
        location as location,
        scaled_dot as scaled_dot,
    )
    from regard.core.see import (
        Entropy as Entropy,
        Map as Map,
        Received as Received,
        Tile as Tile,
        Top as Top,
        Weights as Weights,
    )
    from regard.core.seen import Seen as Seen
    from regard.core.sequences import documents as documents, lengths as lengths
    from regard.core.weigh import gather as gather, weigh as weigh
    from regard.core.windows import causal as causal, prefix as prefix, window as window
    from regard.kernels.attend import attend as attend, coattend as coattend
    from regard.kernels.route import route as route
    from regard.layers import (
        Attention as Attention,
        Memory as Memory,
        MultiHeadAttention as MultiHeadAttention,
        Pooling as Pooling,
        TransformerBlock as TransformerBlock,
    )

__version__ = "0.1.0"

# Every public name and the module that holds it; a name that is its own module is a room.
PUBLIC = {
    "Attention": "regard.layers",
    "Entropy": "regard.core.see",
    "LogProbability": "regard.core.likelihood",
    "LogSumExp": "regard.core.likelihood",
    "Map": "regard.core.see",
    "Memory": "regard.layers",
    "MultiHeadAttention": "regard.layers",
    "Pooling": "regard.layers",
    "Received": "regard.core.see",
    "Seen": "regard.core.seen",
    "Tile": "regard.core.see",
    "Top": "regard.core.see",
    "TransformerBlock": "regard.layers",
    "Weights": "regard.core.see",
    "additive": "regard.core.additive",
    "alibi": "regard.core.biases",
    "allow": "regard.core.masks",
    "attend": "regard.kernels.attend",
    "bilinear": "regard.core.scores",
    "causal": "regard.core.windows",
    "coattend": "regard.kernels.attend",
    "concatenated": "regard.core.additive",
    "core": "regard.core",
    "cosine": "regard.core.scores",
    "documents": "regard.core.sequences",
    "dot": "regard.core.scores",
    "edited": "regard.core.normalisers",
    "entmax": "regard.core.entmax",
    "gather": "regard.core.weigh",
    "given": "regard.core.normalisers",
    "gumbel": "regard.core.hard",
    "hard": "regard.core.hard",
    "importance": "regard.core.importance",
    "kernels": "regard.kernels",
    "layers": "regard.layers",
    "lengths": "regard.core.sequences",
    "location": "regard.core.scores",
    "merge_keys": "regard.core.merge",
    "merge_queries": "regard.core.merge",
    "prefix": "regard.core.windows",
    "relative": "regard.core.biases",
    "route": "regard.kernels.route",
    "rule": "regard.core.biases",
    "scaled_dot": "regard.core.scores",
    "soft_dictionary": "regard.core.distances",
    "softmax": "regard.core.normalisers",
    "sparsemax": "regard.core.entmax",
    "squared_distance": "regard.core.distances",
    "t5_buckets": "regard.core.biases",
    "weigh": "regard.core.weigh",
    "window": "regard.core.windows",
}

__all__ = [*PUBLIC]  # noqa: PLE0604 (the keys are strings)

# The program that uses regard decides what is logged and where.
logging.getLogger("regard").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    module = PUBLIC.get(name)
    if module is None:
        raise AttributeError(_unknown(name), name=name)
    from importlib import import_module

    loaded = import_module(module)
    value = loaded if module == f"{__name__}.{name}" else getattr(loaded, name)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, __all__, n=1)
    return f"module 'regard' has no attribute {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
