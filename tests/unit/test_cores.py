import pytest
import torch

from calibrant.cores import leave_a_core, one_core_each, usable_cores


def test_torch_computes_on_one_core_and_gets_the_others_back():
    before = torch.get_num_threads()
    with one_core_each() as cores:
        assert cores == before
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_the_cores_come_back_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="broke"), one_core_each():
        raise ValueError("broke")
    assert torch.get_num_threads() == before


@pytest.fixture
def cores(monkeypatch):
    """Have the machine and torch seem to have so many cores; torch's own number stays."""
    before = torch.get_num_threads()

    def seem(machine, of_torch):
        monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(machine)))
        torch.set_num_threads(of_torch)

    yield seem
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("machine", "of_torch", "processes", "left"),
    [
        (8, 8, 1, 7),
        (8, 8, 2, 3),
        (8, 8, 3, 1),
        (8, 8, 100, 1),
        (8, 2, 1, 2),  # OMP_NUM_THREADS says two
        (2, 2, 1, 1),
        (1, 1, 1, 1),
    ],
)
def test_a_core_of_each_process_is_left(cores, machine, of_torch, processes, left):
    cores(machine, of_torch)
    assert leave_a_core(processes) == left
    assert torch.get_num_threads() == left


def test_a_machine_that_tells_no_affinity(cores, monkeypatch):
    cores(8, 4)
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert leave_a_core() == 3
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert leave_a_core() == 1


def test_example_of_usable_cores():
    assert usable_cores() >= 1
