"""Parallel text: every way to keep it gives the same pairs, and what is wrong in it is named by file and line."""

import gzip
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from regard.data import lines as room
from regard.data.lines import kind, lines
from regard.data.pairs import pairs
from regard.data.troubles import DataError, Policy, Troubles

PAIRS = [("one dog", "un chien"), ("two\u2028cats\x0b", "deux\x85chats"), ("\ufeffthree", "trois  mots"), ("4", "5")]
SKIP = Policy(encoding="skip", empty="skip", long="skip", columns="skip", unequal="skip")


def packed(path: Path, text: bytes) -> Path:
    """The file, packed as its ending says."""
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "wb") as out:
        out.write(text)
    return path


def plain(pairs: list[tuple[str, str]], side: int) -> bytes:
    return "".join(f"{pair[side]}\n" for pair in pairs).encode()


def stripped(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(one.strip(), other.strip()) for one, other in pairs]


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_every_way_to_keep_them_is_the_same(tmp_path: Path, ending: str) -> None:
    one = packed(tmp_path / f"a.en{ending}", plain(PAIRS, 0))
    other = packed(tmp_path / f"a.fr{ending}", plain(PAIRS, 1))
    table = packed(tmp_path / f"a.tsv{ending}", "".join(f"7\t{b}\t{a}\n" for a, b in PAIRS).encode())
    objects = "".join(json.dumps({"fr": b, "en": a, "id": 7}) + "\n" for a, b in PAIRS)
    file = packed(tmp_path / f"a.jsonl{ending}", objects.encode())
    wanted = stripped(PAIRS)
    assert list(pairs(one, other)) == wanted
    assert list(pairs(table, columns=(2, 1))) == wanted
    assert list(pairs(file, keys=("en", "fr"))) == wanted
    assert list(pairs(str(one), str(other))) == wanted


@given(texts=st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1)] * 2)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_are_ended_by_line_feeds_alone(tmp_path: Path, texts: list[tuple[str, str]]) -> None:
    """Whatever else is in them; what is nothing but white space is counted."""
    troubles = Troubles()
    one, other = (packed(tmp_path / name, plain(texts, side)) for side, name in enumerate(("a", "b")))
    found = list(pairs(one, other, troubles=troubles))
    # A byte order mark at the very beginning is the encoding's, and no white space that `strip` would know.
    texts = [
        tuple(text.removeprefix("\ufeff") if place == 0 else text for text in pair) for place, pair in enumerate(texts)
    ]
    assert found == [pair for pair in stripped(texts) if all(pair)]
    assert len(found) + troubles.counts.get("empty", 0) == len(texts)


def test_the_end_of_a_line_may_be_windows_and_the_last_may_have_none(tmp_path: Path) -> None:
    path = packed(tmp_path / "a", b"\xef\xbb\xbfone\r\ntwo\r\n\xc3\xa9t\xc3\xa9")
    assert list(lines(path, Troubles())) == [(1, "one"), (2, "two"), (3, "été")]
    assert list(lines(packed(tmp_path / "empty", b""), Troubles())) == []


def test_what_is_left_out_is_counted_and_named(tmp_path: Path) -> None:
    source = packed(tmp_path / "a", b"one\n\nthree\n\xff\nfive\nsix six six six\nseven\neight\nnine\n")
    target = packed(tmp_path / "b", b"un\ndeux\n  \nquatre\ncinq\nsix\nsept\n\xc3\n")
    troubles = Troubles(Policy(encoding="skip", unequal="skip", longest=9))
    assert list(pairs(source, target, troubles=troubles)) == [("one", "un"), ("five", "cinq"), ("seven", "sept")]
    assert troubles.counts == {"empty": 2, "encoding": 2, "long": 1, "unequal": 1}
    assert str(troubles) == (
        f"empty: 2 left out ({source}:2, {source}:3); encoding: 2 left out ({source}:4, {target}:8); "
        f"long: 1 left out ({source}:6); unequal: 1 left out ({source}:9)"
    )
    assert str(Troubles()) == "nothing left out"


def test_a_summary_names_the_first_few(tmp_path: Path) -> None:
    troubles = Troubles()
    path = packed(tmp_path / "a", b"\n" * 1234)
    assert list(pairs(path, path, troubles=troubles)) == []
    assert str(troubles) == f"empty: 1,234 left out ({path}:1, {path}:2, {path}:3, …)"


def test_every_line_beyond_the_shorter_file_is_counted(tmp_path: Path) -> None:
    short, long = packed(tmp_path / "a", b"one\n"), packed(tmp_path / "b", b"un\ndeux\ntrois\n")
    for sides in ((short, long), (long, short)):
        troubles = Troubles(Policy(unequal="skip"))
        assert len(list(pairs(*sides, troubles=troubles))) == 1
        assert troubles.counts == {"unequal": 2}
        assert troubles.places["unequal"] == [f"{long}:2", f"{long}:3"]


