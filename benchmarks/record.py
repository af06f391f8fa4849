"""Rows that say where a figure comes from: device, commit, versions, threads and date, then what was measured."""

from __future__ import annotations

import csv
import datetime as dt
import os
import platform
import subprocess
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"


def commit() -> str:
    """The commit, with + behind it when the tree has changes of its own; REGARD_COMMIT where there is no repository."""
    if "REGARD_COMMIT" in os.environ:
        return os.environ["REGARD_COMMIT"]
    here = Path(__file__).parent
    try:
        name = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        )
        changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "../regard"], cwd=here, check=False)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name.stdout.strip() + ("+" if changed.returncode else "")


def device_name(device: torch.device) -> str:
    """The GPU's name, or the processor's with its threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()} {torch.get_num_threads()} threads"


def origin(device: torch.device) -> dict[str, str]:
    """The columns that every row begins with."""
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "torch": torch.__version__,
        "device": device_name(device),
    }


def append(file: str, rows: list[dict[str, str]]) -> Path:
    """Add rows to a file of results; its columns are those of the first row it ever got."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / file
    fresh = not path.exists()
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerows(rows)
    return path
