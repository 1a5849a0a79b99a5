"""Temperature scaling elsewhere: scikit-learn is met or beaten, and known failures are shown."""

import contextlib
import io

import numpy as np
import pytest
import torch
from netcal.scaling import TemperatureScaling as NetcalTemperature
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.model import CalibratedModel
from calibrant.metrics import nll

TRUTHS = [0.3, 1.0, 2.5, 8.0, 40.0, 200.0]


class Logits(ClassifierMixin, BaseEstimator):
    """A model whose features are its logits."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        best = self.decision_function(X)
        return self.classes_[(best > 0) * 1 if best.ndim == 1 else best.argmax(axis=1)]

    def decision_function(self, X):
        return X[:, 0] if X.shape[1] == 1 else X


def drawn(k, temperature, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(0.0, 2.0, (n, 1 if k == 2 else k))
    if k == 2:
        labels = (rng.random(n) < 1 / (1 + np.exp(-truth[:, 0]))) * 1
    else:
        labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    return temperature * truth, labels


def peer(logits, labels, weights=None):
    model = FrozenEstimator(Logits().fit(logits, labels))
    return CalibratedClassifierCV(model, method="temperature").fit(logits, labels, weights)


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator does not appear to accept sample_weight")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("k", [2, 3, 10])
def test_loss_on_the_fitting_rows_is_not_above_scikit_learns(k, truth, weighted):
    logits, labels = drawn(k, truth)
    weights = np.random.default_rng(1).exponential(size=len(labels)) if weighted else None
    theirs = nll(labels, peer(logits, labels, weights).predict_proba(logits), weights=weights)
    given = logits[:, 0] if k == 2 else logits
    probs = TemperatureScaling().fit(given, labels, weights).predict_proba(given)
    ours = nll(labels, probs, weights=weights)
    assert ours <= theirs * (1 + 1e-6)
    assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), GaussianNB(), RandomForestClassifier(50, random_state=0)]
)
def test_a_fitted_classifier_is_calibrated_no_worse(estimator, k):
    X, y = make_classification(
        1500, n_features=15, n_informative=8, n_classes=k, flip_y=0.1, random_state=0
    )
    model = estimator.fit(X[:500], y[:500])
    X, y = X[500:], y[500:]
    theirs = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(X, y)
    ours = CalibratedModel(model, TemperatureScaling()).fit(X, y)
    best = nll(y, theirs.predict_proba(X))
    assert nll(y, ours.predict_proba(X)) <= best * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_netcal_is_given_probabilities_and_loses_a_large_temperature():
    # Softmax has rounded the logits away before it can look for T; ours reads the logits.
    logits, labels = drawn(10, 40.0)
    shifted = logits - logits.max(axis=1, keepdims=True)
    probs = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        theirs = NetcalTemperature().fit(probs, labels)
        reached = nll(labels, theirs.transform(probs))
    assert 1 / float(theirs.temperature[0]) < 20  # the attribute holds 1 / T
    ours = TemperatureScaling().fit(logits, labels)
    assert ours.temperature_ == pytest.approx(40, rel=0.1)
    assert nll(labels, ours.predict_proba(logits)) < reached - 0.1


def by_lbfgs(loss_of, start, *, rate, steps):
    """Search one number as widely copied code does: L-BFGS without a line search."""
    number = torch.tensor([start], dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([number], lr=rate, max_iter=steps)

    def closure():
        search.zero_grad()
        loss = loss_of(number)
        loss.backward()
        return loss

    search.step(closure)
    return float(number.detach()[0])


def losses(logits, labels):
    z, y = torch.from_numpy(logits), torch.from_numpy(labels)
    entropy = torch.nn.functional.cross_entropy
    return lambda t: entropy(z / t, y), lambda b: entropy(z * b, y)


def test_lbfgs_with_a_small_rate_stops_on_the_way():
    logits, labels = drawn(10, 4.0, 1000)
    of_temperature, _ = losses(logits, labels)
    found = by_lbfgs(of_temperature, 1.5, rate=0.01, steps=50)
    ours = TemperatureScaling().fit(logits, labels).temperature_
    assert ours == pytest.approx(4.0, rel=0.1)
    assert 1.5 < found < 0.75 * ours


@pytest.mark.parametrize("truth", [8.0, 40.0])
def test_lbfgs_of_the_inverse_loses_its_way(truth):
    logits, labels = drawn(10, truth, 1000)
    _, of_inverse = losses(logits, labels)
    found = 1 / by_lbfgs(of_inverse, 1.0, rate=1.0, steps=100)
    assert not truth / 2 < found < 2 * truth
    ours = TemperatureScaling().fit(logits, labels).temperature_
    assert ours == pytest.approx(truth, rel=0.1)
