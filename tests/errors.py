"""What an error is held to: its full text, with the argument, what came, what was wanted and the remedy."""

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

import regard

QUERY, KEY, VALUE = torch.randn(2, 5, 3), torch.randn(2, 7, 3), torch.randn(2, 7, 11)


class Error(NamedTuple):
    """The exception that a call raises, and what it says."""

    kind: type[Exception]
    text: str
    call: Callable[[], object]


def says(kind: type[Exception], text: str, call: Callable[[], object]) -> Error:
    return Error(kind, text, call)


def attend(**changed: object) -> object:
    """A call that is right but for what is changed."""
    arguments = {"query": QUERY, "key": KEY, "value": VALUE} | changed
    return regard.attend(**arguments)


def hold(error: Error) -> None:
    with pytest.raises(error.kind, match=f"^'?{re.escape(error.text)}'?$") as caught:
        error.call()
    assert type(caught.value) is error.kind
