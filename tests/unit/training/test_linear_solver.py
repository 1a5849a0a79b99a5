"""A linear layer under any loss: by hand, by scikit-learn, by finite differences."""

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_sparse
from sklearn.linear_model import LogisticRegression
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import as_loss, losses
from calibrant.training import fit_linear
from calibrant.training.lbfgs import Point, SmoothObjective
from calibrant.training.linear_basis import FeatureBasis, RowBasis, choose_basis
from calibrant.training.linear_solver import LinearProblem, _LossValue

BASES = (FeatureBasis, RowBasis)


def rows(n=120, width=12, n_classes=3, *, seed=0, dtype=np.float64):
    draw = np.random.default_rng(seed)
    features = random_sparse(n, width, density=0.4, format="csr", random_state=seed, dtype=dtype)
    signal = features @ draw.normal(size=(width, n_classes)) * 3
    labels = (signal + draw.gumbel(size=signal.shape)).argmax(axis=1)
    labels[:n_classes] = np.arange(n_classes)
    return features, labels


def probs(logits):
    return torch.softmax(torch.from_numpy(logits), dim=1).numpy()


def test_one_feature_by_hand():
    """Two rows at -1 and 1: the weight of the log-odds solves 2 / (1 + e^w) = w / C."""
    layer = fit_linear(np.array([[-1.0], [1.0]]), np.array([0, 1]), C=1.0, tolerance=1e-10)
    weight = float(layer.weights[0, 1] - layer.weights[0, 0])
    assert 2 / (1 + math.exp(weight)) == pytest.approx(weight, abs=1e-8)
    assert layer.bias[1] - layer.bias[0] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_cross_entropy_is_logistic_regression(basis, n_classes, C):
    features, labels = rows(n_classes=n_classes)
    peer = LogisticRegression(C=C, tol=1e-12, max_iter=20_000).fit(features, labels)
    problem = LinearProblem(features, labels, n_classes, basis)
    found = problem.minimise(as_loss("ce"), C=C, tolerance=1e-9, max_steps=5000)
    layer = problem.layer(found.point)
    weights = layer.weights.T if n_classes > 2 else [layer.weights[:, 1] - layer.weights[:, 0]]
    assert weights == pytest.approx(peer.coef_, abs=1e-4)
    assert probs(layer.logits(features)) == pytest.approx(peer.predict_proba(features), abs=1e-5)


@pytest.mark.parametrize("width", [12, 400])
def test_arrays_and_single_precision_agree_with_sparse_double_precision(width):
    features, labels = rows(width=width)
    expected = fit_linear(features, labels, C=10.0, tolerance=1e-7).logits(features)
    for other in (features.toarray(), features.astype(np.float32), features.toarray().astype("f4")):
        found = fit_linear(other, labels, C=10.0, tolerance=1e-7).logits(features)
        assert probs(found) == pytest.approx(probs(expected), abs=2e-4)


@pytest.mark.parametrize("name", ["balanced", "class_balanced"])
def test_class_weights_are_those_of_scikit_learn(name):
    features, labels = rows()
    loss = as_loss(f"ce:weight={name}", class_counts=torch.bincount(torch.from_numpy(labels)))
    own = fit_linear(features, labels, loss=f"ce:weight={name}", C=2.0, tolerance=1e-9)
    weight = loss.weight.double().numpy()
    scale = weight[labels].mean()  # a mean is divided by the sum of the weights
    peer = LogisticRegression(C=2.0 / scale, tol=1e-12, class_weight=dict(enumerate(weight)))
    peer.set_params(max_iter=20_000).fit(features, labels)
    assert pytest.approx(peer.coef_, abs=1e-4) == own.weights.T


OPTIONS = {"cost_sensitive": "cost_sensitive:costs=[[0,1,2],[1,0,1],[3,1,0]]"}


