"""The long random runs: python -m benchmarks.soak [--cases 2000000] [--seed 0] [--what forward] [--minutes 8] [--keep].

    forward     so many random calls on every road that takes them, against plain PyTorch in float64; counted are the
                rows left out of what jumps, and the cases that only their own error explains (tests/tolerances.py)
    gradcheck   a hundredth as many: every gradient against finite differences, in float64
    laws        each named law on a two-hundredth as many cases, over the roads that it holds on

Every case is a number, and a failure prints the number that repeats it. Work is cut into pieces that processes take in
any order; what is done is kept in a file, so a run that was interrupted, or had its minutes, goes on where it was.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from benchmarks.record import RESULTS, append, commit, origin

PIECE = 250
SHOWN = 10  # failures of each kind that are printed
WHAT = ("forward", "gradcheck", "laws")


@dataclass(frozen=True)
class Piece:
    """Some cases of one kind: `name` is a law's, or empty."""

    what: str
    name: str
    first: int
    count: int

    @property
    def key(self) -> str:
        return f"{self.what} {self.name} {self.first} {self.count}"


@dataclass
class Found:
    """What a piece, or all of them so far, came to."""

    cases: int = 0
    rows: int = 0
    left_out: int = 0
    by_own: int = 0
    again: int = 0
    failures: list[str] = field(default_factory=list)


def number(seed: int, piece: Piece, place: int) -> int:
    """The number of a case: no two pieces of a run share one."""
    return (seed + 1) * 10**10 + piece.first + place


def forward_piece(piece: Piece, seed: int) -> Found:
    from tests.cases import ANY, draw
    from tests.tolerances import check_forward

    found = Found()
    for place in range(piece.count):
        case = draw(number(seed, piece, place), ANY)
        try:
            verdict = check_forward(case, ("definition", "tiled", "fused"))
        except Exception as error:  # noqa: BLE001 (a failure to be reported with its number, whatever it is)
            found.failures.append(f"{case}: {type(error).__name__}: {error}")
        else:
            found.rows += verdict.rows
            found.left_out += verdict.left_out
            found.by_own += "own" in verdict.compared
            found.failures += [f"{case}: {wrong}" for wrong in verdict.wrong[:1]]
        found.cases += 1
    return found


def laws_piece(piece: Piece, seed: int) -> Found:
    from tests.cases import draw
    from tests.laws import LAWS, check, kinds_on

    found, law = Found(), LAWS[piece.name]
    roads = [(road, kinds) for road in law.roads if (kinds := kinds_on(law, road)) is not None]
    place = 0
    while found.cases < piece.count and place < 40 * piece.count:
        road, kinds = roads[place % len(roads)]
        case = draw((seed + 1) * 10**10 + piece.first * 40 + place, kinds)
        try:
            found.cases += check(law, road, case)
        except Exception as error:  # noqa: BLE001 (as above)
            found.cases += 1
            notes = "; ".join(getattr(error, "__notes__", []))
            found.failures.append(f"{type(error).__name__}: {error}; {notes}")
        place += 1
    return found


def gradcheck_piece(piece: Piece, seed: int) -> Found:
    """Sparse weights have corners, where differences are not derivatives: there a neighbour is tried, and counted."""
    from tests.cases import SPARSE, draw
    from tests.laws import learnable

    kinds = replace(learnable, long=0.0, queries=(1, 2, 3), keys=(1, 2, 3, 5), batches=((), (2,)), dropout=0.2)
    found, place = Found(), 0
    while found.cases < piece.count and place < 40 * piece.count:
        case = draw((seed + 1) * 10**10 + piece.first * 40 + place, kinds)
        road = ("definition", "tiled", "auto")[place % 3]
        place += 1
        if not case.leaves() or not case.value.numel():
            continue
        tries = 4 if case.normalise.name in SPARSE else 1
        problems = []
        for attempt in range(tries):
            moved = case if attempt == 0 else case.changed(lambda t, by=attempt: t + 1e-3 * by * torch.randn_like(t))
            problem = slope_problem(moved, road)
            if problem is None:
                break
            problems.append(problem)
        found.cases += 1
        found.again += bool(problems) and len(problems) < tries
        if len(problems) == tries:
            found.failures.append(f"{case} on {road}: {problems[0]}")
    return found


def slope_problem(case: object, road: str) -> str | None:
    """What gradcheck says of every leaf of a case, if it complains."""
    from tests.cases import Case

    assert isinstance(case, Case)
    learning = case.learning()
    leaves = {name: leaf for name, leaf in learning.leaves().items() if leaf.numel()}  # it refuses those of no numbers

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        changed = learning.leaves() | dict(zip(leaves, tensors, strict=True))
        context = learning.with_leaves(changed).attend(road)
        assert isinstance(context, torch.Tensor)
        return context

    try:
        torch.autograd.gradcheck(call, tuple(leaves.values()), atol=1e-4, rtol=1e-3)
    except Exception as error:  # noqa: BLE001 (as above)
        return " ".join(str(error).split())[:300]
    return None


