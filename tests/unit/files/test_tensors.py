"""Arrays in the safetensors format: read and written as the safetensors library does."""

import json

import numpy as np
import pytest
import safetensors.numpy
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.files.tensors import read_tensors, write_tensors

ARRAYS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "bias": np.array([0.1, -2.0, np.inf]),
    "empty": np.zeros((0, 4), dtype=np.float32),
}


def test_the_library_reads_what_is_written_and_the_other_way(tmp_path):
    write_tensors(tmp_path / "own", ARRAYS)
    theirs = safetensors.numpy.load_file(tmp_path / "own")
    safetensors.numpy.save_file(ARRAYS, tmp_path / "theirs", metadata={"format": "np"})
    for found in (theirs, read_tensors(tmp_path / "own"), read_tensors(tmp_path / "theirs")):
        assert set(found) == set(ARRAYS)
        for name, array in ARRAYS.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)


def test_arrays_that_are_not_contiguous_are_written_in_order(tmp_path):
    write_tensors(tmp_path / "turned", {"weight": ARRAYS["weight"].T})
    assert np.array_equal(read_tensors(tmp_path / "turned")["weight"], ARRAYS["weight"].T)


def with_header(header, data=b""):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x10\x00\x00\x00\x00\x00\x00\x00{}",
        (2**62).to_bytes(8, "little") + b"{}",
        with_header({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"),
        with_header({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"12345678"),
        with_header({"w": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, b"12345678"),
        with_header({"w": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}, b"12345678"),
        with_header({"w": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}, b"12345678"),
        with_header({"w": 1}),
        with_header([]),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    with refuses(InputError, "model.safetensors", "damaged", "fresh copy"):
        read_tensors(tmp_path / "model.safetensors")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with refuses(InputError, "model.safetensors", "damaged"):
        read_tensors(tmp_path / "model.safetensors")
