"""The map: which room may import which, README's tree, sizes and names. Reads the sources; imports nothing of them.

`python tests/test_map.py` writes README's tree anew, from the first line of each module.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "regard"

# An import goes to a room of strictly lower rank, or stays in its own room. A room is a folder, or a module that
# stands by itself in regard/.
RANKS = {
    "core": 0,
    "kernels": 1,
    "data": 1,
    "decoding": 1,
    "alignment": 1,
    "layers": 2,
    "tasks": 2,
    "systems": 3,
    "training": 3,
    "look": 3,
    "audits": 4,
    "zoo": 4,
    "serve": 5,
    "demo": 5,
    "environment": 5,
    "cli": 6,
    "__main__": 7,
    "__init__": 8,
}
ONLY_TORCH = {"core": {"torch"}, "kernels": {"torch", "triton"}, "layers": {"torch"}}  # beyond Python's own
FORBIDDEN_FILES = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
FORBIDDEN_NAMES = re.compile(r"^(att|alphas|probs|src_mask\d*|.*_v\d+)$")
ELBOWS = ("├── ", "└── ")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


OURS = sources("regard")
ALL = sources("regard", "tests", "benchmarks", "examples")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Each import with its line, inside functions too; `from a import b` is a.b where that is a module of ours."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{named(path)}:{node.lineno}: relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@pytest.mark.parametrize("path", OURS, ids=named)
def test_imports_go_down(path: Path) -> None:
    here = room(path)
    assert here in RANKS, f"{here} has no rank yet: give it one in RANKS and a line in README's tree"
    wrong = []
    for line, name in imported(path):
        parts = name.split(".")
        if parts[0] != "regard" or name == "regard.__version__":
            continue
        there = parts[1] if parts[1:] and parts[1] in RANKS else "__init__"
        if there != here and RANKS[there] >= RANKS[here]:
            wrong.append(f"{named(path)}:{line}: {here} (rank {RANKS[here]}) imports {name} (rank {RANKS[there]})")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", [path for path in OURS if room(path) in ONLY_TORCH], ids=named)
def test_the_lower_rooms_need_torch_alone(path: Path) -> None:
    known = ONLY_TORCH[room(path)] | {"regard"} | sys.stdlib_module_names
    wrong = [f"{named(path)}:{line}: {name}" for line, name in imported(path) if name.split(".")[0] not in known]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", ALL, ids=named)
def test_files_are_small(path: Path) -> None:
    limit = 500 if path.is_relative_to(ROOT / "tests") or path.is_relative_to(PACKAGE / "kernels") else 300
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= limit, f"{named(path)} has {lines} lines, at most {limit}: two ideas, two files"


@pytest.mark.parametrize("path", sources("regard", "benchmarks", "examples"), ids=named)
def test_functions_are_small_and_say_what_they_take(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= 80, f"{named(path)}:{node.lineno}: {node.name} has {lines} lines, at most 80"
            assert node.args.kwarg is None, f"{named(path)}:{node.lineno}: {node.name} hides its arguments in **"


@pytest.mark.parametrize("path", ALL, ids=named)
def test_names_explain_themselves(path: Path) -> None:
    for part in path.relative_to(ROOT).parts:
        assert part.removesuffix(".py") not in FORBIDDEN_FILES, f"{named(path)}: {part} says nothing of what it holds"
        assert not FORBIDDEN_NAMES.match(part.removesuffix(".py")), f"{named(path)}: {part}"
    for node in ast.walk(parsed(path)):
        name = next(
            (getattr(node, kind) for kind in ("name", "arg", "id") if isinstance(getattr(node, kind, 0), str)), ""
        )
        assert not FORBIDDEN_NAMES.match(name), f"{named(path)}:{getattr(node, 'lineno', '')}: {name}"


def first_line(path: Path) -> str:
    return (ast.get_docstring(parsed(path)) or "").partition("\n")[0].removesuffix(".")


@pytest.mark.parametrize("path", OURS, ids=named)
def test_every_module_says_what_it_is_in_one_line(path: Path) -> None:
    text = ast.get_docstring(parsed(path)) or ""
    first, _, rest = text.partition("\n")
    assert first.endswith((".", ":")), f"{named(path)}: the first line of its docstring is one sentence"
    assert not rest or rest.startswith("\n"), f"{named(path)}: an empty line follows the first"


def tree() -> str:
    """README's tree: every room and module with the first line of its docstring."""
    rows = [("regard/", "")]
    folders = sorted(path.parent for path in OURS if path.name == "__init__.py" and path.parent != PACKAGE)
    alone = [path for path in OURS if path.parent == PACKAGE]
    folders.sort(key=lambda folder: (RANKS.get(folder.name, 99), folder.name))
    entries = [PACKAGE / "__init__.py", *folders, *(path for path in alone if path.name != "__init__.py")]
    for entry in entries:
        last = entry == entries[-1]
        if entry.is_dir():
            rows.append(
                (f"{ELBOWS[last]}{entry.name}/", f"rank {RANKS.get(entry.name)} · {first_line(entry / '__init__.py')}")
            )
            modules = sorted(path for path in entry.glob("*.py") if path.name != "__init__.py")
            stem = "    " if last else "│   "
            rows += [(f"{stem}{ELBOWS[m == modules[-1]]}{m.name}", first_line(m)) for m in modules]
        else:
            rows.append((f"{ELBOWS[last]}{entry.name}", first_line(entry)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}".rstrip() for name, text in rows)


FENCED_TREE = re.compile(r"```text\n(regard/\n.*?)```", re.DOTALL)


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_holds_the_tree() -> None:
    found = FENCED_TREE.search(readme())
    assert found, "README.md has no tree of the rooms"
    assert found[1] == tree() + "\n", "README's tree is not what is on disk; `make map` writes it"


def test_rooms_are_one_level_deep() -> None:
    deep = [named(path) for path in OURS if len(path.relative_to(PACKAGE).parts) > 2]
    assert not deep, deep


def test_public_names_are_sorted_and_typed() -> None:
    module = parsed(PACKAGE / "__init__.py")
    tables = [node.value for node in module.body if isinstance(node, ast.Assign) and node.targets[0].id == "PUBLIC"]
    table = ast.literal_eval(tables[0])
    assert list(table) == sorted(table)
    typed = {}
    for guard in (node for node in module.body if isinstance(node, ast.If)):
        for node in guard.body:
            assert isinstance(node, ast.ImportFrom)
            for alias in node.names:
                assert alias.asname == alias.name, f"{alias.name}: write `{alias.name} as {alias.name}`, it is exported"
                typed[alias.name] = f"regard.{alias.name}" if node.module == "regard" else node.module
    assert typed == table, "what editors are told and what is loaded differ"


def test_dependencies_are_few_and_open() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(project["dependencies"]) <= 12
    assert project["requires-python"] == ">=3.11"
    assert "torch>=2.11" in project["dependencies"]
    capped = [need for need in project["dependencies"] if re.search(r"<|==|~=", need)]
    assert not capped, f"a library that caps its needs cannot be installed beside others: {capped}"


def test_the_version_is_the_same_everywhere() -> None:
    version = re.search(r'__version__ = "(.+)"', (PACKAGE / "__init__.py").read_text(encoding="utf-8"))[1]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(
        rf"^## \[({re.escape(version)}|Unreleased)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )


def test_contributing_says_what_to_write_and_touch() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "| to add… | write | touch |" in text
    rows = text.partition("| to add… | write | touch |")[2].partition("\n\n")[0].strip().splitlines()[1:]
    assert len(rows) >= 3
    for path in re.findall(r"`([\w./]+/[\w./]*)`", "\n".join(rows)):
        place = path.replace("NAME.py", "").replace("NAME.md", "").replace("test_NAME.py", "").removesuffix("test_")
        assert (ROOT / place).exists() or (PACKAGE / place).exists(), (
            f"CONTRIBUTING.md names {path}, which is not there"
        )


if __name__ == "__main__":
    (ROOT / "README.md").write_text(
        FENCED_TREE.sub(lambda _: f"```text\n{tree()}\n```", readme()), encoding="utf-8", newline="\n"
    )
