"""How a mask is drawn in a test: indented, one character a pair."""

from textwrap import dedent


def drawing(text: str) -> str:
    return dedent(text).strip("\n")
