"""Every core at its own pace: blocks are dealt out to threads, each of which computes on one core.

PyTorch splits every operation over the cores and waits for the slowest at its end; with thousands of small operations,
one core that is busy elsewhere holds up all the others at each of them. Here a core waits for the others once a call.
Who computes which block depends on the number of workers alone, so a result repeats bit by bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Lock
from typing import TypeVar

import torch

Answer = TypeVar("Answer")

WORTH = 2**20  # numbers to be made in a call, below which starting the others costs more than they help
SPARE = 2**29  # bytes that the workers' own gradients may take together


def worth(numbers: int, own: int, device: torch.device) -> int:
    """How many workers for so many numbers, when each needs so many bytes of its own."""
    if device.type != "cpu" or numbers < WORTH:
        return 1
    return max(1, min(torch.get_num_threads(), SPARE // max(own, 1)))


POOLS: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process, since threads do not survive a fork, and count
MAKING = Lock()


def pool(count: int) -> ThreadPoolExecutor:
    """Threads that each compute on one core, made once."""
    place = os.getpid(), count
    with MAKING:
        if place not in POOLS:
            POOLS[place] = make_pool(count)
    return POOLS[place]


def make_pool(count: int) -> ThreadPoolExecutor:
    everybody = Barrier(count + 1)

    def begin() -> None:
        torch.get_num_threads()  # so that PyTorch does not set this thread's number again at its first operation
        torch.set_num_threads(1)
        everybody.wait()

    own = torch.get_num_threads()
    executor = ThreadPoolExecutor(count, thread_name_prefix="regard", initializer=begin)
    for _ in range(count):
        executor.submit(int)
    everybody.wait()
    torch.set_num_threads(own)  # what threads that start later inherit
    return executor


def together(task: Callable[[int, Event], Answer], count: int) -> list[Answer]:
    """task(0) … task(count - 1) at the same time; when one fails or is interrupted, the others are told to stop."""
    stop = Event()
    if count == 1:
        return [task(0, stop)]
    futures = [pool(count).submit(task, number, stop) for number in range(count)]
    try:
        return [future.result() for future in futures]
    except BaseException:
        stop.set()
        raise
