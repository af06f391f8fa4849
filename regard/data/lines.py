"""Lines of a file, plain or packed (.gz, .xz), one at a time: UTF-8, ended by a line feed and by nothing else.

Python's own text files also end a line at a carriage return, and str.splitlines at a dozen characters that stand
within sentences; two files that ought to run side by side would come apart.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from regard.data.troubles import DataError, Troubles

PACKED = (".gz", ".xz")
MOST = 1 << 24  # bytes of a line that are held in memory at all


def kind(path: Path) -> str:
    """The ending that says how the lines are to be read: `.tsv` of `pairs.tsv.gz`."""
    return Path(path.stem if path.suffix in PACKED else path.name).suffix


def opened(path: Path) -> BinaryIO | gzip.GzipFile | lzma.LZMAFile:
    """The file's bytes, unpacked as they are read."""
    if path.is_dir():
        raise DataError(f"{path}: is a folder, wanted a file. Remedy: name the file in it.")
    try:
        if path.suffix == ".gz":
            return gzip.open(path)
        return lzma.open(path) if path.suffix == ".xz" else path.open("rb")
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file. Remedy: its full path, with .gz or .xz if packed.") from None


def lines(path: Path, troubles: Troubles) -> Iterator[tuple[int, str | None]]:
    """(number from one, text without its end); None for a line that is left out, so that files stay side by side."""
    number = 0
    with opened(path) as file:
        try:
            while raw := file.readline(MOST):
                number += 1
                if len(raw) == MOST and not raw.endswith(b"\n"):
                    while (rest := file.readline(MOST)) and not rest.endswith(b"\n"):
                        pass
                    troubles.meet("long", path, number, f"more than {MOST:,} bytes")
                    yield number, None
                    continue
                try:
                    text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    troubles.meet("encoding", path, number, f"byte {error.start + 1} of the line is not UTF-8")
                    yield number, None
                else:
                    yield number, text.removesuffix("\n").removesuffix("\r")
        except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
            raise DataError(
                f"{path}: it cannot be unpacked after line {number:,} ({error}). Remedy: fetch or pack it again."
            ) from None
