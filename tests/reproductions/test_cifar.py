from __future__ import annotations

import io
import pickle
import struct
import tarfile

import numpy as np
import pytest
from PIL import Image
from reproductions.cifar import cifar10, cifar100
from reproductions.image_parts import paper_order, share_of
from reproductions.image_strips import read_strips
from reproductions.pickled_arrays import read_pickled
from tests.data_sets import data_file

from calibrant.errors import InputError


def _text(value):
    return b"U" + bytes([len(value)]) + value.encode()


def _array(rows):
    """The opcodes with which Python 2 and numpy 1 pickled an array of bytes."""
    shape = b"".join(b"J" + struct.pack("<i", n) for n in rows.shape)
    data = rows.tobytes()
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    state = b"(K\x01(" + shape + b"tcnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNN"
    state += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
    return made + state + b"T" + struct.pack("<i", len(data)) + data + b"tb"


def _whole(values):
    return b"(" + b"".join(b"K" + bytes([n]) for n in values) + b"l"


def _batch(images, labels, key="labels"):
    """A pickled batch as CIFAR is published: rows of bytes, all red ones first."""
    rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return b"\x80\x02}(" + _text("data") + _array(rows) + _text(key) + _whole(labels) + b"u."


def _tar(path, folder, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            told = tarfile.TarInfo(f"{folder}/{name}")
            told.size = len(data)
            archive.addfile(told, io.BytesIO(data))


def _images(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)


def _strips(path, images, labels=None, strip=5):
    blobs = []
    for start in range(0, len(images), strip):
        kept = io.BytesIO()
        Image.fromarray(images[start : start + strip].reshape(-1, 32, 3)).save(
            kept, "WEBP", lossless=True
        )
        blobs.append(kept.getvalue())
    ends = np.cumsum([0, *map(len, blobs)])
    arrays = {} if labels is None else {"labels": np.asarray(labels, dtype=np.uint8)}
    np.savez(path, blob=np.frombuffer(b"".join(blobs), np.uint8), offsets=ends, **arrays)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def published(data):
    """Six batches of CIFAR-10 with 20 images each, as the tar that is published."""
    (data / "cifar10").mkdir()
    labels = [[(i + n) % 10 for n in range(20)] for i in range(6)]
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    members = {name: _batch(_images(20, i), labels[i]) for i, name in enumerate(names)}
    _tar(data / "cifar10" / "cifar-10-python.tar.gz", "cifar-10-batches-py", members)
    return labels


def _interval(draw, most):
    """A whole number of 0 .. most: the lowest bits of a draw, drawn again while they are more."""
    mask = (1 << most.bit_length()) - 1
    while (found := draw() & mask) > most:
        pass
    return found


def _mersenne_twister(seed):
    """MT19937 as Matsumoto and Nishimura published it."""
    state = [seed]
    for i in range(1, 624):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) & 0xFFFFFFFF)
    place = 624

    def draw():
        nonlocal place
        if place == 624:
            for i in range(624):
                mixed = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7FFFFFFF)
                state[i] = state[(i + 397) % 624] ^ (mixed >> 1) ^ (0x9908B0DF * (mixed & 1))
            place = 0
        found = state[place]
        place += 1
        found ^= found >> 11
        found ^= (found << 7) & 0x9D2C5680
        found ^= (found << 15) & 0xEFC60000
        return found ^ (found >> 18)

    return draw


def test_the_order_is_the_shuffle_of_a_mersenne_twister_from_seed_1_by_hand():
    draw, places = _mersenne_twister(1), list(range(50_000))
    for i in range(len(places) - 1, 0, -1):
        j = _interval(draw, i)
        places[i], places[j] = places[j], places[i]

    assert paper_order(50_000).tolist() == places
    assert places[:5] == [26247, 35067, 34590, 16668, 12196]
    assert places[5000:5003] == [45573, 39021, 36044]


def test_the_order_is_what_the_papers_code_calls_and_leaves_the_generator_alone():
    kept = np.random.get_state()
    try:
        np.random.seed(1)
        places = list(range(1000))
        np.random.shuffle(places)
        before = np.random.get_state()[1].copy()
        assert paper_order(1000).tolist() == places
        np.testing.assert_array_equal(np.random.get_state()[1], before)
    finally:
        np.random.set_state(kept)


