"""The reference is whole and up to date: every public name, with the signature and the docstring that it has."""

from collections import Counter
from types import ModuleType

import pytest

import regard
from regard import layers
from tests.scripts import DOCS, script


@pytest.fixture(scope="module")
def make_api() -> ModuleType:
    return script(DOCS / "make_api.py")


def test_the_page_is_what_the_script_writes(make_api: ModuleType) -> None:
    written = (DOCS / "api.md").read_text(encoding="utf-8")
    fresh = make_api.page()
    if written != fresh:
        old, new = written.splitlines(), fresh.splitlines()
        first = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        pytest.fail(
            f"docs/api.md is out of date from line {first + 1}. Remedy: python docs/make_api.py\n"
            f"page:   {old[first : first + 3]}\nscript: {new[first : first + 3]}"
        )


def test_every_public_name_has_its_entry_once(make_api: ModuleType) -> None:
    named = Counter(name for _, _, names in make_api.SECTIONS for name in names)
    assert not [name for name, times in named.items() if times > 1]
    plain = {name for name in named if "." not in name}
    assert plain | set(make_api.ROOMS) == set(regard.__all__)
    parts = {name.rpartition(".")[2] for name in named if name.startswith("regard.layers.")}
    assert parts | plain >= set(layers.__all__), "a part of regard.layers has no entry in docs/make_api.py"


def test_signatures_name_every_parameter(make_api: ModuleType) -> None:
    assert make_api.signature("dot", regard.dot) == "dot(scale: float | Tensor = 1.0) -> Dot | LearnedDot"
    attend = make_api.signature("attend", regard.attend)
    assert attend.startswith("attend(\n    query: Tensor | None,\n    key: Tensor,\n    value: Tensor,\n    *,\n")
    assert "    normalise: Callable = softmax(),\n" in attend
    assert "0x" not in make_api.page(), "a default is shown by its address"


def test_docstrings_become_pages_without_stray_emphasis(make_api: ModuleType) -> None:
    assert make_api.described("A [*batch, q] and\na [*batch] times * two.") == (
        r"A `[*batch, q]` and a `[*batch]` times \* two."
    )
    assert make_api.described("First.\n\nname    in a column\nother   in a column") == (
        "First.\n\n```\nname    in a column\nother   in a column\n```"
    )
