"""The page of results is what its script writes from the rows, and says for every figure how to measure it again."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts import DOCS, script


@pytest.fixture(scope="module")
def make_results() -> ModuleType:
    return script(DOCS / "make_results.py")


def test_the_page_is_what_the_script_writes(make_results: ModuleType) -> None:
    written = (DOCS / "results.md").read_text(encoding="utf-8")
    assert written == make_results.page(), "Remedy: python docs/make_results.py"


def test_every_file_of_rows_is_on_the_page(make_results: ModuleType) -> None:
    shown = {part.file for part in make_results.SECTIONS} | {"survivors.csv"}  # the reasons beside mutants.csv
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


def test_of_long_runs_the_last_of_each_kind_counts(
    make_results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_results, "ROWS", tmp_path)
    head = "what,cases,failures,seed,date,commit,torch,device,rows,left_out,by_own,repeated\n"
    rows = [("forward", 1, "a"), ("laws", 0, "b"), ("forward", 0, "c")]
    lines = [f"{what},9,{failures},0,2026-01-01,{commit},2.13,cpu,0,0,0,0\n" for what, failures, commit in rows]
    (tmp_path / "soak.csv").write_text(head + "".join(lines), encoding="utf-8")
    found = {row["what"]: row["commit"] for row in make_results.newest("soak.csv")}
    assert found == {"forward": "c", "laws": "b"}
