"""Nested state survives a file, and damage is noticed."""

import pytest
import torch

from calibrant.errors import TrainingError
from calibrant.training.checkpoints import read_state, write_state

STATE = {
    "weights": {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(2, dtype=torch.int64)},
    "optimizer": {
        "state": {0: {"step": torch.tensor(3.0)}},
        "groups": [{"lr": 0.1, "fused": None}],
    },
    "empty": torch.zeros(0, 4),
    "half": torch.tensor([1.5], dtype=torch.bfloat16),
    "history": [],
    "words": "β",
    "best": float("inf"),
}


def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_state_comes_back_as_it_was(tmp_path):
    path = tmp_path / "s.safetensors"
    write_state(path, STATE)
    assert same(read_state(path), STATE)
    write_state(path, {"no": "tensor"})
    assert read_state(path) == {"no": "tensor"}


def test_shared_and_turned_tensors_are_written_as_they_look(tmp_path):
    base = torch.arange(6.0).reshape(2, 3)
    path = tmp_path / "s.safetensors"
    write_state(path, [base, base, base.T])
    found = read_state(path)
    assert torch.equal(found[2], base.T)
    assert torch.equal(found[0], found[1])


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text"])
def test_a_damaged_file_is_named_in_one_sentence(tmp_path, damage):
    path = tmp_path / "s.safetensors"
    write_state(path, STATE)
    raw = bytearray(path.read_bytes())
    if damage == "flipped":
        raw[-3] ^= 1
    content = {"cut": raw[:-5], "flipped": raw, "empty": b"", "text": b"hello"}[damage]
    path.write_bytes(bytes(content))
    with pytest.raises(TrainingError, match=r"the checkpoint .* is damaged .*delete it") as caught:
        read_state(path)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "s.safetensors"
    with pytest.raises(TrainingError, match="cannot hold a function"):
        write_state(path, {"f": lambda: 0})
    with pytest.raises(TrainingError, match=r"cannot hold a tensor of torch\.complex128"):
        write_state(path, {"z": torch.zeros(1, dtype=torch.complex128)})
    assert not path.exists()
