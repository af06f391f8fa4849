"""The layers: modules that hold weights, and call `core` and `kernels`; each is given its parts."""

from regard.layers.attention import Attention, Remembered
from regard.layers.blocks import PostNorm, PreNorm, TransformerBlock
from regard.layers.hard import Choice, GumbelChoice, HardAttention, HardChoice, Reinforce, reinforce, who_draws
from regard.layers.memory import Memory
from regard.layers.multihead import MultiHeadAttention
from regard.layers.normalisers import LearnedEntmax, LearnedTemperature, NormaliserLayer
from regard.layers.pooling import Pooling, redundancy
from regard.layers.positions import (
    AlibiPositions,
    BucketedPositions,
    LearnedPositions,
    PositionPart,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)
from regard.layers.scores import (
    AdditiveScore,
    BilinearScore,
    CosineScore,
    ImportanceScore,
    LocationScore,
    ScaledDotScore,
    ScoreLayer,
)

__all__ = [
    "AdditiveScore",
    "AlibiPositions",
    "Attention",
    "BilinearScore",
    "BucketedPositions",
    "Choice",
    "CosineScore",
    "GumbelChoice",
    "HardAttention",
    "HardChoice",
    "ImportanceScore",
    "LearnedEntmax",
    "LearnedPositions",
    "LearnedTemperature",
    "LocationScore",
    "Memory",
    "MultiHeadAttention",
    "NormaliserLayer",
    "Pooling",
    "PositionPart",
    "PostNorm",
    "PreNorm",
    "Reinforce",
    "RelativePositions",
    "Remembered",
    "RotaryPositions",
    "ScaledDotScore",
    "ScoreLayer",
    "SinusoidalPositions",
    "TransformerBlock",
    "redundancy",
    "reinforce",
    "who_draws",
]
