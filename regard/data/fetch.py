"""Fetching a file by HTTP: goes on where it broke off, checked against its sum, and never there in part."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO

from regard.data.troubles import DataError

PIECE = 1 << 20
Report = Callable[[int, int | None], None]
"""Called with the bytes that are there and, where the server says, how many there will be."""


def fetch(url: str, path: Path, sha256: str, *, report: Report | None = None, timeout: float = 30.0) -> Path:
    """The file at `path`, from `url` if it is not there yet; nothing is asked for where it is there and right.

    What has come lies beside it as NAME.part until all of it is there and its sum is right, so an interrupted fetch
    goes on, and a broken one is never taken for the file.
    """
    if not url.startswith(("http://", "https://")):
        raise DataError(
            f"url: came {url!r}, wanted one that begins with https:// or http://. Remedy: its full address."
        )
    if path.exists():
        found = summed(path)
        if found == sha256:
            return path
        raise DataError(
            f"{path}: its SHA-256 is {found}, wanted {sha256}. Remedy: move it away, and fetch it again; or it is "
            f"another version, which regard does not know."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        download(url, part, report, timeout)
    except urllib.error.HTTPError as error:
        raise DataError(f"{url}: the server says {error.code} {error.reason}. Remedy: look the address up.") from None
    except (OSError, HTTPException) as error:
        have = part.stat().st_size if part.exists() else 0
        what = error.reason if isinstance(error, urllib.error.URLError) else error
        raise DataError(
            f"{url}: it broke off ({what}), with {have:,} bytes here. Remedy: fetch it again, to go on."
        ) from None
    found = summed(part)
    if found != sha256:
        part.unlink()
        raise DataError(
            f"{url}: what came has the SHA-256 {found}, wanted {sha256}, and was thrown away. Remedy: fetch it again; "
            f"if that is no help, the file has changed since its sum was written down."
        )
    part.replace(path)
    return path


def summed(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(url: str, part: Path, report: Report | None, timeout: float) -> None:
    """Bytes into `part`, after those that it holds if the server can go on there."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # all of it is there, or more than there is
            error.close()
            return
        raise
    with answer:
        goes_on = answer.status == 206
        length = answer.headers.get("Content-Length")
        whole = int(length) + have * goes_on if length else None
        with part.open("ab" if goes_on else "wb") as file:
            came = pour(answer, file, have * goes_on, whole, report)
            file.flush()
            os.fsync(file.fileno())
    if whole is not None and came < whole:
        raise ConnectionError(f"the connection ended after {came:,} of {whole:,} bytes")


def pour(source: BinaryIO, file: BinaryIO, have: int, whole: int | None, report: Report | None) -> int:
    """Everything from one to the other; how many bytes are there then."""
    while piece := source.read(PIECE):
        file.write(piece)
        have += len(piece)
        if report:
            report(have, whole)
    return have