BAD = {
    "encoding": ("a.tsv", b"one\tun\ntwo\tde\xffx\n", ":2: byte 7 of the line is not UTF-8"),
    "columns": ("a.tsv", b"one\tun\ntwo\n", ":2: 1 columns, wanted column 1 from zero"),
    "no JSON": ("a.jsonl", b'{"source": "one", "target": "un"}\n{"source"\n', ":2: no JSON: "),
    "no object": ("a.jsonl", b'["one", "un"]\n', ":1: no text under 'source'"),
    "no text": ("a.jsonl", b'{"source": "one", "target": 7}\n', ":1: no text under 'target'"),
    "no key": ("a.jsonl", b'{"source": "one"}\n', ":1: no text under 'target'"),
    "empty": ("a.tsv", b"one\t\n", ":1: the target is empty"),
    "empty source": ("a.tsv", b" \tun\n", ":1: the source is empty"),
    "an empty line of columns": ("a.tsv", b"\n", ":1: the source is empty"),
    "an empty line": ("a.jsonl", b"\n", ":1: the source is empty"),
    "long": ("a.tsv", b"one\tun\nthree\tcinquante\n", ":2: 9 characters, at most 7"),
}
STOP = Policy("stop", "stop", "stop", "stop", "stop", longest=7)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_stops_or_is_left_out(tmp_path: Path, name: str) -> None:
    file, text, wanted = BAD[name]
    path = packed(tmp_path / file, text)
    with pytest.raises(DataError) as error:
        list(pairs(path, troubles=Troubles(STOP)))
    assert str(error.value).startswith(f"{path}{wanted}")
    assert ". Remedy: mend the line, or leave such lines out with " in str(error.value)
    troubles = Troubles(Policy("skip", "skip", "skip", "skip", "skip", longest=7))
    found = list(pairs(path, troubles=troubles))
    assert found == ([("one", "un")] if text.count(b"\n") == 2 else [])
    assert sum(troubles.counts.values()) == 1


def test_files_of_different_length_stop(tmp_path: Path) -> None:
    one, other = packed(tmp_path / "a", b"one\ntwo\n"), packed(tmp_path / "b", b"un\n")
    with pytest.raises(DataError, match=r"a:2: .*b has only 1 lines\. Remedy: mend the line, or .* unequal='skip'\."):
        list(pairs(one, other))


@pytest.mark.parametrize("ending", [".gz", ".xz"])
@pytest.mark.parametrize("harm", ["cut", "changed", "not packed"])
def test_a_broken_archive_is_named(tmp_path: Path, ending: str, harm: str) -> None:
    text = "".join(f"line {number * number}\n" for number in range(5000)).encode()
    path = packed(tmp_path / f"a{ending}", text)
    held = bytearray(path.read_bytes())
    if harm == "changed":
        held[len(held) // 2] ^= 0xFF
    path.write_bytes(held[: len(held) // 2] if harm == "cut" else b"plain text\n" if harm == "not packed" else held)
    with pytest.raises(
        DataError, match=r"it cannot be unpacked after line [\d,]+ \(.+\)\. Remedy: fetch or pack it again"
    ):
        list(lines(path, Troubles(SKIP)))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: there is no such file\. Remedy: its full path"):
        list(pairs(tmp_path / "nowhere", tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r": is a folder, wanted a file\. Remedy: name the file in it\."):
        list(pairs(tmp_path, tmp_path))
    with pytest.raises(DataError, match=r"one file came that is neither \.tsv nor \.jsonl; wanted both sides"):
        list(pairs(tmp_path / "a.txt"))


def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST", 8)
    path = packed(tmp_path / "a", b"one\n" + b"x" * 30 + b"\n1234567\n12345678\nfour\n" + b"y" * 40)
    troubles = Troubles()
    assert list(lines(path, troubles)) == [
        (1, "one"), (2, None), (3, "1234567"), (4, None), (5, "four"), (6, None)
    ]  # fmt: skip
    assert troubles.counts == {"long": 3}
    assert troubles.places == {"long": [f"{path}:2", f"{path}:4", f"{path}:6"]}
    with pytest.raises(DataError, match=r"a:2: more than 8 bytes\. Remedy: mend the line"):
        list(lines(path, Troubles(STOP)))


@pytest.mark.parametrize(
    ("file", "bad", "good"),
    [
        ("a.tsv", [b"\xff\t\xff", b"one", b""], b"two\tdeux"),
        ("a.jsonl", [b"\xff", b"{", b"[]", b""], b'{"source": "two", "target": "deux"}'),
    ],
)
def test_what_follows_a_bad_line_is_read(tmp_path: Path, file: str, bad: list[bytes], good: bytes) -> None:
    for line in bad:
        path = packed(tmp_path / file, line + b"\n" + good + b"\n")
        assert list(pairs(path, troubles=Troubles(SKIP))) == [("two", "deux")]


def test_a_line_as_long_as_is_allowed(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tsv", b"1234567\tabcdefg\n")
    assert list(pairs(path, troubles=Troubles(STOP))) == [("1234567", "abcdefg")]


def test_it_reads_as_it_goes(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tsv", b"one\tun\n\xff\n")
    reading = pairs(path)
    assert next(reading) == ("one", "un")
    with pytest.raises(DataError):
        next(reading)


def test_the_ending_says_what_is_held() -> None:
    assert [kind(Path(name)) for name in ("a.tsv", "a.tsv.gz", "a.b.jsonl.xz", "a", "a.gz")] == [
        ".tsv", ".tsv", ".jsonl", "", ""
    ]  # fmt: skip


def test_policies_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^empty: came 'drop', wanted 'stop' or 'skip'\. Remedy"):
        Policy(empty="drop")
    with pytest.raises(ValueError, match=r"^longest: came 0, wanted a count of characters\. Remedy: 5000\."):
        Policy(longest=0)
    assert Policy(longest=1).longest == 1
