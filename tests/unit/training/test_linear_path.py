"""The strength of the penalty is chosen on the steer rows, and gammas learn from them."""

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.training.test_linear_solver import rows

from calibrant.errors import InputError
from calibrant.fitting.epoch_record import EpochRecord
from calibrant.fitting.steer_figures import steer_figures
from calibrant.losses import AdaFocalLoss, as_loss
from calibrant.training import fit_linear, fit_linear_path
from calibrant.training.linear_path import PathRecord


def splits(**options):
    features, labels = rows(n=400, **options)
    return (features[:300], labels[:300]), (features[300:], labels[300:])


def test_the_best_refinement_is_chosen():
    train, steer = splits()
    path = fit_linear_path(train, steer, 3, penalties=[100, 0.01, 1.0])
    assert [record.C for record in path.records] == sorted(record.C for record in path.records)
    refinements = [record.refinement for record in path.records]
    assert path.best == int(np.argmin(refinements))
    figures = steer_figures(path.layer.logits(steer[0]), steer[1])
    assert figures.refinement == path.records[path.best].refinement
    alone = fit_linear(*train, C=path.records[path.best].C)
    assert path.layer.logits(steer[0]) == pytest.approx(alone.logits(steer[0]), abs=0.05)


def test_a_path_ends_after_two_strengths_without_improvement():
    draw = np.random.default_rng(0)  # nothing to learn: the strongest penalty is the best
    features, labels = draw.normal(size=(300, 40)), draw.integers(0, 2, 300)
    train, steer = (features[:200], labels[:200]), (features[200:], labels[200:])
    path = fit_linear_path(train, steer, 2, penalties=[1e-4, 1e-2, 1, 10, 100])
    assert len(path.records) < 5


@pytest.mark.parametrize("loss", ["focal:gamma=1", "focal:gamma=5", "label_smoothing"])
def test_where_cross_entropy_is_sure_other_losses_reach_their_own_minimum(loss):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 400))  # more features than rows: every row can be right
    labels = (features[:, 0] + rng.normal(size=300) > 0).astype(np.int64)
    pair = (features[:200], labels[:200]), (features[200:], labels[200:])
    [plain, other] = (
        fit_linear_path(*pair, 2, loss=each, penalties=[100.0]).layer for each in ("ce", loss)
    )
    exact = fit_linear(*pair[0], loss=loss, C=100.0, tolerance=1e-7)

    def objective(layer):
        logits = torch.from_numpy(layer.logits(features[:200]))
        mean = as_loss(loss)(logits, torch.from_numpy(labels[:200])).item()
        return mean + 2.0 * (layer.weights**2).sum() / (2.0 * 100.0 * 200)

    least, gap = objective(exact), objective(plain) - objective(exact)
    assert gap > 0.1 * least
    assert objective(other) - least < 0.2 * gap


def test_gammas_learn_from_the_steer_rows():
    train, steer = splits()
    path = fit_linear_path(train, steer, 3, loss="adafocal:n_bins=4", penalties=[10.0])
    assert isinstance(path.loss, AdaFocalLoss)
    assert len(path.loss.history) == len(path.records) >= 3
    assert path.records[0].gammas == (1.0, 1.0)
    assert path.records[1].gammas != (1.0, 1.0)


def test_gammas_start_anew_at_each_strength():
    train, steer = splits()
    path = fit_linear_path(train, steer, 3, loss="adafocal:n_bins=4", penalties=[0.1, 1.0])
    first = [r.gammas for i, r in enumerate(path.records) if i == 0 or r.C != path.records[i - 1].C]
    assert first == [(1.0, 1.0)] * len(first)


def test_the_loss_that_was_given_is_left_alone():
    loss = AdaFocalLoss(n_bins=4)
    fit_linear_path(*splits(), 3, loss=loss)
    assert len(loss.history) == 0


def test_records_have_the_keys_of_an_epoch():
    path = fit_linear_path(*splits(), 3, penalties=[1.0])
    saved = path.records[0].to_dict()
    assert {"C", "steps"} == saved.keys() - EpochRecord.__dataclass_fields__.keys()
    assert PathRecord.from_dict(saved) == path.records[0]


def test_steer_rows_are_evaluated_at_the_class_frequencies_of_the_data():
    train, steer = splits()
    shift = np.array([0.0, 2.0, -1.0])
    plain = fit_linear_path(train, steer, 3, penalties=[1.0])
    moved = fit_linear_path(train, steer, 3, penalties=[1.0], log_shift=shift)
    expected = steer_figures(plain.layer.logits(steer[0]) - shift, steer[1])
    assert moved.records[0].nll == pytest.approx(expected.nll)
    weighted = fit_linear_path(train, steer, 3, penalties=[1.0], loss="ce:weight=[1,4,1]")
    logits = weighted.layer.logits(steer[0]) - np.log([1, 4, 1])
    assert weighted.records[0].nll == pytest.approx(steer_figures(logits, steer[1]).nll, rel=1e-5)


def test_classes_may_be_missing_among_the_steer_rows():
    train, (features, labels) = splits()
    path = fit_linear_path(train, (features[labels < 2], labels[labels < 2]), 3, loss="adafocal")
    assert np.isfinite(path.layer.weights).all()


def test_the_bits_are_the_same_every_time():
    train, steer = splits(width=900, dtype=np.float32)
    one, other = (fit_linear_path(train, steer, 3, loss="adafocal") for _ in range(2))
    assert np.array_equal(one.layer.weights, other.layer.weights)
    drop = {"seconds"}
    for a, b in zip(one.records, other.records, strict=True):
        pairs = zip(a.to_dict().items(), b.to_dict().items(), strict=True)
        assert all(x == y for x, y in pairs if x[0] not in drop)


@pytest.mark.parametrize("penalties", [[], "10", [0.0], [1, None], [float("nan")], -1])
def test_invalid_strengths_are_refused(penalties):
    with refuses(InputError, "C"):
        fit_linear_path(*splits(), 3, penalties=penalties)


def test_random_numbers_are_not_touched():
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    fit_linear_path(*splits(), 3, penalties=[1.0])
    assert torch.equal(torch.rand(3), expected)
