"""Every example runs, in a few seconds, and does what it says."""

from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.scripts import EXAMPLES, script


def example(name: str) -> ModuleType:
    return script(EXAMPLES / f"{name}.py")


def test_additive_attention_learns_to_look_up(capsys: pytest.CaptureFixture[str]) -> None:
    right = example("look_up").main(["--pairs", "5", "--steps", "60"])
    assert right > 0.95
    picture = capsys.readouterr().out.rpartition("asked")[2].splitlines()[1:]
    dark = [line.index("█") for line in picture]
    assert dark == sorted(dark, reverse=True), "asked backwards, it looks backwards"


def test_heads_learn_how_sparse_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    best, mean = example("learned_entmax").main(["--keys", "7", "--steps", "60"])
    assert mean < 1.5 < best
    last = capsys.readouterr().out.splitlines()[-1].split()
    assert float(last[-2]) < 3
    assert float(last[-1]) > 6.5


@pytest.mark.parametrize("score", [[], ["--additive"]], ids=["scaled dot", "additive"])
def test_long_text_finds_what_was_planted(score: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    seen = example("long_text").main(["--tokens", "640", *score])
    assert torch.allclose(seen.received.sum(), torch.tensor(640.0))
    assert seen.map.shape == (24, 24)
    if not score:
        assert seen.received.argmax() == 0
        assert "it quotes token 79" in capsys.readouterr().out
        assert seen.top.indices[-1, 0] in (79, 639)
        assert 79 in seen.top.indices[-1]


@pytest.mark.parametrize(("queries", "keys"), [(8, 8), (4, 7), (7, 4)])
def test_the_zoo_draws_itself(queries: int, keys: int, capsys: pytest.CaptureFixture[str]) -> None:
    zoo = example("mask_zoo")
    zoo.main(["--queries", str(queries), "--keys", str(keys)])
    shown = capsys.readouterr().out.split("\n\n")[:-1]
    masks = zoo.zoo(queries, keys)
    assert len(shown) == len(masks)
    for text, (name, mask) in zip(shown, masks.items(), strict=True):
        title, written, *rows = text.lstrip("\n").split("\n")
        assert (title, written) == (name, repr(mask))
        drawn = [[character == "█" for character in row] for row in rows]
        assert torch.equal(torch.tensor(drawn), mask.dense(queries, keys))


def test_every_example_is_tested_and_says_how_to_run_it() -> None:
    tested = Path(__file__).read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f'example("{path.stem}")' in tested
        assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")
