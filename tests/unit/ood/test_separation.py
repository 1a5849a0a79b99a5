import json

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.ood import Separation, separation

RNG = np.random.default_rng(0)


WORLDS = [
    (RNG.normal(size=300), RNG.normal(1.0, size=200)),
    (RNG.integers(0, 5, 90).astype(float), RNG.integers(2, 7, 40).astype(float)),  # many ties
    (np.zeros(7), np.zeros(3)),
]


def test_pairs_are_counted_with_ties_as_half():
    # inside 1 2 3, outside 2 4: pairs won 2>1, 4>1, 4>2, 4>3, and 2=2 a half, of 6.
    found = separation([1.0, 2.0, 3.0], [2.0, 4.0])
    assert found.auroc == pytest.approx(4.5 / 6)
    assert (found.n_inside, found.n_outside) == (3, 2)


def test_fpr95_lets_19_of_20_rows_in_scope_through():
    # 1 to 20: the threshold is 19; of 5, 18, 19, 19.5 and 30 three are let through.
    found = separation(np.arange(1.0, 21.0), [5.0, 18.0, 19.0, 19.5, 30.0])
    assert found.fpr95 == pytest.approx(3 / 5)


@pytest.mark.parametrize(("inside", "outside"), WORLDS)
def test_auroc_agrees_with_scikit_learn(inside, outside):
    labels = np.repeat([0, 1], [len(inside), len(outside)])
    by_sklearn = roc_auc_score(labels, np.concatenate([inside, outside]))
    assert separation(inside, outside).auroc == pytest.approx(by_sklearn, abs=1e-12)


@pytest.mark.parametrize(("inside", "outside"), WORLDS)
def test_fpr95_is_a_point_of_scikit_learns_curve(inside, outside):
    # Rows in scope are the positives, and a low score speaks for them.
    labels = np.repeat([1, 0], [len(inside), len(outside)])
    fpr, tpr, _ = roc_curve(labels, -np.concatenate([inside, outside]), drop_intermediate=False)
    by_sklearn = fpr[np.argmax(tpr >= 0.95 - 1e-12)]
    assert separation(inside, outside).fpr95 == pytest.approx(by_sklearn)


def test_two_normals_give_the_values_known_in_closed_form():
    # N(0, 1) against N(2, 1): P(S_o > S_i) = Phi(2 / sqrt 2), and P(S_o <= 1.645) = Phi(1.645 - 2).
    rng = np.random.default_rng(1)
    found = separation(rng.normal(size=200_000), rng.normal(2.0, size=200_000))
    assert found.auroc == pytest.approx(norm.cdf(2 / np.sqrt(2)), abs=0.003)
    assert found.fpr95 == pytest.approx(norm.cdf(norm.ppf(0.95) - 2.0), abs=0.01)


@pytest.mark.parametrize(("inside", "outside"), WORLDS)
def test_only_the_order_matters(inside, outside):
    bent = separation(np.exp(inside), np.exp(outside))
    assert bent == separation(inside, outside)
    assert separation(inside[::-1], outside[::-1]) == bent
    swapped = separation(outside, inside)
    assert swapped.auroc == pytest.approx(1.0 - bent.auroc)


def test_perfect_useless_and_reversed_scores_are_the_ends():
    assert separation([1.0, 2.0], [3.0]) == Separation(1.0, 0.0, 2, 1)
    assert separation([0.0], [0.0, 0.0]) == Separation(0.5, 1.0, 1, 2)
    assert separation([3.0], [1.0, 2.0]) == Separation(0.0, 1.0, 1, 2)


def test_it_is_shown_in_one_line_and_survives_json():
    found = separation([1.0, 2.0], [2.0, 3.0])
    assert str(found) == "AUROC 0.8750, FPR95 0.5000 (2 rows in scope, 2 out of scope)."
    assert json.loads(json.dumps(found.to_dict())) == {
        "auroc": 0.875, "fpr95": 0.5, "n_inside": 2, "n_outside": 2,
    }  # fmt: skip
    assert "<pre>AUROC" in found._repr_html_()


@pytest.mark.parametrize(
    ("inside", "outside", "words"),
    [
        ([], [1.0], ("inside is empty",)),
        ([1.0], [], ("outside is empty",)),
        ([1.0, np.nan], [1.0], ("inside", "finite", "got nan", "row 1")),
        ([1.0], [[1.0, 2.0]], ("outside", "shape (n,)", "got (1, 2)", "pass", "score")),
    ],
)
def test_bad_scores_are_refused(inside, outside, words):
    with refuses(InputError, *words):
        separation(inside, outside)