def test_the_published_tar_is_split_into_the_papers_parts(published):
    parts = cifar10({})

    assert parts.sizes() == {"train": 90, "steer": 5, "calib": 5, "test": 20}
    images = np.concatenate([_images(20, i) for i in range(5)])
    labels = np.concatenate(published[:5])
    order = paper_order(100)
    np.testing.assert_array_equal(parts.steer.inputs, images[order[:5]])
    np.testing.assert_array_equal(parts.calib.inputs, images[order[5:10]])
    np.testing.assert_array_equal(parts.train.inputs, images[order[10:]])
    np.testing.assert_array_equal(parts.train.labels, labels[order[10:]])
    np.testing.assert_array_equal(parts.test.inputs, _images(20, 5))
    assert parts.test.labels.tolist() == published[5]
    assert parts.classes[3] == "cat"
    assert "2,500 calibrate" in parts.note


def test_strips_hold_the_same_as_the_tar(published, data):
    from_tar = cifar10({})
    for i in range(6):
        name = "cifar10_test.npz" if i == 5 else f"cifar10_train_{i}.npz"
        _strips(data / "cifar10" / name, _images(20, i), published[i])
    (data / "cifar10" / "cifar-10-python.tar.gz").unlink()

    from_strips = cifar10({})

    for part in ("train", "steer", "calib", "test"):
        mine, other = getattr(from_strips, part), getattr(from_tar, part)
        np.testing.assert_array_equal(mine.inputs, other.inputs)
        np.testing.assert_array_equal(mine.labels, other.labels)


def test_rows_cuts_all_parts_alike_and_keeps_the_first_ones(published):
    whole, small = cifar10({}), cifar10({"rows": 45, "outside": ["noise"]})

    assert small.sizes() == {"train": 45, "steer": 2, "calib": 2, "test": 10}
    np.testing.assert_array_equal(small.train.inputs, whole.train.inputs[:45])
    assert small.outside["noise"].shape == (10, 32, 32, 3)
    assert "stands in for CIFAR-10-C" in small.note


@pytest.fixture
def published100(data):
    """CIFAR-100 with 20 train and 6 test images, as the tar that is published."""
    (data / "cifar100").mkdir()
    members = {
        "train": _batch(_images(20), [0, 99] * 10, "fine_labels"),
        "test": _batch(_images(6, 1), [99, 0] * 3, "fine_labels"),
    }
    _tar(data / "cifar100" / "cifar-100-python.tar.gz", "cifar-100-python", members)


def test_cifar100_has_the_names_of_its_fine_classes(published100):
    parts = cifar100({})

    assert len(set(parts.classes)) == 100
    assert list(parts.classes) == sorted(parts.classes)  # as its makers number them
    assert [parts.classes[k] for k in (0, 1, 52, 99)] == [
        "apple", "aquarium_fish", "oak_tree", "worm"
    ]  # fmt: skip
    assert parts.sizes() == {"train": 18, "steer": 1, "calib": 1, "test": 6}
    assert parts.test.labels.tolist() == [99, 0] * 3


def test_strips_of_cifar100_hold_the_same_as_the_tar(published100, data):
    from_tar = cifar100({})
    for i in range(5):
        rows = slice(4 * i, 4 * i + 4)
        file = data / "cifar100" / f"cifar100_train_{i}.npz"
        _strips(file, _images(20)[rows], ([0, 99] * 10)[rows])
    _strips(data / "cifar100" / "cifar100_test.npz", _images(6, 1), [99, 0] * 3)

    parts = cifar100({})

    for name, part in from_tar.named().items():
        np.testing.assert_array_equal(parts.named()[name].inputs, part.inputs)
        np.testing.assert_array_equal(parts.named()[name].labels, part.labels)
    assert parts.classes == from_tar.classes


def test_made_images_are_learnable_without_files(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    parts = cifar10({"made": True, "rows": 200, "outside": ["svhn", "noise"]})

    assert parts.train.inputs.shape == (200, 8, 8, 3)
    assert parts.train.inputs.dtype == np.uint8
    assert list(parts.outside) == ["svhn", "noise"]
    colour = parts.test.inputs.mean(axis=(1, 2))
    middle = np.stack([
        parts.train.inputs[parts.train.labels == k].mean(axis=(0, 1, 2)) for k in range(4)
    ])  # fmt: skip
    nearest = ((colour[:, None] - middle) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.5 < np.mean(nearest == parts.test.labels) < 1.0  # learnable, and wrong at times
    again = cifar10({"made": True, "rows": 200})
    np.testing.assert_array_equal(again.train.inputs, parts.train.inputs)


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"row": 3}, "has no option 'row': it has rows, outside, made"),
        ({"outside": ["mnist"]}, "outside must name some of svhn, fashion_mnist, noise"),
        ({"rows": 0}, "rows must be a whole number of at least 1, got 0"),
    ],
)
def test_a_wrong_option_is_told(published, reading, message):
    with pytest.raises(InputError, match=message):
        cifar10(reading)


