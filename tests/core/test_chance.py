"""Random numbers by place: the published hash on Python's integers, uniform, independent of tiles and of each other."""

import pytest
import torch
from scipy import stats

from regard.core import chance
from tests.plain import as_uniform, random_bits

SEED = torch.tensor([0x12345678, 0x9ABCDEF0])


def indices(*counts: int) -> list[torch.Tensor]:
    return [torch.arange(count) for count in counts]


def test_the_hash_is_the_same_on_python_s_integers() -> None:
    bits = chance.bits(SEED, *indices(5, 7, 11))
    assert torch.equal(bits, random_bits(SEED.tolist(), (5, 7, 11)))
    assert torch.equal(chance.uniform(SEED, *indices(5, 7, 11)), as_uniform(bits))


def test_a_place_does_not_depend_on_the_tile() -> None:
    whole = chance.bits(SEED, *indices(3, 17, 23))
    part = chance.bits(SEED, torch.tensor([2]), torch.arange(5, 11), torch.arange(13, 23))
    assert torch.equal(whole[2:, 5:11, 13:], part)
    assert torch.equal(whole.reshape(3, 1, 17, 23), chance.bits(SEED, *[torch.arange(3)[:, None], *indices(17, 23)]))


def test_bits_are_uniform_and_each_is_fair() -> None:
    bits = chance.bits(SEED, *indices(7, 101, 103)).flatten()
    counts = torch.bincount(bits >> 24, minlength=256)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4
    count = bits.numel()
    for place in range(32):
        ones = int((bits >> place & 1).sum())
        assert abs(ones - count / 2) < 5 * (count / 4) ** 0.5, f"bit {place}"


def test_neighbours_are_independent() -> None:
    """Pairs one apart in any direction fall evenly into 16 by 16 cells."""
    bits = chance.bits(SEED, *indices(31, 53, 59)) >> 28
    for first, second in ((bits[1:], bits[:-1]), (bits[:, 1:], bits[:, :-1]), (bits[..., 1:], bits[..., :-1])):
        cells = torch.bincount((first * 16 + second).flatten(), minlength=256)
        assert stats.chisquare(cells.numpy()).pvalue > 1e-4


def test_every_seed_gives_other_numbers() -> None:
    ones = [chance.bits(SEED + torch.tensor(step), *indices(2, 53, 59)).flatten() for step in ([0, 0], [1, 0], [0, 1])]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        cells = torch.bincount((ones[first] >> 28) * 16 + (ones[second] >> 28), minlength=256)
        assert stats.chisquare(cells.numpy()).pvalue > 1e-4


def test_large_places_differ() -> None:
    """More places than 32 bits count: elements and rows far apart share no number by arithmetic."""
    far = torch.tensor([0, 1, 2**31, 2**40])
    bits = chance.bits(SEED, far, torch.tensor([0, 1, 2**30]), torch.tensor([0, 1, 2**31])).flatten()
    assert len(bits.unique()) == bits.numel()
    assert ((bits >= 0) & (bits < 2**32)).all()


@pytest.mark.parametrize("bits", [0, 1, 255, 256, 2**31, 2**32 - 512, 2**32 - 1])
def test_a_uniform_number_is_strictly_between_zero_and_one(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the largest of 32 bits too: a half added in float32 would round to one, and Gumbel's noise be infinite."""
    monkeypatch.setattr(chance, "bits", lambda *places: torch.tensor([bits]))
    uniform = chance.uniform(SEED, *indices(1, 1, 1))
    assert uniform.dtype == torch.float32
    assert 0 < uniform.item() < 1
    assert torch.isfinite(-torch.log(-torch.log(uniform))).all()
    assert torch.equal(uniform, as_uniform(torch.tensor([bits])))


def test_uniform_numbers_are_uniform() -> None:
    numbers = chance.uniform(SEED, *indices(3, 101, 103)).flatten()
    assert stats.kstest(numbers.numpy(), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.93])
def test_dropout_keeps_its_share(dropout: float) -> None:
    kept = chance.kept(SEED, *indices(5, 61, 67), dropout)
    count = kept.numel()
    sigma = (count * dropout * (1 - dropout)) ** 0.5
    assert abs(int(kept.sum()) - count * (1 - dropout)) < 5 * sigma


def test_of_all_numbers_dropout_drops_its_share_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chance, "bits", lambda *places: torch.tensor([0, 2**30 - 1, 2**30, 2**32 - 1]))
    assert chance.kept(SEED, *indices(1, 1, 4), 0.25).tolist() == [False, False, True, True]


def test_one_seed_a_call() -> None:
    first = chance.draw_seed(torch.Generator().manual_seed(3), torch.device("cpu"))
    assert torch.equal(first, chance.draw_seed(torch.Generator().manual_seed(3), torch.device("cpu")))
    generator = torch.Generator().manual_seed(3)
    chance.draw_seed(generator, torch.device("cpu"))
    assert not torch.equal(first, chance.draw_seed(generator, torch.device("cpu")))
    torch.manual_seed(5)
    own = chance.draw_seed(None, torch.device("cpu"))
    torch.manual_seed(5)
    assert torch.equal(own, chance.draw_seed(None, torch.device("cpu")))
    assert first.shape == (2,)


def test_a_generator_of_another_device_is_asked_there() -> None:
    seed = chance.draw_seed(torch.Generator().manual_seed(3), torch.device("meta"))
    assert seed.device.type == "meta"


def test_without_a_generator_the_seed_is_drawn_where_the_keys_are() -> None:
    """A GPU draws by itself, so nothing waits for the CPU, and the CPU's own numbers stay where they are."""
    before = torch.get_rng_state()
    chance.draw_seed(None, torch.device("meta"))
    assert torch.equal(torch.get_rng_state(), before)


def test_places_number_the_batch() -> None:
    assert chance.places(torch.Size((2, 3)), torch.device("cpu")).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert chance.places(torch.Size(()), torch.device("cpu")).tolist() == 0


def test_a_seed_comes_from_the_generator_and_goes_where_it_is_wanted() -> None:
    """A generator on the CPU serves keys that are elsewhere; without one, PyTorch's own state moves on."""
    cpu, meta = torch.device("cpu"), torch.device("meta")
    first, again = (torch.Generator().manual_seed(7) for _ in range(2))
    seed = chance.draw_seed(first, cpu)
    assert torch.equal(seed, torch.randint(0, 0xFFFFFFFF, (2,), generator=again))
    away = chance.draw_seed(first, meta)
    assert (away.device, away.shape, away.dtype) == (meta, (2,), torch.int64)
    chance.draw_seed(again, cpu)
    assert torch.equal(first.get_state(), again.get_state()), "the draw for another device used the generator"
    torch.manual_seed(11)
    known = torch.randint(0, 0xFFFFFFFF, (2,))
    torch.manual_seed(11)
    assert torch.equal(chance.draw_seed(None, cpu), known)
    assert chance.draw_seed(None, meta).device == meta


def test_places_count_the_batch_where_it_is() -> None:
    assert chance.places(torch.Size((2, 3)), torch.device("cpu")).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert chance.places(torch.Size((2, 3)), torch.device("meta")).device.type == "meta"
