"""The demonstration: it learns what it says it learns, shows it, and repeats."""

import subprocess
import sys

import pytest

from regard.demo import run


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.parametrize("seed", [0, 23])
def test_it_learns_to_look_where_it_must(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(seed, word="prime", steps=150) > 0.99
    lines = capsys.readouterr().out.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("before")) + 2
    letters, pictures = zip(*((line[0], line[2:].rstrip()) for line in lines[start : start + 5]), strict=True)
    assert "".join(letters) == "emirp"
    # The darkest cell of each row, in the picture on the right, lies on the diagonal from top right to bottom left.
    darkest = [picture.rindex("█") for picture in pictures]
    assert [darkest[0] - place for place in darkest] == [0, 2, 4, 6, 8]
    assert all(picture.count("█") == 2 for picture in pictures)


def test_before_learning_it_knows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(0, word="prime", steps=0) < 0.01
    assert not set("█▓") & set(capsys.readouterr().out)


def test_the_same_seed_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    printed = [(run(seed, word="prime", steps=10), capsys.readouterr().out)[1] for seed in (0, 0, 1)]
    assert printed[0] == printed[1] != printed[2]


def test_a_terminal_without_blocks_gets_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("COLUMNS", "120")
    shown = subprocess.run([sys.executable, "-m", "regard", "demo"], check=True, capture_output=True, text=True).stdout
    assert shown.isascii()
    assert "a ##" in shown
