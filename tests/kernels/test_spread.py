"""Spread: what is shared over the batch is taken without being repeated, and brought back to where it came from."""

import torch
from hypothesis import given, strategies as st

from regard.kernels.spread import Spread, flatten, spread_of

batches = st.lists(st.sampled_from([1, 2, 3, 5]), min_size=0, max_size=3)


@given(batch=batches, data=st.data())
def test_take_and_add_are_expand_and_its_transpose(batch: list[int], data: st.DataObject) -> None:
    whole = torch.Size(batch)
    drop = data.draw(st.integers(0, len(batch)))
    lead = torch.Size(1 if data.draw(st.booleans()) else size for size in batch[drop:])
    tensor = torch.randn(*lead, 7, 2, dtype=torch.float64)
    spread = spread_of(tensor, 2, whole)
    flat, expanded = flatten(tensor, 2), tensor.expand(*whole, 7, 2).reshape(-1, 7, 2)
    start = data.draw(st.integers(0, whole.numel() - 1))
    stop = data.draw(st.integers(start + 1, whole.numel()))
    taken = spread.take(flat, start, stop)
    assert torch.equal(taken.expand(stop - start, 7, 2), expanded[start:stop])
    run = torch.randn(stop - start, 7, 2, dtype=torch.float64)
    gathered = torch.zeros_like(flat)
    spread.add(gathered, run, start, stop)
    back = torch.zeros(whole.numel(), 7, 2, dtype=torch.float64)
    back[start:stop] = run
    torch.testing.assert_close(gathered.reshape(tensor.shape), back.reshape(*whole, 7, 2).sum_to_size(tensor.shape))


def test_a_shared_element_is_not_copied() -> None:
    shared = torch.randn(3, 1, 5, 2)
    spread = Spread(torch.Size((3, 1)), torch.Size((3, 4)))
    taken = spread.take(flatten(shared, 2), 4, 8)
    assert taken.shape == (1, 5, 2)
    assert taken.data_ptr() == shared[1].data_ptr()
