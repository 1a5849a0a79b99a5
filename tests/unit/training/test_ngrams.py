"""NgramClassifier: leak-free, reproducible, under every loss, and a model of a bundle."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from tests.data_sets import data_file
from tests.sentences import refuses
from tests.unit.bundle.parts import point

import calibrant
from calibrant import NgramClassifier, load_bundle
from calibrant.bundle import pack
from calibrant.bundle.scorers import EnsembleScorer
from calibrant.calibrators import CalibratedModel, TemperatureScaling
from calibrant.calibrators.base.calibrator import Unfitted
from calibrant.data import resample_rows
from calibrant.errors import BundleError, InputError
from calibrant.losses import losses
from calibrant.ood import OodRule
from calibrant.training.ngrams import NgramClassifier as Direct

WHY = {
    "defect": ["it came broken", "broken on arrival", "the screen is cracked", "does not work"],
    "size": ["too small for me", "a size too small", "far too big", "it does not fit"],
    "parts": ["a part is missing", "screws are missing", "without the cable", "parts missing"],
}
TEXTS = [f"{text} {i % 5}" for i in range(10) for texts in WHY.values() for text in texts]
LABELS = [why for _ in range(10) for why, texts in WHY.items() for _ in texts]


@pytest.fixture(scope="module")
def fitted():
    return NgramClassifier().fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def spam():
    with gzip.open(data_file("sms_spam", "sms_spam.jsonl.gz"), "rt", encoding="utf-8") as file:
        rows = {row["text"]: row["label_name"] for row in map(json.loads, file)}
    return list(rows)[:1500], list(rows.values())[:1500]


def test_it_learns(fitted):
    assert fitted.predict(["broken screen", "too big", "cable missing"]).tolist() == [
        "defect", "size", "parts",
    ]  # fmt: skip
    assert fitted.classes_.tolist() == ["defect", "parts", "size"]
    probs = fitted.predict_proba(TEXTS)
    assert probs.sum(axis=1) == pytest.approx(np.ones(len(TEXTS)))
    assert fitted.decision_function(TEXTS).shape == (len(TEXTS), 3)


def test_the_record_of_the_best_strength_is_the_best(fitted):
    refinements = [record.refinement for record in fitted.records_]
    assert fitted.best_epoch_ == int(np.argmin(refinements))
    assert fitted.C_ == fitted.records_[fitted.best_epoch_].C
    assert fitted.n_weights_ == fitted.layer_.weights.size + 3
    assert json.dumps([record.to_dict() for record in fitted.records_])


def test_the_vocabulary_is_that_of_the_train_rows_only():
    model = NgramClassifier(min_count=1).fit(
        TEXTS, LABELS, steer=(["secret word"] * 2, ["size"] * 2)
    )
    assert "secret" not in model.encoder_.get_feature_names_out()
    marked = [f"{text} row{i}row" for i, text in enumerate(TEXTS)]
    model = NgramClassifier(min_count=1).fit(marked, LABELS)
    names = set(model.encoder_.get_feature_names_out().tolist())
    steer = set(model.steer_places_.tolist())
    assert steer
    assert {i for i in range(len(marked)) if f"row{i}row" in names} == set(
        range(len(marked))
    ) - steer


@pytest.mark.parametrize("loss", sorted(set(losses()) - {"cost_sensitive"}))
def test_every_loss_trains(loss):
    model = NgramClassifier(loss=loss, C=10.0).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) > 0.9


def test_gammas_are_kept():
    model = NgramClassifier(loss="adafocal", C=10.0).fit(TEXTS, LABELS)
    assert len(model.loss_.history) == len(model.records_)
    assert model.records_[0].gammas == (1.0, 1.0)


@pytest.mark.parametrize("resample", ["over", "under"])
def test_resampling_shifts_the_logits_and_is_corrected(resample):
    keep = [i for i, why in enumerate(LABELS) if why != "size" or i % 5 == 0]
    texts, labels = [TEXTS[i] for i in keep], [LABELS[i] for i in keep]
    steer = (TEXTS[:24], LABELS[:24])
    model = NgramClassifier(resample=resample).fit(texts, labels, steer=steer)
    codes = np.unique(labels, return_inverse=True)[1]
    shift = resample_rows(codes, resample).log_shift
    assert model.log_shift_ == pytest.approx(shift)
    raw = NgramClassifier(resample=resample, correct_prior=False).fit(texts, labels, steer=steer)
    assert raw.log_shift_ is None
    assert model.predict_logits(TEXTS[:5]) == pytest.approx(raw.predict_logits(TEXTS[:5]) - shift)


def test_class_weights_shift_the_logits_and_are_corrected():
    model = NgramClassifier(loss="ce:weight=[1,4,1]").fit(TEXTS, LABELS)
    shift = np.log([1, 4, 1])
    assert model.log_shift_ == pytest.approx(shift - 0.0, rel=1e-6)
    with pytest.warns(UserWarning, match="class weights"):
        NgramClassifier(loss="focal:weight=[1,4,1]").fit(TEXTS, LABELS)


def test_the_bits_are_the_same_every_time_and_do_not_depend_on_the_caller(fitted):
    np.random.default_rng(0)
    again = clone(fitted).fit(TEXTS, LABELS)
    assert np.array_equal(again.layer_.weights, fitted.layer_.weights)
    assert np.array_equal(again.predict_logits(TEXTS), fitted.predict_logits(TEXTS))
    other = NgramClassifier(seed=1).fit(TEXTS, LABELS)
    assert not np.array_equal(other.steer_places_, fitted.steer_places_)


def test_labels_may_be_numbers_and_booleans():
    for labels in (
        [7 if why == "size" else -1 for why in LABELS],
        [why == "size" for why in LABELS],
    ):
        model = NgramClassifier(C=10.0).fit(TEXTS, labels)
        assert set(model.predict(TEXTS).tolist()) == set(labels)
        assert model.decision_function(TEXTS).shape == (len(TEXTS),)


def test_a_text_without_known_ngrams_is_left_to_a_person(fitted, tmp_path):
    assert fitted.predict_logits(["", "ÞÞÞ", "商"]).tolist() == [[0.0] * 3] * 3
    rule = OodRule.fit(fitted.predict_logits(TEXTS), score="energy", quantile=0.99, equal=True)
    act = [point("size", 0.1, classes=("defect", "parts", "size"))]
    bundle = pack(tmp_path / "bundle", scorer=fitted.to_scorer(), points=act, ood=rule)
    assert bundle.decide(["", "it came broken"]).out_of_scope.tolist() == [True, False]


def test_a_bundle_gives_the_same_bits(fitted, tmp_path):
    scorer = fitted.to_scorer(column="message", redact=True)
    bundle = pack(tmp_path / "bundle", scorer=scorer, calibrator=None)
    table = {"message": [*TEXTS, "", "größe 👍 商品"]}
    expected = scorer.predict_logits(table)
    loaded = load_bundle(tmp_path / "bundle")
    for each in (bundle, loaded):
        assert np.array_equal(each.predict_logits(table), expected)
    assert loaded.columns.texts == ("message",)
    assert loaded.manifest["scorer"]["kind"] == "linear"
    assert sorted(file.name for file in (tmp_path / "bundle").iterdir()) == [
        "card.md", "manifest.json", "model.safetensors", "ngrams.json",
    ]  # fmt: skip
    card = (tmp_path / "bundle" / "card.md").read_text()
    assert "linear" in card
    assert "ngrams.json" in card


def test_it_joins_an_ensemble(fitted, tmp_path):
    other = NgramClassifier(characters=None).fit(TEXTS, LABELS)
    both = EnsembleScorer([fitted.to_scorer(), other.to_scorer()], [0.7, 0.3])
    bundle = pack(tmp_path / "bundle", scorer=both)
    assert np.array_equal(bundle.predict_logits(TEXTS), both.predict_logits(TEXTS))


def test_a_bundle_runs_without_torch(fitted, tmp_path):
    pack(tmp_path / "bundle", scorer=fitted.to_scorer())
    code = f"""
