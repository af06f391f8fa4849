"""What the pages say is true: every python block runs, what it prints is what is shown, every link leads somewhere.

One namespace a page, blocks in order, in an empty folder. A ```text block that directly follows a ```python block is
what that block prints; numbers may differ by one in their last written digit.
"""

import contextlib
import io
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

import regard

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^([ \t]*)```(\w*)[^\n]*\n(.*?)^\1```[ \t]*$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@dataclass(frozen=True)
class Block:
    """One ```python block: its code, the line of the page it starts on, and the output shown for it."""

    code: str
    line: int
    shown: str | None


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    fences = list(FENCE.finditer(text))
    found = []
    for fence, following in zip_longest(fences, fences[1:]):
        if fence[2] != "python":
            continue
        follows = following and following[2] == "text" and not text[fence.end() : following.start()].strip()
        shown = dedented(following) if follows else None
        found.append(Block(dedented(fence), text.count("\n", 0, fence.start()) + 2, shown))
    return found


def dedented(fence: re.Match[str]) -> str:
    return re.sub(rf"^{fence[1]}", "", fence[3], flags=re.MULTILINE)


def printed(block: Block, page: str, names: dict[str, object]) -> str:
    """What the block prints; its lines are numbered as in the page, so that a traceback points there."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * (block.line - 1) + block.code, page, "exec"), names)
    return out.getvalue()


def same(printed: str, shown: str) -> bool:
    """Equal but for spaces at the ends of lines and one in the last written digit of a number with a point."""
    printed, shown = (re.sub(r"[ \t]+$", "", text.strip("\n"), flags=re.MULTILINE) for text in (printed, shown))
    if NUMBER.split(printed) != NUMBER.split(shown):
        return False
    return all(near(a, b) for a, b in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True))


def near(came: str, shown: str) -> bool:
    mantissa, _, exponent = shown.partition("e")
    _, point, digits = mantissa.partition(".")
    if not point:
        return came == shown
    last = 10.0 ** (int(exponent or 0) - len(digits))
    return abs(float(came) - float(shown)) <= 1.001 * last


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_pages_run_and_print_what_they_show(page: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        came = printed(block, named(page), names)
        if block.shown is not None:
            assert same(came, block.shown), f"{named(page)}:{block.line} prints\n\n{came}\nand shows\n\n{block.shown}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """And those of docs/ stay in docs/: the built site holds nothing else."""
    home = ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT
    links = {link: (page.parent / link).resolve() for link in LINK.findall(page.read_text(encoding="utf-8"))}
    lost = [link for link, target in links.items() if not (target.exists() and target.is_relative_to(home))]
    assert not lost, f"{named(page)}: {lost}"


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    missing = [page for page in PAGES[1:] if f" {page.relative_to(ROOT / 'docs').as_posix()}\n" not in contents]
    assert not missing, f"not in mkdocs.yml: {[named(page) for page in missing]}"
    listed = re.findall(r" ([\w/-]+\.md)\n", contents)
    lost = [page for page in listed if not (ROOT / "docs" / page).exists()]
    assert not lost, f"mkdocs.yml names pages that are not there: {lost}"


def test_every_public_name_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rooms = {"core", "kernels", "layers"}
    missing = [name for name in regard.__all__ if name not in rooms and not re.search(rf"\b{name}\b", reference)]
    assert not missing, f"docs/api.md does not mention {missing}"


PAGE = """
```python
depth = 3
print("depth", depth, 0.123)
```

```text
depth 3 0.124
```

A sentence.

```python
print(depth)
```

Not its output:

```text
5
```

- in a list

  ```python
  print("a \\nb")
  ```
  ```text
  a
  b
  ```
"""


def test_blocks_are_found_with_what_they_print() -> None:
    first, second, third = blocks(PAGE)
    assert (first.shown, first.line) == ("depth 3 0.124\n", 3)
    assert second.shown is None
    assert third.code == 'print("a \\nb")\n'
    names: dict[str, object] = {}
    assert [printed(block, "page", names) for block in (first, second)] == ["depth 3 0.123\n", "3\n"]
    assert same(printed(third, "page", names), third.shown or "")


@pytest.mark.parametrize(
    ("printed", "shown", "equal"),
    [
        ("0.123", "0.124", True),
        ("0.123", "0.125", False),
        ("-1.5e-03", "-1.6e-03", True),
        ("-1.5e-03", "-1.5e-02", False),
        ("7 keys", "8 keys", False),
        ("7 keys", "7 queries", False),
        ("a  \nb\n", "a\nb", True),
        ("[0.25, 0.75]", "[0.25]", False),
        ("nan", "0.1", False),
    ],
)
def test_only_the_last_digit_may_differ(printed: str, shown: str, equal: bool) -> None:
    assert same(printed, shown) is equal


def test_an_error_points_into_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        printed(Block("1 / 0\n", 41, None), "docs/page.md", {})
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1) == ("docs/page.md", 41)