def test_a_share_of_all_rows_is_one():
    assert share_of({"rows": 10**9}, 45_000) == 1.0


class _Evil:
    def __reduce__(self):
        return (print, ("this must never run",))


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_names_a_function_is_refused_before_it_runs(protocol, capsys):
    data = pickle.dumps({"data": _Evil()}, protocol=protocol)

    with pytest.raises(InputError, match=r"asks for '\w+\.print', which plain data do not need"):
        read_pickled(data)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a readable pickle"),
        (b"\x80\x02(K\x01K\x02l.", "holds a list, not a dict"),
        (_batch(_images(2), [0, 1])[:-40], "is not a readable pickle"),
        (
            _batch(_images(2), [0, 1]).replace(b"U\x02u1", b"U\x02f8"),
            "holds an array that is not of bytes",
        ),
        (
            _batch(_images(2), [0, 1]).replace(b"J\x02\x00\x00\x00", b"J\x03\x00\x00\x00"),
            "holds an array that is not of bytes",
        ),
    ],
)
def test_a_damaged_pickle_is_told(data, message):
    with pytest.raises(InputError, match=message):
        read_pickled(data)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"data_batch_1": b"..."}, "data_batch_1 in .* is not a readable pickle"),
        ({"data_batch_2": b"..."}, "holds no cifar-10-batches-py/data_batch_1"),
        ({"data_batch_1": b"\x80\x02}(" + _text("a") + b"K\x01u."}, "holds no"),
    ],
)
def test_a_damaged_tar_is_told(data, members, message):
    (data / "cifar10").mkdir()
    _tar(data / "cifar10" / "cifar-10-python.tar.gz", "cifar-10-batches-py", members)

    with pytest.raises(InputError, match=message):
        cifar10({})


def test_a_file_that_is_no_tar_is_told(data):
    (data / "cifar10").mkdir()
    (data / "cifar10" / "cifar-10-python.tar.gz").write_bytes(b"<html>not found</html>")

    with pytest.raises(InputError, match="is not a readable archive"):
        cifar10({})


@pytest.mark.parametrize("spoil", ["blob", "labels", "no blob", "size"])
def test_a_damaged_archive_of_strips_is_told(tmp_path, spoil):
    file = tmp_path / "a.npz"
    _strips(file, _images(4), [0, 1, 2, 3])
    arrays = dict(np.load(file))
    if spoil == "blob":
        arrays["blob"] = arrays["blob"][::-1]
    elif spoil == "labels":
        arrays["labels"] = arrays["labels"][:2]
    elif spoil == "no blob":
        del arrays["blob"]
    np.savez(file, **arrays)

    with pytest.raises(InputError, match="replace the file"):
        read_strips(file, side=31 if spoil == "size" else 32)


@pytest.mark.data
def test_the_real_images_are_split_as_in_the_papers():
    file = data_file("cifar10", "cifar10_train_0.npz")

    parts = cifar10({})

    assert parts.sizes() == {"train": 45_000, "steer": 2_500, "calib": 2_500, "test": 10_000}
    assert parts.test.labels[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    everything = np.concatenate([parts.train.labels, parts.steer.labels, parts.calib.labels])
    assert np.bincount(everything).tolist() == [5000] * 10
    first, labels = read_strips(file)  # images 0 .. 9,999
    held = paper_order(50_000)[:5000]
    place = int(np.flatnonzero(held < 10_000)[0])
    np.testing.assert_array_equal(parts.steer.inputs[place], first[held[place]])
    assert parts.steer.labels[place] == labels[held[place]]
    mean = parts.train.inputs.mean(axis=(0, 1, 2)) / 255
    np.testing.assert_allclose(mean, [0.4914, 0.4822, 0.4465], atol=1e-3)


@pytest.mark.data
def test_the_real_images_of_cifar100_are_complete():
    data_file("cifar100", "cifar100_train_0.npz")

    parts = cifar100({})

    assert parts.sizes() == {"train": 45_000, "steer": 2_500, "calib": 2_500, "test": 10_000}
    assert parts.test.labels[:10].tolist() == [49, 33, 72, 51, 71, 92, 15, 14, 23, 0]
    everything = np.concatenate([parts.train.labels, parts.steer.labels, parts.calib.labels])
    assert np.bincount(everything).tolist() == [500] * 100
    mean = parts.train.inputs.mean(axis=(0, 1, 2)) / 255
    np.testing.assert_allclose(mean, [0.5071, 0.4865, 0.4409], atol=1e-3)
