"""Decoding: greedy, sampling, forced scoring and beam search over one function, step(state, token)."""

from regard.decoding.beam import beam
from regard.decoding.paths import NO_PENALTY, Hypothesis, Penalty, Step, StepFunction
from regard.decoding.single import forced, greedy, sample

__all__ = ["NO_PENALTY", "Hypothesis", "Penalty", "Step", "StepFunction", "beam", "forced", "greedy", "sample"]
