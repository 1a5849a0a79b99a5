"""What both classifiers share: splits before encoders, losses, priors, checkpoints, hooks."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.sentences import assert_mentions, refuses

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.model import CalibratedModel
from calibrant.errors import InputError, NotFitted
from calibrant.losses import FocalLoss, as_loss
from calibrant.training import Hook
from calibrant.training.tabular import TabularClassifier

SMALL = {"hidden": (16,), "dropout": (0.1,), "learning_rate": 0.02, "device": "cpu"}


def rows(n=400, k=2, seed=0, share=0.5):
    """BatchRows of two features whose log-odds are linear in the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if k > 2:
        return X, np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-0.5, 0.5])
    odds = 2.0 * X[:, 0] + np.log(share / (1 - share))
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def model(**options):
    return TabularClassifier(**{**SMALL, "epochs": 8, **options})


def test_steer_rows_are_split_off_before_anything_is_learned():
    X, y = rows()
    first = model().fit(X, y)
    spoilt = X.copy()
    spoilt[first.steer_places_] *= 1000.0
    second = model().fit(spoilt, y)
    assert np.array_equal(first.steer_places_, second.steer_places_)
    assert len(first.steer_places_) == 40
    assert first.encoder_.to_dict() == second.encoder_.to_dict()
    kept = np.delete(X, first.steer_places_, axis=0)
    assert first.encoder_.columns_[0].mean == pytest.approx(kept[:, 0].mean(), rel=1e-12)


def test_given_steer_rows_are_not_learned_from():
    X, y = rows()
    others = rows(seed=1)
    fitted = model().fit(X, y, steer=others)
    assert fitted.encoder_.columns_[0].mean == pytest.approx(X[:, 0].mean(), rel=1e-12)
    assert fitted.steer_places_.tolist() == []
    moved = model().fit(X, y, steer=(others[0] + 100.0, others[1]))
    assert moved.encoder_.to_dict() == fitted.encoder_.to_dict()


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    X, y = rows()
    torch.manual_seed(5)
    drawn = torch.rand(1)
    torch.manual_seed(5)
    first = model().fit(X, y).predict_proba(X)
    assert torch.rand(1) == drawn  # the caller's random numbers are left alone
    torch.manual_seed(99)
    assert np.array_equal(model().fit(X, y).predict_proba(X), first)
    assert not np.array_equal(model(seed=1).fit(X, y).predict_proba(X), first)


def test_answers_agree_with_each_other():
    for k in (2, 3):
        X, y = rows(k=k)
        fitted = model().fit(X, y)
        logits, probs = fitted.predict_logits(X), fitted.predict_proba(X)
        assert logits.shape == probs.shape == (400, k)
        assert probs.sum(axis=1) == pytest.approx(np.ones(400))
        assert np.log(probs) == pytest.approx(fitted.predict_log_proba(X))
        assert np.array_equal(fitted.predict(X), fitted.classes_[probs.argmax(axis=1)])
        scores = fitted.decision_function(X)
        expected = logits[:, 1] - logits[:, 0] if k == 2 else logits
        assert np.array_equal(scores, expected)


def test_a_calibrator_reads_the_logits():
    X, y = rows(800)
    fitted = model().fit(X[:400], y[:400])
    calibrated = CalibratedModel(fitted, TemperatureScaling()).fit(X[400:], y[400:])
    assert calibrated.answer_ == "decision_function"
    alone = TemperatureScaling().fit(fitted.predict_logits(X[400:]), y[400:])
    assert calibrated.calibrator_.temperature_ == pytest.approx(alone.temperature_)


def test_a_loss_module_is_copied_and_the_copy_keeps_what_it_learned():
    X, y = rows()
    loss = as_loss("adafocal")
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    fitted = model(loss=loss).fit(X, y)
    assert all(torch.equal(value, loss.state_dict()[name]) for name, value in before.items())
    assert fitted.loss_ is not loss
    assert any(
        not torch.equal(value, fitted.loss_.state_dict()[name]) for name, value in before.items()
    )