@pytest.mark.parametrize("name", sorted(losses()))
def test_every_loss_falls_and_every_gradient_is_that_of_finite_differences(name):
    features, labels = rows(n=60)
    loss = as_loss(OPTIONS.get(name, name), class_counts=torch.bincount(torch.from_numpy(labels)))
    value = _LossValue(loss, torch.from_numpy(labels))
    start = value(np.zeros((60, 3)))[0]
    found = LinearProblem(features, labels, 3).minimise(loss, C=10.0)
    assert found.loss < start
    objective = SmoothObjective(FeatureBasis(features), value, 0.3)
    draw = np.random.default_rng(1)
    point, line = (Point(draw.normal(size=(12, 3)), draw.normal(size=3)) for _ in range(2))

    def total(at):
        return value(objective.logits(at))[0] + objective.penalty_at(at)

    slope = objective.dot(objective.gradient(point, value(objective.logits(point))[1]), line)
    step = 1e-5
    differences = (total(point.plus(step, line)) - total(point.plus(-step, line))) / (2 * step)
    assert slope == pytest.approx(differences, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("loss", ["ce", "focal:gamma=2", "brier"])
def test_both_bases_meet_at_the_same_weights(loss):
    features, labels = rows(width=300)
    layers = []
    for basis in BASES:
        problem = LinearProblem(features, labels, 3, basis)
        found = problem.minimise(as_loss(loss), C=1.0, tolerance=1e-8)
        layers.append(problem.layer(found.point))
    assert layers[0].weights == pytest.approx(layers[1].weights, abs=1e-5)


def test_the_smaller_basis_is_chosen():
    assert isinstance(choose_basis(np.ones((10, 21))), RowBasis)
    assert isinstance(choose_basis(csr_matrix(np.ones((10, 20)))), FeatureBasis)


@pytest.mark.parametrize("loss", ["ce", "soft_f1", "focal:gamma=3"])
def test_the_order_of_the_classes_makes_no_difference(loss):
    features, labels = rows(n=90)
    turned = fit_linear(features, 2 - labels, loss=loss, C=1.0, tolerance=1e-6)
    straight = fit_linear(features, labels, loss=loss, C=1.0, tolerance=1e-6)
    assert turned.logits(features)[:, ::-1] == pytest.approx(straight.logits(features), abs=5e-3)


def test_sums_and_means_have_the_same_minimum():
    features, labels = rows()
    mean, total = (
        fit_linear(features, labels, loss=f"focal:gamma=1,reduction={how}", tolerance=1e-8)
        for how in ("mean", "sum")
    )
    assert mean.weights == pytest.approx(total.weights, abs=1e-6)


@pytest.mark.parametrize("loss", ["mmce", "0.5*ce + 0.5*soft_f1", torch.nn.CrossEntropyLoss()])
def test_losses_of_a_whole_batch_are_computed_on_parts(loss):
    labels = torch.arange(2500) % 2
    value = _LossValue(as_loss(loss), labels)
    assert sorted(len(part) for part in value.parts) == [833, 833, 834]
    logits = np.random.default_rng(0).normal(size=(2500, 2))
    found, gradient = value(logits)
    parts = [float(value.loss(torch.from_numpy(logits[p]), labels[p])) for p in value.parts]
    shares = [len(part) / 2500 for part in value.parts]
    assert found == pytest.approx(np.dot(shares, parts), rel=1e-12)
    assert np.isfinite(gradient).all()


def test_the_bits_are_the_same_every_time():
    features, labels = rows(n=300, width=2000, dtype=np.float32)
    one, other = (fit_linear(features, labels, loss="focal:gamma=1") for _ in range(2))
    assert np.array_equal(one.weights, other.weights)
    assert np.array_equal(one.bias, other.bias)


def test_a_warm_start_ends_at_the_same_weights():
    features, labels = rows()
    problem = LinearProblem(features, labels, 3)
    weak = problem.minimise(as_loss("ce"), C=1.0, tolerance=1e-8)
    warm = problem.minimise(as_loss("ce"), C=10.0, start=weak.point, tolerance=1e-8)
    cold = problem.minimise(as_loss("ce"), C=10.0, tolerance=1e-8)
    assert warm.point.weights == pytest.approx(cold.point.weights, abs=1e-4)


def test_a_class_without_rows_gets_the_smallest_logits():
    features, labels = rows(n_classes=2)
    layer = fit_linear(features, labels, n_classes=3, C=10.0)
    assert (layer.logits(features).argmin(axis=1) == 2).all()


def test_rows_without_features_are_told_apart_by_the_bias_alone():
    layer = fit_linear(csr_matrix((8, 3)), np.array([0, 1, 1, 1] * 2), tolerance=1e-8)
    assert not layer.weights.any()
    assert probs(layer.bias[None])[0] == pytest.approx([0.25, 0.75], abs=1e-6)


@pytest.mark.parametrize("C", [0, -1, math.inf, math.nan, "1", True])
def test_an_invalid_strength_is_refused(C):
    with refuses(InputError, "C", str(C)):
        fit_linear(*rows(), C=C)


def test_labels_must_match_the_rows():
    with refuses(InputError, "labels", "119", "120"):
        fit_linear(rows()[0], rows()[1][1:])