import sys
class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "safetensors", "tokenizers"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing)
from calibrant import load_bundle
bundle = load_bundle({str(tmp_path / "bundle")!r})
print(bundle.predict_logits(["it came broken"]).tolist())
"""
    source = str(Path(calibrant.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == fitted.predict_logits(["it came broken"]).tolist()


@pytest.mark.parametrize("name", ["ngrams.json", "model.safetensors"])
def test_a_damaged_bundle_is_refused(fitted, tmp_path, name):
    pack(tmp_path / "bundle", scorer=fitted.to_scorer())
    shutil.copytree(tmp_path / "bundle", tmp_path / "other")
    (tmp_path / "other" / name).write_bytes(b"{}")
    with refuses(BundleError, name):
        load_bundle(tmp_path / "other")


def test_contributions_sum_to_the_logits(fitted):
    found = fitted.explain(TEXTS[:6])
    assert found.logits == pytest.approx(fitted.predict_logits(TEXTS[:6]), abs=1e-5)
    defect = fitted.classes_.tolist().index("defect")
    assert any("brok" in name for name, _ in found.rows[0].strongest(defect, most=3))


@pytest.mark.data
def test_spam_is_found(spam):
    texts, labels = spam
    model = NgramClassifier().fit(texts[:1000], labels[:1000])
    assert model.score(texts[1000:], labels[1000:]) > 0.96
    calibrated = CalibratedModel(model, TemperatureScaling()).fit(texts[1000:], labels[1000:])
    assert calibrated.predict_proba(texts[:3]).shape == (3, 2)


@pytest.mark.parametrize(
    ("options", "mentions"),
    [
        ({"C": 0}, ("C", "0")),
        ({"C": []}, ("C",)),
        ({"loss": "focle"}, ("focle", "focal")),
        ({"resample": "smote"}, ("resample", "smote")),
        ({"steer_share": 2}, ("steer_share", "2")),
        ({"words": 1}, ("words", "1")),
    ],
)
def test_invalid_options_are_refused(options, mentions):
    with refuses(InputError, *mentions):
        NgramClassifier(**options).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("texts", "labels", "mentions"),
    [
        ("one text", ["a"], ("X", "list")),
        ([], [], ("X", "empty")),
        ([1.0, 2.0], ["a", "b"], ("X", "row 0")),
        (["a", None], ["a", "b"], ("X", "row 1", "missing")),
        (["a"] * 4, ["a"] * 4, ("y", "one class")),
        (["a"] * 4, ["a"] * 3, ("y", "3", "4")),
        (np.zeros((2, 2)), ["a", "b"], ("X", "column")),
    ],
)
def test_invalid_rows_are_refused(texts, labels, mentions):
    with refuses(InputError, *mentions):
        NgramClassifier().fit(texts, labels)


def test_a_classifier_that_is_not_fitted_is_refused():
    for call in ("predict", "explain"):
        with refuses(Unfitted, "fit"):
            getattr(NgramClassifier(), call)(["it"])
    with refuses(Unfitted, "fit"):
        NgramClassifier().to_scorer()


def test_it_is_exported():
    assert NgramClassifier is Direct is calibrant.training.NgramClassifier
