"""Bundles whose models give reasons, and those whose models give none."""

import numpy as np
from tests.unit.boosting.models import TABLE as SHELVES
from tests.unit.boosting.models import boosting_scorer
from tests.unit.bundle.model_parts import TABLE, TEXTS, table_scorer, text_scorer
from tests.unit.bundle.parts import point, temperature

from calibrant.bundle import BundlePoint, pack
from calibrant.bundle.scorers import EnsembleScorer
from calibrant.data import NgramEncoder, TableEncoder
from calibrant.data.linear_scorer import LinearScorer

CLASSES = ("defect", "other", "parts")


def known_weights(width, n_classes=3):
    return np.sin(5.0 * np.arange(width * n_classes)).reshape(width, n_classes)


def wet_scorer(**options):
    """N-grams of two words with round weights: each adds to one class only."""
    encoder = NgramEncoder(words=(1, 1), characters=None, min_count=1).fit(["wet", "dry"])
    weights = {"wet": [2.0, 0.0], "dry": [0.0, 3.0]}
    rows = [weights[name] for name in encoder.get_feature_names_out()]
    return LinearScorer(encoder, rows, [0.5, 0.0], classes=("no", "yes"), **options)


def ngram_scorer(texts=TEXTS, **options):
    encoder = NgramEncoder(min_count=1).fit(texts)
    weights, bias = known_weights(encoder.n_features), [0.25, -0.5, 0.0]
    return LinearScorer(encoder, weights, bias, shift=[0.5, 0.0, -0.25], classes=CLASSES, **options)


def linear_scorer():
    encoder = TableEncoder().fit(TABLE)
    weights = known_weights(len(encoder.get_feature_names_out()))
    return LinearScorer(encoder, weights, [0.25, -0.5, 0.0], name="linear", classes=CLASSES)


FAMILIES = {
    "boosting": (boosting_scorer, SHELVES),
    "two classes": (lambda: boosting_scorer(CLASSES[:2]), SHELVES),
    "ngrams": (ngram_scorer, [*TEXTS, "it is broken", "a small part"]),
    "linear": (linear_scorer, TABLE),
}
"""Models that give reasons, each with rows that it reads."""


def explained_bundle(folder, family="boosting", *, decides=False, scorer=None):
    """Pack a bundle with a calibrator, and with a point if it decides."""
    made = scorer or FAMILIES[family][0]()
    points = [BundlePoint(point("defect", 0.5, classes=made.classes), "calibrated")]
    return pack(
        folder,
        scorer=made,
        calibrator=temperature(2.0, made.classes),
        points=points if decides else [],
        force=True,
    )


def ensemble_scorer():
    """Two linear models that each explain, but not their average."""
    return EnsembleScorer([linear_scorer(), linear_scorer()], [0.25, 0.75])


UNEXPLAINED = {"network": text_scorer, "network of a table": table_scorer,
               "ensemble": ensemble_scorer}  # fmt: skip
"""Models that give no reasons."""
