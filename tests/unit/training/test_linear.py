"""Linear models of tables and images: logistic regression, and the contract of the others."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant import load_bundle
from calibrant.bundle import pack
from calibrant.data.encoders.column_warning import ColumnWarning
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.pixel_features import pixel_features
from calibrant.errors import InputError
from calibrant.losses import losses
from calibrant.training import LinearClassifier, LinearImageClassifier


def table(n=300, *, seed=0):
    draw = np.random.default_rng(seed)
    price, shelf = draw.normal(5, 2, n), draw.choice(["top", "low", None], n)
    score = price - 5 + 2 * (shelf == "top") + draw.normal(size=n)
    return pd.DataFrame({"price": price, "shelf": shelf}), np.where(score > 0, "many", "few")


def images(n=120, side=8, channels=1, *, seed=0):
    draw = np.random.default_rng(seed)
    pixels = draw.integers(0, 100, size=(n, side, side, channels), dtype=np.uint8)
    pixels[::2, : side // 2] += 100
    return pixels, ["top", "nowhere"] * (n // 2)


CASES = [(LinearClassifier, table), (LinearImageClassifier, images)]


def test_a_table_is_logistic_regression():
    rows, labels = table()
    steer = table(seed=1)
    model = LinearClassifier(C=1.0).fit(rows, labels, steer=steer)
    features = model.encoder_.transform(rows)
    peer = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(features, labels)
    assert model.predict_proba(rows) == pytest.approx(peer.predict_proba(features), abs=0.01)


def test_pixels_are_normalised_and_averaged():
    small = images(6, 4, 3)[0]
    encoder = ImageEncoder().fit(small)
    expected = encoder.transform(small).transpose(0, 2, 3, 1).reshape(6, -1)
    assert pixel_features(encoder, small) == pytest.approx(expected, abs=1e-5)
    large = np.repeat(np.repeat(images(3, 32)[0], 3, axis=1), 2, axis=2)
    encoder = ImageEncoder().fit(large)
    pixels = (images(3, 32)[0] / 255 - encoder.mean_) / encoder.std_
    assert pixel_features(encoder, large) == pytest.approx(pixels.reshape(3, -1), abs=1e-5)
    odd = ImageEncoder().fit(images(3, 45)[0])
    assert pixel_features(odd, images(3, 45)[0]).shape == (3, 32 * 32)


@pytest.mark.parametrize(("kind", "make"), CASES)
@pytest.mark.parametrize("loss", sorted(set(losses()) - {"cost_sensitive"}))
def test_every_loss_trains(kind, make, loss):
    rows, labels = make()
    model = kind(loss=loss).fit(rows, labels)
    # The penalty of MMCE outweighs cross-entropy on noisy rows, and jumps where a class flips.
    assert model.score(rows, labels) > (0.6 if loss == "mmce" else 0.75)


@pytest.mark.parametrize(("kind", "make"), CASES)
def test_the_contract_of_the_other_classifiers_holds(kind, make):
    rows, labels = make()
    model = kind(loss="adafocal").fit(rows, labels)
    again = clone(model).fit(rows, labels)
    assert np.array_equal(again.predict_logits(rows), model.predict_logits(rows))
    assert model.decision_function(rows).shape == (len(labels),)
    assert model.best_epoch_ == int(np.argmin([r.refinement for r in model.records_]))
    assert json.dumps([r.to_dict() for r in model.records_])
    assert model.n_weights_ == model.layer_.weights.size + 2
    assert len(model.loss_.history) > 0


@pytest.mark.parametrize(("kind", "make"), CASES)
@pytest.mark.parametrize("resample", ["over", "under"])
def test_resampling_is_corrected(kind, make, resample):
    rows, labels = make()
    keep = np.flatnonzero((np.array(labels) != labels[0]) | (np.arange(len(labels)) % 6 == 0))
    few = rows.iloc[keep] if isinstance(rows, pd.DataFrame) else rows[keep]
    model = kind(resample=resample).fit(few, np.array(labels)[keep])
    assert model.log_shift_.shape == (2,)
    raw = clone(model).set_params(correct_prior=False).fit(few, np.array(labels)[keep])
    expected = raw.predict_logits(rows) - model.log_shift_
    assert model.predict_logits(rows) == pytest.approx(expected)


@pytest.mark.parametrize(("kind", "make"), CASES)
def test_a_bundle_gives_the_same_bits(kind, make, tmp_path):
    rows, labels = make()
    model = kind().fit(rows, labels)
    pack(tmp_path / "bundle", scorer=model.to_scorer())
    loaded = load_bundle(tmp_path / "bundle")
    assert np.array_equal(loaded.predict_logits(rows), model.predict_logits(rows))
    assert loaded.manifest["scorer"]["kind"] == "linear"
    one = rows.iloc[[3]] if isinstance(rows, pd.DataFrame) else rows[3:4]
    assert np.array_equal(loaded.predict_logits(one)[0], model.predict_logits(rows)[3])


def test_contributions_of_columns_sum_to_the_logits():
    rows, labels = table()
    model = LinearClassifier().fit(rows, labels)
    found = model.explain(rows)
    assert found.rows[0].parts == ("price", "shelf")
    assert found.logits == pytest.approx(model.predict_logits(rows), abs=1e-5)


def test_images_have_no_contributions():
    assert LinearImageClassifier().fit(*images()).to_scorer().explain(images()[0]) is None


def test_a_leaking_column_gives_a_warning():
    rows, labels = table()
    with pytest.warns(ColumnWarning, match="told"):
        LinearClassifier().fit(rows.assign(told=labels), labels)


def test_resized_images_are_read_from_a_bundle(tmp_path):
    model = LinearImageClassifier().fit(*images())
    pack(tmp_path / "bundle", scorer=model.to_scorer(resize=True))
    assert load_bundle(tmp_path / "bundle").scorer.resize


def test_images_of_another_size_are_refused():
    model = LinearImageClassifier().fit(*images())
    with refuses(InputError, "8 x 8", "9 x 9"):
        model.predict(images(side=9)[0])


@pytest.mark.data
def test_a_real_table_is_learned():
    rows = pd.read_csv(data_file("telco_churn", "telco_churn.csv.gz")).iloc[:2000]
    rows["TotalCharges"] = pd.to_numeric(rows["TotalCharges"], errors="coerce")
    model = LinearClassifier(drop=["customerID"]).fit(rows.drop(columns="Churn"), rows["Churn"])
    assert model.records_[model.best_epoch_].accuracy > 0.72
