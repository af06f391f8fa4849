"""What every test stands on: poisoned memory, a seed of its own, one thread, GPUs on request."""

import os
import random
from collections.abc import Callable, Sequence
from zlib import crc32

import hypothesis
import numpy as np
import pytest
import torch
import torch._dynamo  # now, before memory is poisoned: it knows torch's functions by what they were when it was loaded

# Tests meet the same examples on every run; a --seed other than 0 brings fresh ones. No deadline: machines are shared.
# A mutant only has to fail (`make mutants`): nobody reads its example, so no plainer one is looked for.
PHASES = [
    phase for phase in hypothesis.Phase if phase != hypothesis.Phase.shrink or "MUTANT_UNDER_TEST" not in os.environ
]
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, print_blob=True, phases=PHASES)
hypothesis.settings.register_profile("fresh", deadline=None, print_blob=True, phases=PHASES)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="where random numbers start, in every test (0)")
    parser.addoption("--gpu", action="store_true", help="without a CUDA device: fail, where gpu tests would be skipped")


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("fresh" if config.getoption("--seed") else "same")
    torch.set_num_threads(
        1
    )  # tests are many and small: the same sums on every machine, and no worker waits for another


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    if config.getoption("--gpu"):
        raise pytest.UsageError("--gpu was given, and torch sees no CUDA device: see `regard env`")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device; run `make gpu` where there is one"))


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> None:
    """Each test starts from numbers of its own, so adding a test changes no other; a failure says how to repeat."""
    base = request.config.getoption("--seed")
    seed = crc32(request.node.nodeid.encode()) ^ base
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (the state that other packages read)
    torch.manual_seed(seed)
    request.node.add_report_section("setup", "seed", f"repeat with --seed={base} (this test's own seed: {seed})")


@pytest.fixture(autouse=True)
def poisoned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that nobody has written reads as NaN (whole numbers: the largest), so that reading it cannot go unseen."""
    for name in ("empty", "empty_like", "empty_strided"):
        monkeypatch.setattr(torch, name, poisoning(getattr(torch, name)))
    monkeypatch.setattr(torch.Tensor, "new_empty", poisoning(new_empty))
    monkeypatch.setattr(torch.Tensor, "new_empty_strided", poisoning(torch.ops.aten.new_empty_strided))


def new_empty(like: torch.Tensor, *size: int | Sequence[int], **options: object) -> torch.Tensor:
    """What `Tensor.new_empty` does, written so that torch.compile can look into it (it cannot into the method)."""
    shape = size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size
    return torch.ops.aten.new_empty(like, shape, **options)


def poisoning(allocate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def poisoned(*arguments: object, **options: object) -> torch.Tensor:
        tensor = allocate(*arguments, **options)
        with torch.no_grad():
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.fill_(float("nan"))
            elif tensor.dtype is torch.bool:
                tensor.fill_(True)
            else:
                tensor.fill_(torch.iinfo(tensor.dtype).max)
        return tensor

    return poisoned