@pytest.mark.parametrize("loss", ["ce", "focal:gamma=2", "0.5*ce + 0.5*soft_f1", FocalLoss(1.0)])
def test_losses_by_name_and_by_module_train(loss):
    X, y = rows()
    assert model(loss=loss).fit(X, y).score(X, y) > 0.7


def test_a_function_is_a_loss():
    X, y = rows()
    plain = model().fit(X, y).predict_logits(X)
    own = model(loss=torch.nn.functional.cross_entropy).fit(X, y).predict_logits(X)
    assert own == pytest.approx(plain, abs=1e-3)


@pytest.mark.parametrize(
    "loss",
    [
        "focal:gamma=1,weight=balanced",
        "ce:weight=balanced + 0.1*soft_f1",
        torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 9.0])),
    ],
)
def test_weights_that_cannot_be_undone_are_warned_of(loss, recwarn):
    X, y = rows(300, share=0.2)
    with pytest.warns(UserWarning, match="unknown amount.*correct_prior"):
        model(loss=loss, epochs=1).fit(X, y)
    recwarn.clear()
    model(loss=loss, epochs=1, correct_prior=False).fit(X, y)
    for known in ("ce:weight=balanced", "focal", torch.nn.CrossEntropyLoss()):
        model(loss=known, epochs=1).fit(X, y)
    assert not [one for one in recwarn if "constant" in str(one.message)]


@pytest.mark.parametrize(
    "loss",
    [
        "balanced_softmax",
        "ce:weight=balanced",
        "focal:gamma=0,weight=balanced",
        "label_smoothing:smoothing=0,weight=balanced",
    ],
)
def test_probabilities_refer_to_the_prior_of_the_train_rows(loss):
    X, y = rows(3000, share=0.05)
    honest, raw = (model(loss=loss, correct_prior=c, epochs=15).fit(X, y) for c in (True, False))
    assert honest.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)
    shift = raw.predict_logits(X) - honest.predict_logits(X)
    assert np.ptp(shift, axis=0) == pytest.approx(np.zeros(2), abs=1e-9)
    counts = np.bincount(np.delete(y, raw.steer_places_))
    # Balanced softmax and balanced weights both move the odds by the ratio of the counts.
    assert shift[0, 1] - shift[0, 0] == pytest.approx(np.log(counts[0] / counts[1]), rel=1e-5)
    assert raw.predict_proba(X)[:, 1].mean() > 2 * y.mean()


def test_a_class_absent_from_steer_is_warned_of_once_by_its_name():
    X, y = rows(k=3)
    names = np.array(["few", "some", "many"])[y]
    there = np.flatnonzero(names != "many")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model(epochs=1).fit(X, names, steer=(X[there], names[there]))
    said = [str(one.message) for one in caught if "steer split" in str(one.message)]
    assert len(said) == 1
    assert_mentions(said[0], "no row", "row of 1", "3 classes (the first is 'many')")


@pytest.mark.parametrize(
    ("steer", "sentence"),
    [
        (([], []), ("steer X", "no rows")),
        ("rows", ("steer", "pair (X, y)")),
        ((np.zeros((2, 2)),), ("steer", "pair (X, y)")),
        (
            (np.zeros((2, 2)), [0, 7]),
            ("steer y row 1", "1 is 7", "class", "train rows", "not have"),
        ),
        ((np.zeros((2, 2)), [0]), ("got 1", "labels", "2 rows")),
        ((np.zeros((2, 3)), [0, 1]), ("X", "3 features", "TableEncoder", "expecting 2")),
    ],
)
def test_steer_rows_that_cannot_steer_are_refused(steer, sentence):
    X, y = rows()
    with refuses(InputError, *sentence):
        model().fit(X, y, steer=steer)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "focl"}, ("you mean 'focal'",)),
        ({"epochs": 0}, ("epochs", "whole number", "at least 1")),
        ({"choose_by": "luck"}, ("choose_by",)),
        ({"steer_share": 1.0}, ("steer_share", "above 0", "below 1", "got 1.0")),
        ({"device": "abacus"}, ("device must be",)),
        ({"hidden": (8, 8)}, ("dropout one share",)),
        ({"hidden": 8}, ("hidden", "list", "number", "such", "(128, 64)", "got 8")),
        ({"dropout": 0.5}, ("dropout", "list", "number", "got 0.5")),
        ({"hidden": (True,)}, ("hidden", "whole number", "at least 1", "got True")),
        ({"dropout": (True,)}, ("dropout", "at least 0", "below 1", "got True")),
        ({"milestones": None}, ("milestones", "epochs", "whole numbers")),
        ({"hooks": 3}, ("hooks", "list", "objects", "class Hook", "got 3")),
        ({"hooks": [Hook]}, ("hooks", "list", "objects", "class Hook")),
    ],
)
def test_options_are_checked_by_fit_not_before(options, sentence):
    made = model(**options)
    with refuses(InputError, *sentence):
        made.fit(*rows())


