"""Rows and models that the tests of CalibratedModel share."""

import pickle

import numpy as np
from sklearn.datasets import make_classification


def rows(k=2, n=1200, seed=0):
    return make_classification(
        n, n_features=12, n_informative=6, n_classes=k, flip_y=0.1, random_state=seed
    )


def fitted_on_half(estimator, k=2):
    X, y = rows(k)
    return estimator.fit(X[:600], y[:600]), X[600:], y[600:]


def state_of(estimator):
    return pickle.dumps(estimator)


def named_rows(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X[:, 0])), "yes", "no")


class Boosted:
    """Like a booster's wrapper: predict_proba in float32, classes_, and nothing of scikit-learn."""

    def __init__(self, classes=("no", "yes")):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        z = 3 * np.asarray(X, dtype=np.float32)[:, 0]
        p = 1 / (1 + np.exp(-z))
        return np.column_stack([1 - p, p])
