"""The ground that the other tests stand on: memory is poisoned, seeds repeat."""

from collections.abc import Iterator

import hypothesis
import pytest
import torch

FRESH = [
    lambda dtype: torch.empty(3, 5, dtype=dtype),
    lambda dtype: torch.empty_like(torch.zeros(3, 5, dtype=dtype)),
    lambda dtype: torch.empty_strided((3, 5), (5, 1), dtype=dtype),
    lambda dtype: torch.zeros(1, dtype=dtype).new_empty(3, 5),
    lambda dtype: torch.zeros(1).new_empty((3, 5), dtype=dtype),
    lambda dtype: torch.zeros(1, dtype=dtype).new_empty_strided((3, 5), (5, 1)),
]


@pytest.mark.parametrize("fresh", FRESH)
def test_unwritten_memory_is_poisoned(fresh) -> None:
    assert fresh(torch.float64).isnan().all()
    assert fresh(torch.bfloat16).isnan().all()
    assert (fresh(torch.int64) == torch.iinfo(torch.int64).max).all()
    assert fresh(torch.bool).all()


def test_poison_keeps_gradients_and_layout() -> None:
    leaf = torch.empty(3, requires_grad=True)
    assert leaf.requires_grad
    assert leaf.is_leaf
    assert torch.empty_like(torch.zeros(5, 3).mT).stride() == (1, 3)


def test_poison_passes_through_compile_and_vmap() -> None:
    def unwritten(like: torch.Tensor) -> torch.Tensor:
        return like.new_empty(like.shape) + torch.empty(7) + torch.empty_like(like)

    for run in (torch.compile(unwritten, fullgraph=True, backend="eager"), torch.func.vmap(unwritten)):
        assert run(torch.zeros(3, 7)).isnan().all()


PROBE = """
import random, numpy, pytest, torch

def test_draws():
    assert False, [random.random(), numpy.random.rand(), torch.rand(()).item()]

@pytest.mark.gpu
def test_fast():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, pytestconfig: pytest.Config) -> Iterator[pytest.Pytester]:
    """A folder with this suite's conftest and two tests: one shows its random numbers and fails, one needs a GPU."""
    pytester.makeconftest((pytestconfig.rootpath / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(PROBE)
    threads = torch.get_num_threads()
    yield pytester
    torch.set_num_threads(threads)
    hypothesis.settings.load_profile("fresh" if pytestconfig.getoption("--seed") else "same")


def drawn(suite: pytest.Pytester, seed: int) -> str:
    outcome = suite.runpytest_inprocess(f"--seed={seed}", "-k", "draws")
    outcome.stdout.fnmatch_lines([f"repeat with --seed={seed} (this test's own seed: *)"])
    return next(line for line in outcome.outlines if "AssertionError" in line)


def test_a_failure_says_its_seed_and_the_seed_repeats_it(suite: pytest.Pytester) -> None:
    first, again, other = drawn(suite, 0), drawn(suite, 0), drawn(suite, 23)
    assert first == again != other


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_gpu_tests_are_skipped_aloud_or_refused(suite: pytest.Pytester) -> None:
    skipped = suite.runpytest_inprocess("-rs", "-k", "fast")
    skipped.assert_outcomes(skipped=1, deselected=1)
    skipped.stdout.fnmatch_lines(["*needs a CUDA device; run `make gpu` where there is one"])
    refused = suite.runpytest_inprocess("--gpu", "-k", "fast")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*torch sees no CUDA device*"])