def run_piece(piece: Piece, seed: int) -> Found:
    """One piece, in a process of its own with one thread."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    return {"forward": forward_piece, "laws": laws_piece, "gradcheck": gradcheck_piece}[piece.what](piece, seed)


def pieces(what: str, cases: int) -> Iterator[Piece]:
    """All the work of one kind."""
    from tests.laws import TABLE

    if what == "laws":
        for place, law in enumerate(law for law in TABLE if law.soak):
            for first in range(0, max(cases // 200, 1), PIECE):
                yield Piece(what, law.name, place * 10**6 + first, min(PIECE, max(cases // 200, 1) - first))
        return
    total = max(cases // 100, 1) if what == "gradcheck" else cases
    base = {"forward": 0, "gradcheck": 10**8}[what]
    for first in range(0, total, PIECE):
        yield Piece(what, "", base + first, min(PIECE, total - first))


class State:
    """What is done of a run, in a file that is replaced whole."""

    def __init__(self, path: Path, run: str) -> None:
        self.path, self.run = path, run
        self.done: dict[str, dict[str, object]] = {}
        if path.exists():
            held = json.loads(path.read_text(encoding="utf-8"))
            if held["run"] == run:
                self.done = held["done"]

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"run": self.run, "done": self.done}), encoding="utf-8")
        fresh.replace(self.path)

    def total(self, what: str) -> Found:
        whole = Found()
        for key, held in self.done.items():
            if key.split(" ", 1)[0] == what:
                part = Found(**held)  # type: ignore[arg-type]
                whole.cases += part.cases
                whole.rows += part.rows
                whole.left_out += part.left_out
                whole.by_own += part.by_own
                whole.again += part.again
                whole.failures += part.failures
        return whole


def go(work: list[Piece], state: State, options: argparse.Namespace) -> bool:
    """Do the work until it or the time is at an end; True when all is done."""
    left = [piece for piece in work if piece.key not in state.done]
    ends, begun, shown = time.monotonic() + options.minutes * 60, time.monotonic(), collections.Counter[str]()
    start, saved = sum(piece.count for piece in work) - sum(piece.count for piece in left), time.monotonic()
    whole, context = sum(piece.count for piece in work), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        waiting: dict[Future[Found], Piece] = {}
        try:
            while left or waiting:
                while left and len(waiting) < 2 * options.workers and time.monotonic() < ends:
                    piece = left.pop(0)
                    waiting[pool.submit(run_piece, piece, options.seed)] = piece
                if not waiting:
                    break
                ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ready:
                    piece, found = waiting.pop(future), future.result()
                    state.done[piece.key] = vars(found)
                    start += piece.count
                    for failure in found.failures:
                        if shown[piece.what] < SHOWN:
                            print(f"\n{piece.what} {piece.name}: {failure}", flush=True)
                        shown[piece.what] += 1
                if time.monotonic() - saved > 5:
                    state.save()
                    saved = time.monotonic()
                rate = start / max(time.monotonic() - begun, 1e-9)
                print(
                    f"\r{start:,} of {whole:,} cases, {rate:,.0f}/s, {sum(shown.values())} failures  ",
                    end="",
                    flush=True,
                )
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("\nInterrupted; the same command goes on from here.")
        finally:
            state.save()
    print()
    return all(piece.key in state.done for piece in work)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--what", nargs="+", choices=WHAT, default=list(WHAT))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long; the same command goes on")
    parser.add_argument("--state", type=Path, default=RESULTS / "soak.state.json")
    parser.add_argument("--keep", action="store_true", help="add a row for each finished kind to benchmarks/results")
    options = parser.parse_args()
    run = f"{commit()} seed {options.seed} cases {options.cases}"
    state = State(options.state, run)
    failed = False
    for what in options.what:
        print(what)
        finished = go(list(pieces(what, options.cases)), state, options)
        total = state.total(what)
        failed |= bool(total.failures)
        print(
            f"{what}: {total.cases:,} cases, {len(total.failures)} failures"
            + (f", {total.left_out:,} of {total.rows:,} rows left out" if total.rows else "")
            + (f", {total.by_own:,} within their own error only" if total.by_own else "")
            + (f", {total.again} repeated beside a corner" if total.again else "")
            + ("" if finished else "; not finished")
        )
        if finished and options.keep:
            cpu = origin(torch.device("cpu"))
            row = {
                "what": what,
                "cases": str(total.cases),
                "failures": str(len(total.failures)),
                "seed": str(options.seed),
            }
            extra = {
                "rows": str(total.rows),
                "left_out": str(total.left_out),
                "by_own": str(total.by_own),
                "repeated": str(total.again),
            }
            append("soak.csv", [row | cpu | extra])
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
