"""The calibrate rows of a bundle: exact, the same bytes every time, read only when asked for."""

import hashlib
import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.bundle.parts import point, temperature

from calibrant.bundle import CalibRows, load_bundle, pack
from calibrant.bundle.calib_rows import FILE
from calibrant.bundle.manifest import seal_manifest
from calibrant.errors import BundleError, InputError

LOGITS = np.random.default_rng(0).normal(0, 3, (40, 3))
CODES = np.arange(40) % 4 - 1


def some(weights=None):
    return CalibRows(LOGITS, CODES, weights)


def packed(folder, **parts):
    return pack(folder, points=[point()], **{"calib": some(), **parts})


def replaced(folder, data, **changes):
    """Put other bytes in the place of the rows and seal the manifest again, as a forger would."""
    (folder / FILE).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][FILE] = hashlib.sha256(data).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(seal_manifest({**manifest, **changes})))
    return load_bundle(folder)


def archive(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 3.0, 40)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_was_packed_is_read_again_exactly(tmp_path, dtype, weights):
    rows = CalibRows(LOGITS.astype(dtype), CODES, weights)
    packed(tmp_path / "b", calib=rows)
    found = load_bundle(tmp_path / "b").calib
    assert (found.logits == LOGITS.astype(dtype)).all()
    assert found.logits.dtype == np.float64
    assert (found.codes == CODES).all()
    assert (found.weights is None) == (weights is None)
    assert weights is None or (found.weights == weights).all()
    assert found.hash == rows.hash
    assert len(found) == 40


def test_the_largest_weight_of_the_design_goes_along(tmp_path):
    weights = np.linspace(1.0, 3.0, 40)
    rows = CalibRows(LOGITS, CODES, weights, 20.0)
    packed(tmp_path / "b", calib=rows)
    found = load_bundle(tmp_path / "b").calib
    assert found.largest_weight == 20.0
    assert found.hash == rows.hash != some(weights).hash
    assert CalibRows.from_bytes(some(weights).to_bytes()).largest_weight is None
    damaged = archive(logits=LOGITS, codes=CODES, weights=weights, largest_weight=np.ones(2))
    with refuses(InputError, "calibrate rows"):
        CalibRows.from_bytes(damaged)


