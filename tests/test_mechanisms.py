"""The pages of the mechanisms keep their form: two sentences, a picture, equation, example, file, traps, paper."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in (DOCS / "mechanisms").glob("*.md") if path.stem != "index")
CITING = [*PAGES, DOCS / "what-weights-do-not-say.md"]
SECTIONS = ["Equation", "Example", "In regard", "Traps", "Paper"]
MOST_LINES = 12  # of an example

ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}$", re.MULTILINE | re.DOTALL)


def entries(text: str) -> dict[str, str]:
    return {match[1]: match[0] for match in ENTRY.finditer(text)}


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_parts(page: Path) -> None:
    text = read(page)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    first = text.split("\n\n")[1].replace("et al.", "")
    assert 2 <= len(re.findall(r"[.?](?= |$)", first)) <= 3, f"two sentences say what it is, not:\n{first}"
    assert f"../pictures/{page.stem}.svg)" in text
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        assert len(code.splitlines()) <= MOST_LINES, f"at most {MOST_LINES} lines:\n{code}"
    files = re.findall(r"`(regard/\w+/\w+\.py)`", text)
    assert files, "no file is named"
    assert not [file for file in files if not (ROOT / file).exists()]
    assert "regard.route(" in text
    assert entries(text), "no paper"


@pytest.mark.parametrize("page", CITING, ids=lambda page: page.stem)
def test_papers_are_those_of_the_bibliography(page: Path) -> None:
    known = entries(read(DOCS / "references.bib"))
    for key, entry in entries(read(page)).items():
        assert entry == known.get(key), f"{key}: not as in docs/references.bib"


def test_the_bibliography_is_sorted_and_used() -> None:
    keys = list(entries(read(DOCS / "references.bib")))
    assert keys == sorted(keys)
    used = {key for page in CITING for key in entries(read(page))}
    assert set(keys) == used


def test_every_mechanism_is_in_the_overview() -> None:
    overview = read(DOCS / "mechanisms" / "index.md")
    assert not [page.name for page in PAGES if f"({page.name})" not in overview]


def test_every_picture_is_drawn_and_shown_and_has_words() -> None:
    (listed,) = re.findall(r"^DRAWN = \((.*?)\)$", read(DOCS / "pictures" / "make.py"), re.M | re.S)
    drawn = {name.replace("_", "-") for name in re.findall(r"\w+", listed)}
    kept = {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    link = re.compile(r"!\[([^\]]*)\]\((?:\.\./)?pictures/([\w-]+)\.svg\)")
    shown = {name: words for page in DOCS.rglob("*.md") for words, name in link.findall(read(page))}
    assert drawn == kept == set(shown)
    assert not [name for name, words in shown.items() if len(words) < 30], "a picture needs words for those who hear it"
