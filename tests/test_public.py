"""The public names: each is there, says what it is, and costs nothing until it is used."""

import importlib
import inspect
import subprocess
import sys
from statistics import median

import pytest

import regard


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("name", regard.__all__)
def test_each_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(regard, name)
    home = importlib.import_module(regard.PUBLIC[name])
    assert value is (home if inspect.ismodule(value) else getattr(home, name))
    assert inspect.getdoc(value), f"regard.{name} has no docstring"


def test_the_list_is_whole() -> None:
    assert set(regard.__all__) <= set(dir(regard))
    assert "__version__" in dir(regard)
    assert dir(regard) == sorted(dir(regard))


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = regard.dot
    monkeypatch.setattr(importlib, "import_module", None)
    assert regard.dot is before


@pytest.mark.parametrize(
    ("wrong", "near"), [("atend", "attend"), ("sparse_max", "sparsemax"), ("attention", "Attention")]
)
def test_an_unknown_name_offers_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'regard' has no attribute '{wrong}'; did you mean '{near}'\?$"):
        getattr(regard, wrong)


def test_a_name_like_no_other_offers_nothing() -> None:
    with pytest.raises(AttributeError, match=r"^module 'regard' has no attribute 'zzzzz'$"):
        regard.zzzzz  # noqa: B018


def test_import_loads_no_torch_and_configures_no_logging() -> None:
    assert python("import sys, regard; print('torch' in sys.modules, 'rich' in sys.modules)") == "False False"
    assert python("import logging, regard; print(logging.root.handlers, logging.getLogger('regard').handlers)") == (
        "[] [<NullHandler (NOTSET)>]"
    )


def test_import_is_quick_beside_torch() -> None:
    """At most 0.1 s of a core more than torch itself, with the first name loaded too."""
    timed = "import time, torch; start = time.process_time(); {}; print(time.process_time() - start)"
    assert median(float(python(timed.format("import regard; regard.attend"))) for _ in range(3)) <= 0.1
