"""A numpy archive: its arrays, or one sentence; nothing is unpickled."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.files.npz import read_npz


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
    with refuses(InputError, "one", "Python objects, which are never unpickled"):
        read_npz(tmp_path / "a.npz")["one"]
    (tmp_path / "b.npz").write_bytes(pickle.dumps([Trap()]))
    with refuses(InputError, "damaged, truncated or not a numpy archive"):
        read_npz(tmp_path / "b.npz")


def test_damaged_files_and_single_arrays_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", one=np.arange(1000))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:500])
    with refuses(InputError, "damaged, truncated or not a numpy archive"):
        read_npz(tmp_path / "a.npz")
    with (tmp_path / "c.npz").open("wb") as file:
        np.save(file, np.arange(3))
    with refuses(InputError, "is a single array: save an archive"):
        read_npz(tmp_path / "c.npz")


def test_an_array_that_is_not_asked_for_is_not_read(tmp_path):
    np.savez(tmp_path / "a.npz", one=[1], odd=np.array([Trap()], dtype=object))
    found = read_npz(tmp_path / "a.npz")
    assert list(found) == ["one", "odd"]
    assert len(found) == 2
    assert "odd" in found
    assert "other" not in found
    assert found.get("other") is None
    assert found["one"].tolist() == [1]
    assert found["one"] is found["one"]
    with refuses(InputError, "odd", "Python objects"):
        found["odd"]


@pytest.mark.parametrize("shape", [(10**12, 8, 8, 1), (2**62, 2**62), (1001,)])
def test_a_header_that_promises_more_than_there_is_is_told(tmp_path, shape):
    header = io.BytesIO()
    told = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, told)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one.npy", header.getvalue() + bytes(1000))
    with refuses(InputError, "a.npz is damaged: one declares", "but has 1,000"):
        read_npz(tmp_path / "a.npz")["one"]


def test_an_array_beyond_the_memory_is_told(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise MemoryError

    np.savez(tmp_path / "a.npz", one=[1])
    found = read_npz(tmp_path / "a.npz")
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", full)
    with refuses(InputError, "a.npz does not fit into memory: save it in sm"):
        found["one"]