def test_a_single_hook_needs_no_list():
    class Count(Hook):
        epochs = 0

        def on_epoch_end(self, run, record):
            self.epochs += 1

    count = Count()
    model(hooks=count, epochs=2).fit(*rows())
    assert count.epochs == 2


def test_scoring_on_a_gpu_leaves_the_model_where_other_threads_use_it(monkeypatch):
    X, y = rows()
    fitted = model().fit(X, y)
    expected = fitted.predict_logits(X)
    moved = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, to: moved.append((self, to)) or self)
    assert np.array_equal(fitted.set_params(device="cuda:1").predict_logits(X), expected)
    [(copied, to)] = moved
    assert to == "cuda:1"
    assert copied is not fitted.model_
    assert fitted.model_.layers[0].weight is not copied.layers[0].weight


def test_nothing_works_before_fit():
    with refuses(NotFitted, "TabularClassifier", "not fitted yet"):
        model().predict([[1.0, 2.0]])
    with pytest.raises(NotFittedError):
        model().predict_proba([[1.0, 2.0]])


def test_a_failed_fit_keeps_what_was_learned_before():
    X, y = rows()
    fitted = model().fit(X, y)
    before = fitted.predict_proba(X)
    with pytest.raises(InputError):
        fitted.fit(X, y[:-1])
    assert np.array_equal(fitted.predict_proba(X), before)


def test_clone_pickle_and_parameters_go_round():
    X, y = rows()
    fitted = model(loss="adafocal").fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "model_")
    assert fresh.set_params(epochs=3).epochs == 3
    assert np.array_equal(clone(fitted).fit(X, y).predict_proba(X), fitted.predict_proba(X))


def test_records_tell_the_epochs_and_the_best_is_kept():
    X, y = rows()
    fitted = model(patience=3, epochs=200, choose_by="nll").fit(X, y)
    values = [record.nll for record in fitted.records_]
    assert fitted.why_ == "patience"
    assert fitted.best_epoch_ == len(values) - 4
    assert min(values) >= values[fitted.best_epoch_] - fitted.min_delta


def test_a_folder_is_gone_on_with(tmp_path):
    X, y = rows()
    whole = model(folder=tmp_path / "whole", patience=None).fit(X, y)

    class Crash(Hook):
        def on_epoch_end(self, run, record):
            if run.epoch == 4:
                raise OSError("power")

    with pytest.raises(OSError, match="power"):
        model(folder=tmp_path / "part", patience=None, hooks=(Crash(),)).fit(X, y)
    resumed = model(folder=tmp_path / "part", patience=None).fit(X, y)
    assert len(resumed.records_) == 8
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true", "64-true"])
def test_rows_are_scored_in_32_bits_whatever_the_network_was_trained_in(precision):
    X, y = rows()
    fitted = model(precision=precision).fit(X, y)
    assert {p.dtype for p in fitted.model_.parameters()} == {torch.float32}
    assert fitted.score(X, y) > 0.7


@pytest.mark.parametrize("name", ["TabularClassifier", "TextClassifier", "losses", "training"])
def test_without_torch_the_extra_is_named(name):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        f"try: from calibrant import {name}\n"
        "except ImportError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"calibrant.{name} needs the optional extra 'torch'" in ran.stdout
