"""The command line: what it prints, what it offers when it is called wrongly, and that it answers at once."""

import json
import os
import subprocess
import sys
import time
from statistics import median

import pytest
import torch
from typer.testing import CliRunner

import regard
from regard.cli import commands
from regard.environment import SETTINGS, as_text, describe


def called(*words: str) -> tuple[int, str]:
    """Exit code, and all that was printed, without the frames of boxes."""
    result = CliRunner().invoke(commands, list(words), env={"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"})
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("words", [("--help",), ("-h",), ()])
def test_help_lists_the_commands(words: tuple[str, ...]) -> None:
    code, text = called(*words)
    assert code == (0 if words else 2)
    assert "Usage: regard [OPTIONS] COMMAND [ARGS]..." in text
    assert "env Print what a bug report needs" in text
    assert "demo A layer learns where to look" in text


def test_every_command_and_option_says_what_it_does() -> None:
    for command in commands.registered_commands:
        assert command.callback is not None
        code, text = called(command.callback.__name__, "--help")
        assert code == 0
        assert (command.callback.__doc__ or "").partition("\n")[0] in text


def test_version() -> None:
    assert called("--version") == (0, f"regard {regard.__version__}")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("evn",), "No such command 'evn'. Did you mean 'env'?"),
        (("dmo",), "No such command 'dmo'. Did you mean 'demo'?"),
        (("env", "--jsn"), "No such option: --jsn (Possible options: --json)"),
        (("demo", "--sed", "3"), "No such option: --sed (Possible options: --seed)"),
        (("demo", "--seed", "x"), "Invalid value for '--seed'"),
    ],
)
def test_a_slip_is_met_with_the_nearest_name(words: tuple[str, ...], offered: str) -> None:
    code, text = called(*words)
    assert code == 2
    assert offered in text


def test_env_says_what_a_bug_report_needs() -> None:
    code, text = called("env")
    assert code == 0
    for fact in (
        f"regard {regard.__version__}",
        f"torch {torch.__version__}",
        f"threads {torch.get_num_threads()}",
        "gpus",
    ):
        assert fact in text


def test_env_for_machines_says_the_same() -> None:
    result = CliRunner().invoke(commands, ["env", "--json"])
    facts = json.loads(result.output)
    assert facts == json.loads(json.dumps(describe()))
    assert facts["torch"] == torch.__version__
    assert set(SETTINGS) <= set(facts)


def test_env_words_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"gpus": [], "mps": True, "triton": None, "NO_COLOR": None, "OMP_NUM_THREADS": "3", "names": ["a", "b"]}
    lines = [line.split(maxsplit=1) for line in as_text(facts).splitlines()]
    assert lines == [["gpus", "none"], ["mps", "yes"], ["triton", "none"], ["OMP_NUM_THREADS", "3"], ["names", "a; b"]]


def test_env_reads_no_other_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "do-not-print")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert describe()["OMP_NUM_THREADS"] == "5"
    assert "do-not-print" not in as_text(describe())


def test_python_m_regard_is_the_same() -> None:
    run = subprocess.run([sys.executable, "-m", "regard", "--version"], check=True, capture_output=True, text=True)
    assert run.stdout == f"regard {regard.__version__}\n"


LOADED = """
import sys
from regard.cli import commands
try:
    commands(sys.argv[1:])
finally:
    print("torch" in sys.modules, "numpy" in sys.modules)
"""


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_answers_without_torch(word: str) -> None:
    run = subprocess.run([sys.executable, "-c", LOADED, word], check=True, capture_output=True, text=True)
    assert run.stdout.strip().endswith("False False")


def seconds(*words: str) -> float:
    """Of a core, so that a busy machine does not count; on Windows, where that is not told, of the clock."""
    start, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    clock, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used or clock


def test_help_answers_at_once() -> None:
    """At most 0.3 s more than an interpreter that does nothing."""
    bare, helped = (median(seconds(*words) for _ in range(5)) for words in (("-c", "pass"), ("-m", "regard", "--help")))
    assert helped - bare <= 0.3
