"""Sinusoids by their formula, rotations as multiplication of complex numbers."""

import math

import pytest
import torch

from regard.core.positions import frequencies, rotated, sinusoids


def test_sinusoids_are_the_paper_s() -> None:
    found = sinusoids(torch.tensor([0, 1, 7, 113]), 6)
    for row, position in zip(found.tolist(), (0, 1, 7, 113), strict=True):
        wanted = []
        for pair in range(3):
            angle = position / 10000 ** (2 * pair / 6)
            wanted += [math.sin(angle), math.cos(angle)]
        assert row == pytest.approx(wanted, abs=2e-5)


def test_frequencies_go_down_geometrically() -> None:
    assert frequencies(6, 1000.0).tolist() == pytest.approx([1, 1 / 10, 1 / 100])


def test_frequencies_do_not_follow_the_default_type() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert frequencies(6, 1000.0).dtype == sinusoids(torch.arange(5), 6).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_rotation_multiplies_by_a_unit_number() -> None:
    tensor, positions = torch.randn(2, 5, 6, dtype=torch.float64), torch.arange(3, 8)
    found = rotated(tensor, positions, longest=100.0)
    turn = torch.polar(torch.ones(5, 3), positions[:, None] * frequencies(6, 100.0)).to(torch.complex128)
    wanted = torch.view_as_real(torch.view_as_complex(tensor.reshape(2, 5, 3, 2)) * turn).reshape(2, 5, 6)
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_product_of_rotated_vectors_knows_only_the_distance() -> None:
    query, key = torch.randn(1, 8, dtype=torch.float64), torch.randn(1, 8, dtype=torch.float64)
    products = [(rotated(query, torch.tensor([i])) @ rotated(key, torch.tensor([i + 3])).mT).item() for i in (0, 5, 40)]
    assert products == pytest.approx([products[0]] * 3, rel=1e-4, abs=1e-5)


def test_half_types_come_back_as_they_were() -> None:
    tensor = torch.randn(3, 4, dtype=torch.bfloat16)
    assert rotated(tensor, torch.arange(3)).dtype == torch.bfloat16
    torch.testing.assert_close(rotated(tensor, torch.zeros(3)), tensor)


def test_they_are_made_where_the_positions_are() -> None:
    places = torch.arange(5, device="meta")
    assert frequencies(6, 100.0, places.device).device == places.device
    assert sinusoids(places, 6).device == places.device
    assert rotated(torch.randn(5, 6, device="meta"), places).device == places.device


def test_the_longest_wave_is_ten_thousand_unless_told() -> None:
    tensor, places = torch.randn(3, 4, dtype=torch.float64), torch.tensor([0, 113, 10007])
    assert torch.equal(rotated(tensor, places), rotated(tensor, places, longest=10000.0))
    assert not torch.equal(rotated(tensor, places), rotated(tensor, places, longest=10001.0))


@pytest.mark.parametrize("width", [2, 4, 6, 8])
def test_any_even_width(width: int) -> None:
    assert sinusoids(torch.arange(5), width).shape == (5, width)
