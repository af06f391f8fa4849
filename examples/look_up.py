"""Additive attention as a layer: it learns to look up what it was told, and its weights are drawn in the terminal.

    python examples/look_up.py [--pairs 6] [--steps 300] [--seed 0]

A text tells pairs of a letter and a digit; asked for a letter, the layer must say its digit. Nothing tells it where to
look. The score, the normaliser and the projections are parts that `Attention` is given: try another score.
"""

import argparse
from string import ascii_lowercase

import torch
from torch import Tensor, nn

import regard
from regard.layers import AdditiveScore

SHADES = " ░▒▓█"


class LookUp(nn.Module):
    """Letters and digits as vectors, one attention, and a score for each digit."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.letters, self.digits = nn.Embedding(26, width), nn.Embedding(10, width)
        self.attention = regard.Attention(AdditiveScore(width, width, width))
        self.answer = nn.Linear(width, 10)

    def forward(self, letters: Tensor, digits: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
        """Letters and digits [batch, pairs], asked [batch, questions] -> scores of digits, and the weights."""
        query, key, value = self.letters(asked), self.letters(letters), self.digits(digits)
        context, seen = self.attention(query, key, value, see=regard.Weights())
        return self.answer(context), seen.weights


def told(batch: int, pairs: int) -> tuple[Tensor, Tensor]:
    """Different letters in each text, and a digit for each."""
    return torch.rand(batch, 26).argsort(-1)[:, :pairs], torch.randint(10, (batch, pairs))


def main(arguments: list[str] | None = None) -> float:
    reader = argparse.ArgumentParser(description="Additive attention learns to look up.")
    reader.add_argument("--pairs", type=int, default=6)
    reader.add_argument("--steps", type=int, default=300)
    reader.add_argument("--seed", type=int, default=0)
    asked = reader.parse_args(arguments)
    torch.manual_seed(asked.seed)

    model = LookUp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(asked.steps):
        letters, digits = told(128, asked.pairs)
        loss = nn.functional.cross_entropy(model(letters, digits, letters)[0].flatten(0, 1), digits.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(asked.steps // 5, 1) == 0:
            print(f"step {step:4d}  loss {loss.item():.3f}")

    with torch.no_grad():
        letters, digits = told(1000, asked.pairs)
        right = (model(letters, digits, letters)[0].argmax(-1) == digits).float().mean().item()
        print(f"right answers to new texts: {right:.1%}\n")

        letters, digits = told(1, asked.pairs)
        questions = letters.flip(-1)
        answers, weights = model(letters, digits, questions)
    pairs = [f"{ascii_lowercase[a]}{d}" for a, d in zip(letters[0].tolist(), digits[0].tolist(), strict=True)]
    print("asked  " + " ".join(f"{pair:<3}" for pair in pairs) + "  answer")
    for letter, row, digit in zip(
        questions[0].tolist(), weights[0].tolist(), answers[0].argmax(-1).tolist(), strict=True
    ):
        print(
            f"  {ascii_lowercase[letter]}    " + " ".join(3 * SHADES[round(4 * share)] for share in row) + f"  {digit}"
        )
    return right


if __name__ == "__main__":
    main()
