"""The page of results is what its script writes from the rows, and says for every figure how to measure it again."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture(scope="module")
def make_results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_results", DOCS / "make_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_results"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_writes(make_results: ModuleType) -> None:
    written = (DOCS / "results.md").read_text(encoding="utf-8")
    assert written == make_results.page(), "Remedy: python docs/make_results.py"


def test_every_file_of_rows_is_on_the_page(make_results: ModuleType) -> None:
    shown = {part.file for part in make_results.SECTIONS}
    assert {path.name for path in make_results.ROWS.glob("*.csv")} <= shown


def test_the_newest_run_counts(make_results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_results, "ROWS", tmp_path)
    head = "date,commit,torch,device,case,mb_beyond_inputs,seconds\n"
    old, new = "2026-01-01,aaa,2.11,cpu,long,9,1\n", "2026-01-02,bbb,2.11,cpu,long,7.4,1\n"
    (tmp_path / "memory.csv").write_text(head + old + new + new.replace("long", "longer"), encoding="utf-8")
    assert [row["case"] for row in make_results.newest("memory.csv")] == ["long", "longer"]
    page = make_results.page()
    assert "commit `bbb`" in page
    assert "aaa" not in page
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == ["Memory"]
    assert "| longer | 7 MB | 1 s |" in page
