"""A numpy archive: its arrays, or one sentence; nothing is unpickled."""

import pickle

import numpy as np
import pytest

from calibrant.data.npz_file import read_npz
from calibrant.errors import InputError


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("an array was unpickled",))


def test_arrays_come_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", one=[1, 2], two=["x"])
    found = read_npz(tmp_path / "a.npz")
    assert {name: values.tolist() for name, values in found.items()} == {
        "one": [1, 2],
        "two": ["x"],
    }


def test_objects_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", one=np.array([Trap()], dtype=object))
    with pytest.raises(InputError, match="one holds Python objects, which are never unpickled"):
        read_npz(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(pickle.dumps([Trap()]))
    with pytest.raises(InputError, match="damaged, cut short or not a numpy archive"):
        read_npz(tmp_path / "b.npz")


def test_damaged_files_and_single_arrays_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", one=np.arange(1000))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:500])
    with pytest.raises(InputError, match="damaged, cut short or not a numpy archive"):
        read_npz(tmp_path / "a.npz")
    with (tmp_path / "c.npz").open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(InputError, match="is a single array: save an archive"):
        read_npz(tmp_path / "c.npz")