def test_the_same_rows_give_the_same_bytes(monkeypatch):
    first = some().to_bytes()
    monkeypatch.setattr("time.time", lambda: 4e9)
    monkeypatch.setattr("time.localtime", lambda *_: (2031, 5, 6, 7, 8, 9, 0, 0, 0))
    assert some().to_bytes() == first
    assert some(np.ones(40)).to_bytes() != first
    with zipfile.ZipFile(io.BytesIO(first)) as folder:
        assert {entry.date_time for entry in folder.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    read = np.load(io.BytesIO(first), allow_pickle=False)
    assert (read["logits"] == LOGITS).all()


def test_the_hash_is_that_of_the_numbers():
    short = LOGITS.astype(np.float32)
    assert CalibRows(short, CODES).hash == CalibRows(short.astype(np.float64), CODES).hash
    assert CalibRows(np.asfortranarray(LOGITS), CODES.astype(np.int8)).hash == some().hash
    others = [
        CalibRows(LOGITS + 1e-9, CODES),
        CalibRows(LOGITS, np.roll(CODES, 1)),
        some(np.ones(40)),
        CalibRows(LOGITS.reshape(20, 6), CODES[:20]),
    ]
    assert len({some().hash, *(rows.hash for rows in others)}) == 5


def test_numbers_that_fit_take_half_the_room():
    assert len(CalibRows(np.float32(LOGITS), CODES).to_bytes()) < len(some().to_bytes()) - 400


def test_log_odds_become_two_columns():
    assert CalibRows([2.0, -1.0], [1, 0]).logits.tolist() == [[-1.0, 1.0], [0.5, -0.5]]


def test_nobody_writes_into_the_rows():
    own = LOGITS.copy()
    rows = CalibRows(own, CODES)
    with pytest.raises(ValueError, match="read-only"):
        rows.logits[0, 0] = 1.0
    own[0, 0] = 7.0  # the user's array is still the user's
    assert rows.logits[0, 0] == LOGITS[0, 0]


@pytest.mark.parametrize(
    ("parts", "mentions"),
    [
        (([[1.0, np.nan]], [0]), ("must be finite",)),
        (([[1.0]], [0]), ("K >= 2",)),
        ((np.zeros((0, 2)), np.zeros(0, int)), ("is empty",)),
        ((LOGITS, CODES[:39]), ("must be 40 integers",)),
        ((LOGITS, CODES.astype(float)), ("integers", "got float64")),
        ((LOGITS, CODES + 2), ("from 0 to 2", "or -1", "got 1 to 4")),
        ((LOGITS, CODES - 1), ("got -2 to 1",)),
        ((LOGITS, CODES, np.ones(39)), ("weights", "shape", "39")),
        ((LOGITS, CODES, -np.ones(40)), ("between 0 and",)),
        ((LOGITS, CODES, np.full(40, 3.0), 2.0), ("largest_weight", "finite", "no smaller")),
        ((LOGITS, CODES, None, 2.0), ("largest_weight", "without weights")),
    ],
)
def test_rows_that_are_none_are_refused(parts, mentions):
    with refuses(InputError, *mentions):
        CalibRows(*parts)


def test_rows_of_other_classes_are_not_packed(tmp_path):
    with refuses(InputError, "2 logits", "3 classes"):
        packed(tmp_path / "b", calib=CalibRows([[1.0, 2.0]], [0]))
    with refuses(InputError, "CalibRows", "got ndarray"):
        packed(tmp_path / "b", calib=LOGITS)
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_lists_the_file_and_the_card_tells_of_it(tmp_path):
    made = packed(tmp_path / "b")
    data = (tmp_path / "b" / FILE).read_bytes()
    assert made.manifest["files"][FILE] == hashlib.sha256(data).hexdigest()
    assert made.manifest["format"] == 4
    card = (tmp_path / "b/card.md").read_text(encoding="utf-8")
    assert "`calib.npz` contains the logits" in card
    assert "No rows are in the bundle" not in card
    without = packed(tmp_path / "c", calib=None)
    assert FILE not in without.manifest["files"]
    assert FILE not in (tmp_path / "c/card.md").read_text(encoding="utf-8")


def test_no_other_file_takes_its_name(tmp_path):
    (tmp_path / "x").write_text("x")
    with refuses(InputError, "plain file names", "card.md, calib.npz"):
        packed(tmp_path / "b", files={FILE: tmp_path / "x"})


def test_a_bundle_without_the_rows_has_none(tmp_path):
    made = pack(tmp_path / "b", calibrator=temperature())
    assert made.calib is None
    assert load_bundle(tmp_path / "b").calib is None


def test_they_are_read_when_first_asked_for_and_once(tmp_path, monkeypatch):
    packed(tmp_path / "b")
    calls = []
    read = CalibRows.from_bytes.__func__
    monkeypatch.setattr(
        CalibRows, "from_bytes", classmethod(lambda cls, data: calls.append(1) or read(cls, data))
    )
    bundle = load_bundle(tmp_path / "b")
    bundle.decide(LOGITS)
    assert calls == []
    assert bundle.calib is bundle.calib
    assert calls == [1]


def test_a_bundle_that_changed_meanwhile_does_not_give_the_rows_of_another(tmp_path):
    packed(tmp_path / "b")
    bundle = load_bundle(tmp_path / "b")
    packed(tmp_path / "b", calib=CalibRows(LOGITS + 1, CODES), force=True)
    with refuses(BundleError, "was changed", "load it again"):
        _ = bundle.calib
    packed(tmp_path / "b", calib=None, force=True)
    with refuses(BundleError, "cannot be read", "No such file"):
        _ = bundle.calib


def test_a_changed_file_is_refused_when_the_bundle_is_loaded(tmp_path):
    packed(tmp_path / "b")
    with (tmp_path / "b" / FILE).open("ab") as file:
        file.write(b"x")
    with refuses(BundleError, "calib.npz", "changed", "packed"):
        load_bundle(tmp_path / "b")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a zip",
        pickle.dumps([1, 2]),
        some().to_bytes()[:-200],
        archive(logits=LOGITS),
        archive(logits=LOGITS, codes=CODES, more=CODES),
        archive(logits=LOGITS, codes=CODES.astype(float)),
        archive(logits=LOGITS.astype(str), codes=CODES),
        archive(logits=np.array([object()] * 3, dtype=object), codes=CODES),
        archive(logits=LOGITS[:, :2], codes=np.zeros(40, int)),
        archive(logits=LOGITS, codes=CODES + 5),
        archive(logits=np.full((40, 3), np.inf), codes=CODES),
        archive(logits=LOGITS, codes=CODES[:3]),
    ],
)
def test_a_forged_file_is_a_sentence_and_the_bundle_still_decides(tmp_path, data):
    packed(tmp_path / "b")
    bundle = replaced(tmp_path / "b", data)
    assert len(bundle.decide(LOGITS).decision) == 40
    with refuses(BundleError, "calib.npz is damaged:", ": pack it again") as caught:
        _ = bundle.calib
    assert "\n" not in str(caught.value)


def test_nothing_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "sprung").mkdir, ()

    packed(tmp_path / "b")
    out = io.BytesIO()
    np.savez(out, logits=np.array([Trap()], dtype=object), codes=CODES)
    with pytest.raises(BundleError):
        _ = replaced(tmp_path / "b", out.getvalue()).calib
    assert not (tmp_path / "sprung").exists()


def test_the_same_rows_are_known_in_another_order_and_otherwise_weighted():
    order = np.random.default_rng(1).permutation(40)
    other = CalibRows(LOGITS[order], CODES[order], np.linspace(1.0, 3.0, 40), 5.0)
    assert other.unordered_hash == some().unordered_hash
    assert other.hash != some().hash
    zeros = [CalibRows([[zero, 1.0], [2.0, 0.0]], [0, 1]) for zero in (0.0, -0.0)]
    assert zeros[0].unordered_hash == zeros[1].unordered_hash


def test_other_rows_are_other_rows_in_any_order():
    codes, logits = CODES.copy(), LOGITS.copy()
    codes[3] = 1 - codes[3]
    logits[5, 2] += 1e-9
    found = [
        some(),
        CalibRows(LOGITS, codes),
        CalibRows(logits, CODES),
        CalibRows(LOGITS[:-1], CODES[:-1]),
        CalibRows(np.vstack([LOGITS, LOGITS[:1]]), np.append(CODES, CODES[0])),
        CalibRows(LOGITS, CODES[::-1].copy()),  # other labels for the same logits
    ]
    assert len({each.unordered_hash for each in found}) == len(found)
