"""scikit-learn: its sigmoid and isotonic calibration agree, and where they do not is shown."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from tests.parity.peer_rows import drawn

from calibrant.calibrators import IsotonicCalibration, PlattScaling
from calibrant.calibrators.fits.logistic import platt_targets
from calibrant.convert import log_odds_from_logits
from calibrant.metrics import auroc, nll

WORLDS = ("binary", "calibrated", "tied", "rare")


def rows(name, n, seed):
    labels, probs = drawn(name, n, seed)
    probs = np.clip(probs, 1e-12, 1 - 1e-12)
    return labels, np.log(probs) - np.log1p(-probs)


def weighed(n):
    return [None, np.random.default_rng(n).uniform(0.2, 3.0, n)]


def loss(odds, targets, weights):
    return float(np.average(np.logaddexp(0.0, odds) - targets * odds, weights=weights))


class Model(ClassifierMixin, BaseEstimator):
    """A model that has nothing to learn: it knows the log-odds of each class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        best = (X[:, 0] > 0) * 1 if len(self.classes_) == 2 else X.argmax(axis=1)
        return self.classes_[best]


class LogOdds(Model):
    """It gives them as its decision function."""

    def decision_function(self, X):
        return X[:, 0] if len(self.classes_) == 2 else X


class Probabilities(Model):
    """It gives probabilities only."""

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-X[:, 0]))
        return np.column_stack([1 - p, p])


def calibrated(method, scores, labels, weights=None):
    model = FrozenEstimator(LogOdds().fit(scores, labels))
    return CalibratedClassifierCV(model, method=method).fit(scores, labels, sample_weight=weights)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_sigmoid_is_the_same_line_on_log_odds(name, seed):
    labels, z = rows(name, 900, seed)
    for w in weighed(900):
        peer = _SigmoidCalibration().fit(z, labels, w)
        ours = PlattScaling(shrink="platt").fit(z, labels, w)
        line = ours.maps_[0]
        targets = platt_targets(labels == 1, w, smooth=True)
        mine = loss(line["slope"] * z + line["intercept"], targets, w)
        theirs = loss(-(peer.a_ * z + peer.b_), targets, w)
        assert mine <= theirs * (1 + 1e-9)
        assert mine == pytest.approx(theirs, rel=1e-6)
        assert ours.predict_proba(z) == pytest.approx(peer.predict(z), abs=2e-3)


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator")  # does not take weights itself
@pytest.mark.parametrize("name", WORLDS)
def test_the_whole_classifier_gives_the_same_probabilities(name):
    labels, z = rows(name, 700, 4)
    for w in weighed(700):
        peer = calibrated("sigmoid", z[:, None], labels, w).predict_proba(z[:, None])
        assert PlattScaling(shrink="platt").fit(z, labels, w).predict_proba(z) == pytest.approx(
            peer[:, 1], abs=2e-3
        )


def test_scikit_learn_turns_scores_round_that_point_the_wrong_way():
    labels, z = rows("binary", 600, 5)
    peer = _SigmoidCalibration().fit(-z, labels)
    assert peer.a_ > 0
    assert auroc(labels, peer.predict(-z)) > 0.7 > 0.3 > auroc(labels, 1 / (1 + np.exp(z)))
    ours = PlattScaling(shrink="platt").fit(-z, labels).predict_proba(-z)
    assert auroc(labels, ours) == auroc(labels, 1 / (1 + np.exp(z)))


def test_probabilities_instead_of_log_odds_lose_log_loss_there():
    labels, z = rows("binary", 4000, 6)
    given = FrozenEstimator(Probabilities().fit(z[:, None], labels))
    peer = CalibratedClassifierCV(given, method="sigmoid").fit(z[:, None], labels)
    on_probs = nll(labels, peer.predict_proba(z[:, None])[:, 1])
    assert (
        nll(labels, PlattScaling(shrink="platt").fit(z, labels).predict_proba(z)) < on_probs - 0.003
    )


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_textbook_isotonic_fit_agrees_everywhere(name, seed):
    labels, z = rows(name, 600, seed)
    asked = np.r_[z, np.linspace(z.min() - 3, z.max() + 3, 500)]
    for w in weighed(600):
        peer = IsotonicRegression(out_of_bounds="clip").fit(z, labels, sample_weight=w)
        ours = IsotonicCalibration(pseudo_count=0).fit(z, labels, w).predict_proba(asked)
        assert ours == pytest.approx(peer.predict(asked), abs=1e-9)


@pytest.mark.parametrize("name", ["multiclass", "long_tailed"])
@pytest.mark.parametrize(
    ("method", "ours", "near"),
    [
        ("sigmoid", PlattScaling(shrink="platt"), 3e-3),
        ("isotonic", IsotonicCalibration(pseudo_count=0), 1e-9),
    ],
)
def test_more_classes_are_calibrated_one_against_the_rest_and_normalised(name, method, ours, near):
    labels, probs = drawn(name, 900, 7)
    logits = np.log(probs)
    odds = log_odds_from_logits(logits)
    peer = calibrated(method, odds, labels)
    fresh = np.log(drawn(name, 500, 8)[1])
    found = ours.fit(logits, labels).predict_proba(fresh)
    theirs = peer.predict_proba(log_odds_from_logits(fresh))
    assert found == pytest.approx(theirs, abs=near)


def test_the_default_isotonic_fit_keeps_the_log_loss_finite_where_theirs_is_certain_and_wrong():
    labels, z = rows("binary", 300, 9)
    fresh, asked = rows("binary", 3000, 10)
    peer = IsotonicRegression(out_of_bounds="clip").fit(z, labels).predict(asked)
    assert nll(fresh, peer) == np.inf
    assert nll(fresh, IsotonicCalibration().fit(z, labels).predict_proba(asked)) < 0.6
