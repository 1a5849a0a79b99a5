"""Row sketches: when a calibrator recognises the rows it was fitted on."""

import json
import pickle

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone

from calibrant.calibrators import (
    AutoCalibrator,
    Calibrator,
    FocalRecovery,
    HistogramBinning,
    Identity,
    PriorCorrection,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.errors import InputError
from calibrant.inputs import row_sketch
from calibrant.inputs.row_sketch import MAX_HASHES, RowSketch, fingerprint, row_hashes


def draw_rows(n, k=3, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n if k == 2 else (n, k))
    return CalibrationRows(scores, rng.integers(0, k, n), None, tuple(range(k)))


def concatenate(*parts):
    both = (np.concatenate([getattr(p, name) for p in parts]) for name in ("logits", "labels"))
    return CalibrationRows(*both, None, parts[0].classes)


def shuffle(rows, seed=9):
    return rows.take(np.random.default_rng(seed).permutation(rows.n))


# Hashes


def test_equivalent_logits_have_the_same_hash():
    rows = draw_rows(500)
    moved = CalibrationRows(rows.logits + 2.0**-3, rows.labels, None, rows.classes)
    assert (row_hashes(moved) == row_hashes(rows)).mean() > 0.8  # sums round in single precision
    two = draw_rows(500, k=2)
    columns = np.column_stack([-0.5 * two.logits, 0.5 * two.logits])
    wide = CalibrationRows(columns, two.labels, None, two.classes)
    assert (row_hashes(wide) == row_hashes(two)).all()


def test_scores_read_from_a_text_file_have_the_same_hash():
    rows = draw_rows(500)
    short = rows.logits.astype(np.float32)
    read = np.array([[float(str(value)) for value in row] for row in short])
    assert not (read == short).all()
    hashes = (
        row_hashes(CalibrationRows(x, rows.labels, None, rows.classes)) for x in (short, read)
    )
    assert np.equal(*hashes).all()


def test_other_scores_and_other_labels_have_other_hashes():
    rows = draw_rows(500)
    assert len(np.unique(row_hashes(rows))) == 500
    turned = CalibrationRows(rows.logits, (rows.labels + 1) % 3, None, rows.classes)
    assert not np.isin(row_hashes(turned), row_hashes(rows)).any()
    swapped = CalibrationRows(rows.logits[:, [1, 0, 2]], rows.labels, None, rows.classes)
    assert not np.isin(row_hashes(swapped), row_hashes(rows)).any()


def test_hashes_do_not_depend_on_how_many_rows_are_taken_at_a_time(monkeypatch):
    rows = draw_rows(1000)
    whole = row_hashes(rows)
    monkeypatch.setattr(row_sketch, "_BLOCK", 100)
    assert (row_hashes(rows) == whole).mean() > 0.999


def test_logits_that_overflow_single_precision_are_accepted():
    rows = CalibrationRows(
        np.array([[1e300, -1e300, 0.0], [1e300, 0.0, 1e300]]), np.array([0, 1]), None, (0, 1, 2)
    )
    assert not RowSketch.from_rows(rows).shares(draw_rows(100))


@pytest.mark.parametrize("values", [3, 200, 5000, 10**9])
def test_the_smallest_hashes_equal_those_of_a_full_sort(values):
    rng = np.random.default_rng(0)
    hashes = row_sketch._mix_bits(rng.integers(0, values, 20_000).astype(np.uint64))
    distinct, counts = np.unique(hashes, return_counts=True)
    smallest, occurrences = row_sketch._smallest_hashes(hashes)
    assert smallest.tolist() == distinct[:MAX_HASHES].tolist()
    assert occurrences.tolist() == counts[:MAX_HASHES].tolist()


# Recognised and unknown rows


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", [100, 5000])
def test_the_same_rows_are_recognised(n, k):
    rows, others = draw_rows(n, k), draw_rows(n, k, seed=1)
    sketch = RowSketch.from_rows(rows)
    assert sketch.shares(rows)
    assert sketch.shares(shuffle(rows))
    assert sketch.shares(rows.take(slice(0, n // 2)))
    assert sketch.shares(shuffle(concatenate(rows, others)))
    assert sketch.shares(concatenate(rows.take(slice(0, n // 4)), others))
    assert not sketch.shares(others)
    weighted = CalibrationRows(rows.logits, rows.labels, np.arange(1.0, n + 1.0), rows.classes)
    assert sketch.shares(weighted)


def test_a_few_rows_are_recognised_only_in_their_order():
    rows = draw_rows(12)
    assert RowSketch.from_rows(rows).shares(rows)
    assert not RowSketch.from_rows(rows).shares(shuffle(rows))  # 12 equal rows might be chance


def test_integer_scores_are_recognised_as_a_whole_and_never_by_chance():
    rng = np.random.default_rng(0)

    def five(n):
        return CalibrationRows(rng.integers(0, 5, n) * 1.0, rng.integers(0, 2, n), None, (0, 1))

    rows = five(400)
    assert RowSketch.from_rows(rows).shares(rows)
    assert not any(RowSketch.from_rows(five(400)).shares(five(400)) for _ in range(200))


def test_rows_that_are_all_equal_are_never_recognised():
    rare = CalibrationRows(np.zeros(30), np.zeros(30, int), None, (0, 1))
    assert not RowSketch.from_rows(rare).shares(rare)


def score_distributions(rng):
    """Return independent rows with few different scores, some of them frequent."""

    def rounded(n, digits):
        return np.round(rng.normal(size=n), digits)

    templates = np.random.default_rng(7).normal(size=300)
    return {
        "thirty": lambda n: rng.integers(0, 30, n) * 1.0,
        "2 digits": lambda n: rounded(n, 2),
        "3 digits": lambda n: rounded(n, 3),
        "geometric": lambda n: rng.geometric(0.02, n) * 1.0,
        "zipf": lambda n: np.minimum(rng.zipf(1.4, n), 10**6) * 1.0,
        "templates": lambda n: np.where(
            rng.random(n) < 0.5, rng.choice(templates, n), rng.normal(size=n)
        ),
        "drifted": lambda n: np.round(rng.normal(0.5 * (n == 500), 1.0, n), 2),
    }


@pytest.mark.parametrize("distribution", score_distributions(None))
def test_ties_raise_no_more_alarms_than_chance_allows(distribution, monkeypatch):
    """At a rate of 1 % instead of one in a million, so that there are false alarms to count."""
    monkeypatch.setattr(row_sketch, "FALSE_ALARM_RATE", 0.01)
    rng = np.random.default_rng(3)
    scores = score_distributions(rng)[distribution]

    def rows(n):
        return CalibrationRows(scores(n), (rng.random(n) < 0.3) * 1, None, (0, 1))

    alarms = sum(
        RowSketch.from_rows(rows(n)).shares(rows(500)) for n in (300, 2000) for _ in range(200)
    )
    assert alarms <= binom.ppf(0.999, 400, 0.01)


# Use by calibrators


def test_a_calibrator_says_whether_it_has_seen_rows():
    rows = draw_rows(300)
    names = np.array(["a", "b", "c"])
    fitted = VectorScaling().fit(rows.logits, names[rows.labels], classes=["a", "b", "c"])
    assert fitted.has_seen(rows.logits, names[rows.labels])
    assert fitted.has_seen(rows.logits[:100], names[rows.labels[:100]])
    others = draw_rows(300, seed=1)
    assert not fitted.has_seen(others.logits, names[others.labels])
    assert not fitted.has_seen(rows.logits, names[(rows.labels + 1) % 3])


def test_the_sketch_survives_saving_pickling_and_copying():
    rows = draw_rows(300)
    for calibrator in (
        HistogramBinning(),
        AutoCalibrator(),
        TemperatureScaling().then(VectorScaling()),
    ):
        fitted = calibrator.fit(rows.logits, rows.labels)
        loaded = Calibrator.from_dict(json.loads(json.dumps(fitted.to_dict(), allow_nan=False)))
        for copy in (fitted, loaded, pickle.loads(pickle.dumps(fitted))):
            assert copy.has_seen_rows(shuffle(rows)), calibrator
            assert not copy.has_seen_rows(draw_rows(300, seed=1))
        assert loaded.to_dict() == fitted.to_dict()
        assert not hasattr(clone(fitted), "fitted_on_")


def test_a_chain_recognises_the_rows_of_every_member():
    first, second = draw_rows(300), draw_rows(300, seed=1)
    calibrator = TemperatureScaling().fit(first.logits, first.labels)
    after = calibrator.predict_log_proba(second.logits)
    chain = calibrator.then(VectorScaling().fit(after, second.labels))
    assert chain.has_seen_rows(first)
    assert chain.has_seen_rows(second)
    assert not chain.has_seen_rows(draw_rows(300, seed=2))


def test_a_calibrator_that_uses_no_labels_has_seen_no_rows():
    rows = draw_rows(300)
    for calibrator in (
        Identity(),
        FocalRecovery(gamma=2.0),
        PriorCorrection(target=[0.5, 0.3, 0.2]),
    ):
        assert not calibrator.fit(rows.logits, rows.labels).has_seen_rows(rows)
        assert "fitted_on" not in calibrator.to_dict()
    assert PriorCorrection().fit(rows.logits, rows.labels).has_seen_rows(rows)


def test_a_new_fit_forgets_the_rows_before_it():
    rows, others = draw_rows(300), draw_rows(300, seed=1)
    calibrator = PriorCorrection().fit(rows.logits, rows.labels)
    assert not calibrator.fit(others.logits, others.labels).has_seen_rows(rows)
    calibrator.set_params(target=[0.5, 0.3, 0.2]).fit(rows.logits, rows.labels)
    assert not calibrator.has_seen_rows(others)


def test_a_file_without_a_sketch_loads_and_recognises_nothing():
    rows = draw_rows(300)
    saved = VectorScaling().fit(rows.logits, rows.labels).to_dict()
    del saved["fitted_on"]
    loaded = Calibrator.from_dict(saved)
    assert not loaded.has_seen_rows(rows)
    assert loaded.to_dict() == saved


def test_a_sketch_is_small_and_counts_repeated_rows():
    assert len(json.dumps(RowSketch.from_rows(draw_rows(50_000)).to_dict())) < 18_000
    assert set(RowSketch.from_rows(draw_rows(50)).to_dict()) == {"rows", "fingerprint", "hashes"}
    twice = RowSketch.from_rows(concatenate(draw_rows(50), draw_rows(50)))
    assert RowSketch.from_dict(twice.to_dict()).counts.tolist() == [2] * 50
    again = RowSketch.from_dict(twice.to_dict())
    assert again.to_dict() == twice.to_dict()


@pytest.mark.parametrize(
    "change",
    [{"hashes": "?"}, {"hashes": 3}, {"hashes": "AAAA"}, {"hashes": ""}, {"rows": "many"},
     {"rows": 1}, {"counts": "AQAAAA=="}, {"counts": "AAAA" * 133 + "AA=="}, {"fingerprint": None}],
)  # fmt: skip
def test_a_damaged_sketch_is_refused(change):
    rows = draw_rows(100)
    saved = TemperatureScaling().fit(rows.logits, rows.labels).to_dict()
    Calibrator.from_dict(saved)
    with pytest.raises(InputError, match="damaged"):
        Calibrator.from_dict({**saved, "fitted_on": {**saved["fitted_on"], **change}})
    with pytest.raises(InputError, match="damaged"):
        Calibrator.from_dict({**saved, "fitted_on": None})


def test_example_of_fingerprint():
    assert (
        fingerprint(np.array([1.0, 2.0]), named="a") == "blake2b:28852ac379ab78e46afe0a6fe0a78876"
    )
