"""Draw the pictures of the pages: `python docs/pictures/make.py [NAME …]`, which needs matplotlib.

Every number in them is computed by regard. NAME.svg is for the page NAME.md. With `--png FOLDER` they are drawn as PNG
into that folder, to look at.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
from of_scores import (
    additive,
    bilinear,
    cosine,
    distance,
    dot,
    importance,
    location,
    scaled_dot,
    soft_dictionary,
    terms,
)
from of_weights import biases, coattention, hard, heads, index, kinds, masks, seeing, softmax, sparse

HERE = Path(__file__).parent
DRAWN = (
    index,
    dot,
    scaled_dot,
    bilinear,
    additive,
    cosine,
    distance,
    soft_dictionary,
    importance,
    location,
    terms,
    coattention,
    softmax,
    sparse,
    hard,
    masks,
    biases,
    heads,
    kinds,
    seeing,
)
PICTURES = {draw.__name__.replace("_", "-"): draw for draw in DRAWN}


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
