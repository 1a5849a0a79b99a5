"""Word vectors: the same from each form that GloVe is passed on in."""

import json
import zipfile

import numpy as np
import pytest
from reproductions.glove import WordVectors, read_vectors, write_compact

from calibrant.errors import InputError

WORDS = ("the", "cat", "naïve", "\xa0")
VECTORS = np.array([[0.25, -1.5, 2.0], [1.0, 0.5, -0.125], [3.0, 4.0, 5.0], [1, 1, 1]], np.float32)


def lines() -> str:
    rows = zip(WORDS, VECTORS, strict=True)
    return "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows)


@pytest.fixture(params=["txt", "zip", "json", "npz"])
def file(request, tmp_path):
    """The same vectors in each form."""
    path = tmp_path / f"glove.{request.param}"
    if request.param == "txt":
        path.write_text(lines(), encoding="utf-8")
    elif request.param == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("glove.6B.50d.txt", "the 1 2\n")
            archive.writestr("glove.6B.100d.txt", lines())
    elif request.param == "json":
        told = {
            w: [*v.tolist(), 7.5, i] for i, (w, v) in enumerate(zip(WORDS, VECTORS, strict=True))
        }
        path.write_text(json.dumps({"dimensions": 3, "words": list(WORDS), "vectors": told}))
    else:
        assert write_compact(path, WordVectors(WORDS, VECTORS)) == len(WORDS)
    return path


def test_every_form_gives_the_same(file):
    found = read_vectors(file)
    assert found.words == WORDS
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, VECTORS)


def test_only_some_words_are_read(file):
    found = read_vectors(file, ["naïve", "the", "emu"])
    assert found.words == ("the", "naïve")
    np.testing.assert_array_equal(found.vectors, VECTORS[[0, 2]])


def test_a_damaged_file_is_one_sentence(file):
    file.write_bytes(b"the 1 2 3\ncat 1 2\n" if file.suffix == ".txt" else file.read_bytes()[:40])
    with pytest.raises(
        InputError, match=rf"^glove{file.suffix} does not hold word vectors \(.*\): "
    ):
        read_vectors(file)


def test_words_without_a_vector_have_zeros_in_any_order():
    known = WordVectors(WORDS, VECTORS)
    found = known.of(["cat", "emu", "the", "cat"])
    np.testing.assert_array_equal(found, [VECTORS[1], [0, 0, 0], VECTORS[0], VECTORS[1]])
    assert known.of([]).shape == (0, 3)


def test_the_compact_file_may_hold_some_words_only(tmp_path):
    path = tmp_path / "some.npz"
    assert write_compact(path, WordVectors(WORDS, VECTORS), {"cat", "emu"}) == 1
    assert read_vectors(path).words == ("cat",)


def test_half_precision_moves_no_vector_by_a_thousandth_of_its_length(tmp_path):
    drawn = np.random.default_rng(0).normal(0.0, 0.5, (300, 100)).astype(np.float32)
    words = tuple(f"w{i}" for i in range(300))
    write_compact(tmp_path / "drawn.npz", WordVectors(words, drawn))
    moved = np.linalg.norm(read_vectors(tmp_path / "drawn.npz").vectors - drawn, axis=1)
    assert (moved < 1e-3 * np.linalg.norm(drawn, axis=1)).all()


def test_none_of_the_words_is_no_damage(file):
    assert read_vectors(file, ["emu"]).words == ()


def test_what_cannot_be_read_is_told(tmp_path):
    with pytest.raises(
        InputError, match=r"read from \.txt, \.zip, \.json, \.npz files, got 'a.bin'"
    ):
        read_vectors(tmp_path / "a.bin")
    with pytest.raises(InputError, match="there is no file"):
        read_vectors(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("the 1 nan\n")
    with pytest.raises(InputError, match="not finite"):
        read_vectors(tmp_path / "b.txt")
    (tmp_path / "c.txt").write_text("")
    with pytest.raises(InputError, match="empty"):
        read_vectors(tmp_path / "c.txt")
    with pytest.raises(InputError, match="give one row for each word"):
        WordVectors(("a", "b"), VECTORS)
