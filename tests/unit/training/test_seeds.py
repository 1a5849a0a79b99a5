"""Seeds of epochs differ where they should and repeat where they should."""

import torch

from calibrant.training.seeds import row_order, seed_epoch


def test_the_order_of_an_epoch_repeats_and_differs_from_all_others():
    def order(seed, epoch):
        return tuple(torch.randperm(50, generator=row_order(seed, epoch)).tolist())

    assert order(0, 3) == order(0, 3)
    assert len({order(seed, epoch) for seed in range(5) for epoch in range(20)}) == 100


def test_dropout_of_processes_differs():
    found = set()
    state = torch.random.get_rng_state()
    for rank in range(4):
        seed_epoch(0, 0, rank)
        found.add(float(torch.rand(1)))
    torch.random.set_rng_state(state)
    assert len(found) == 4
