"""Fetching from a server on this machine: whole, in parts, from servers that misbehave."""

import hashlib
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from regard.data import fetch as room
from regard.data.fetch import fetch
from regard.data.troubles import DataError

CONTENT = random.Random(3).randbytes(300_007)
SUM = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """What it was asked, and how it is to behave: how many bytes it gives at most, and whether it can go on."""

    daemon_threads = True
    asked: list[str | None]
    most: int | None = None
    ranges = True
    says_length = True
    silent = False
    over: threading.Event
    content = CONTENT

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/set.tar"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        span = self.headers.get("Range")
        server.asked.append(span)
        if self.path != "/set.tar":
            self.send_error(404)
            return
        start = int(span.removeprefix("bytes=").removesuffix("-")) if span and server.ranges else 0
        if start >= len(server.content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if server.says_length:
            self.send_header("Content-Length", str(len(server.content) - start))
        self.end_headers()
        if server.silent:
            server.over.wait()  # until the test is over
            return
        stop = len(server.content) if server.most is None else start + server.most
        self.wfile.write(server.content[start:stop])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as serving:
        serving.asked, serving.over = [], threading.Event()
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield serving
        serving.over.set()
        serving.shutdown()
        thread.join()


def test_a_file_comes_whole_and_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "set.tar"
    told: list[tuple[int, int | None]] = []
    assert fetch(server.url, path, SUM, report=lambda have, whole: told.append((have, whole))) == path
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [entry.name for entry in path.parent.iterdir()] == ["set.tar"]
    fetch(server.url, path, SUM)
    assert server.asked == [None]


def test_a_fetch_that_broke_off_goes_on(server: Server, tmp_path: Path) -> None:
    path, server.most = tmp_path / "set.tar", 100_000
    for have in ("100,000", "200,000", "300,000"):
        with pytest.raises(
            DataError, match=rf"ended after {have} of 300,007 bytes\), with {have} bytes here\. Remedy: fetch"
        ):
            fetch(server.url, path, SUM)
        assert not path.exists()
    fetch(server.url, path, SUM)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", "bytes=200000-", "bytes=300000-"]


def test_a_server_that_cannot_go_on_begins_again(server: Server, tmp_path: Path) -> None:
    path, server.ranges = tmp_path / "set.tar", False
    (tmp_path / "set.tar.part").write_bytes(CONTENT[:70_000])
    fetch(server.url, path, SUM)
    assert path.read_bytes() == CONTENT
    assert server.asked == ["bytes=70000-"]


def test_all_of_it_was_there(server: Server, tmp_path: Path) -> None:
    """Interrupted between the last byte and the name."""
    (tmp_path / "set.tar.part").write_bytes(CONTENT)
    assert fetch(server.url, tmp_path / "set.tar", SUM).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "held", [b"", CONTENT[:5] + b"!", CONTENT + b"more"], ids=["other bytes", "a wrong part", "too much"]
)
def test_what_has_another_sum_is_thrown_away(server: Server, tmp_path: Path, held: bytes) -> None:
    path = tmp_path / "set.tar"
    if held:
        (tmp_path / "set.tar.part").write_bytes(held)
    else:
        server.content = CONTENT[::-1]
    with pytest.raises(
        DataError, match=r"what came has the SHA-256 [0-9a-f]{64}, wanted [0-9a-f]{64}, and was thrown away"
    ):
        fetch(server.url, path, SUM)
    assert list(tmp_path.iterdir()) == []
    server.content = CONTENT
    assert fetch(server.url, path, SUM).read_bytes() == CONTENT


def test_another_file_of_that_name_is_left_alone(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "set.tar"
    path.write_bytes(b"mine")
    with pytest.raises(DataError, match=r"set\.tar: its SHA-256 is [0-9a-f]{64}, wanted .* Remedy: move it away"):
        fetch(server.url, path, SUM)
    assert path.read_bytes() == b"mine"
    assert server.asked == []


def test_what_is_not_there(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the server says 404 Not Found\. Remedy: look the address up"):
        fetch(server.url.replace("set", "other"), tmp_path / "set.tar", SUM)
    server.server_close()
    with pytest.raises(DataError, match=r"it broke off \(.+\), with 0 bytes here\. Remedy: fetch it again, to go on"):
        fetch(server.url, tmp_path / "set.tar", SUM, timeout=2)
    with pytest.raises(DataError, match=r"it broke off \((?!<)"):
        fetch(server.url.replace("http:", "https:"), tmp_path / "set.tar", SUM, timeout=2)
    for url in ("ftp://127.0.0.1/set.tar", "file:///etc/hosts", "set.tar"):
        with pytest.raises(DataError, match=r"^url: came .*, wanted one that begins with https:// or http://"):
            fetch(url, tmp_path / "set.tar", SUM)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_say_how_much_there_is(server: Server, tmp_path: Path) -> None:
    server.says_length, told = False, []
    fetch(server.url, tmp_path / "set.tar", SUM, report=lambda have, whole: told.append((have, whole)))
    assert told[-1] == (len(CONTENT), None)


def test_a_server_that_says_nothing_is_not_waited_for(server: Server, tmp_path: Path) -> None:
    server.silent = True
    with pytest.raises(DataError, match=r"it broke off \(timed out\), with 0 bytes here"):
        fetch(server.url, tmp_path / "set.tar", SUM, timeout=0.2)


def test_a_part_stays_where_the_file_is_gone(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.tar.part").write_bytes(CONTENT[:70_000])
    with pytest.raises(DataError, match="the server says 404"):
        fetch(server.url.replace("set", "other"), tmp_path / "set.tar", SUM)
    assert (tmp_path / "set.tar.part").read_bytes() == CONTENT[:70_000]


def test_an_interrupted_fetch_leaves_its_part(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PIECE", 10_000)

    def stop(have: int, whole: int | None) -> None:
        if have >= 50_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server.url, tmp_path / "set.tar", SUM, report=stop)
    assert (tmp_path / "set.tar.part").read_bytes() == CONTENT[:50_000]
    assert fetch(server.url, tmp_path / "set.tar", SUM).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=50000-"]
