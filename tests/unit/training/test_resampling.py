"""Classifiers that learn from resampled rows: probabilities are those of the data all the same."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from tests.sentences import refuses
from tests.unit.training.runs import blobs, net, options, same_weights

from calibrant.data import resample_rows
from calibrant.errors import InputError, NotFitted
from calibrant.fitting.steer_figures import steer_figures
from calibrant.training import ArrayRows, Hook, TextClassifier, train
from calibrant.training.checkpoints import read_state, write_state
from calibrant.training.tabular import TabularClassifier

RATE = 0.05
SHIFT = torch.tensor([-0.4, 0.1, 1.2], dtype=torch.float64)


def world(n, seed, rate=RATE):
    """Two normal clouds, 2 apart; P(1 | x) is known."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    X = rng.normal(size=(n, 2))
    X[:, 0] += 2 * y
    return X, y, 1 / (1 + np.exp(2 - 2 * X[:, 0] - np.log(rate / (1 - rate))))


def model(**changes):
    given = {"hidden": (16,), "dropout": (0.0,), "learning_rate": 0.01, "device": "cpu"}
    return TabularClassifier(**{**given, "epochs": 15, **changes})


def expected_nll(truth, p):
    return -np.mean(truth * np.log(p) + (1 - truth) * np.log1p(-p))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("how", ["over", "under", "smote"])
def test_corrected_probabilities_are_those_of_the_world(how, seed):
    X, y, _ = world(3000, seed)
    new, _, truth = world(20_000, 99)
    plain = model(seed=seed).fit(X, y).predict_proba(new)[:, 1]
    fitted = model(seed=seed, resample=how).fit(X, y)
    honest = fitted.predict_proba(new)[:, 1]
    assert honest.mean() == pytest.approx(truth.mean(), abs=0.02)
    assert expected_nll(truth, honest) < expected_nll(truth, plain) + 0.01
    raw = fitted.set_params(correct_prior=False).predict_proba(new)[:, 1]
    assert raw.mean() > 3 * truth.mean()
    assert expected_nll(truth, raw) > 2 * expected_nll(truth, plain)


@pytest.mark.parametrize("how", ["over", "under"])
def test_texts_get_the_probabilities_of_the_data(how):
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.1).astype(int)
    word = np.where(rng.random(2000) < np.where(y == 1, 0.8, 0.2), "broken", "fine")
    fitted = TextClassifier(
        model_options={"embedding": 8, "hidden": 4}, resample=how, learning_rate=0.01, epochs=8
    ).fit(word.tolist(), y)
    honest = fitted.predict_proba(["broken", "fine"])[:, 1]
    assert honest == pytest.approx([y[word == "broken"].mean(), y[word == "fine"].mean()], abs=0.08)
    raw = fitted.set_params(correct_prior=False).predict_proba(["broken"])[0, 1]
    assert raw > honest[0] + 0.3


@pytest.mark.parametrize("how", ["over", "under", "smote"])
def test_encoder_and_steer_rows_are_those_of_the_rows_as_they_are(how):
    X, y, _ = world(600, 0)
    plain, fitted = (model(epochs=1, resample=one).fit(X, y) for one in (None, how))
    assert np.array_equal(fitted.steer_places_, plain.steer_places_)
    assert fitted.encoder_.to_dict() == plain.encoder_.to_dict()


def test_a_repeated_text_counts_once_in_the_vocabulary():
    texts, y = ["all is fine"] * 60 + ["screen broken", "cable broken", "plug broken"], [0] * 60
    fitted = TextClassifier(
        model_options={"embedding": 4, "hidden": 2}, resample="over", epochs=1
    ).fit(texts, [*y, 1, 1, 1], steer=(texts, [*y, 1, 1, 1]))
    assert set(fitted.encoder_.words[2:]) == {"all", "is", "fine", "broken"}


@pytest.mark.parametrize("how", ["over", "under"])
def test_equal_classes_learn_the_same_bits_as_without(how):
    X, y, _ = world(400, 0)
    y = np.arange(400) % 2
    plain, fitted = (model(epochs=2, resample=one).fit(X, y) for one in (None, how))
    assert np.array_equal(fitted.predict_logits(X), plain.predict_logits(X))


@pytest.mark.parametrize("loss", ["ce", "ce:weight=balanced", "balanced_softmax"])
def test_the_loss_counts_resampled_rows_and_both_shifts_add_up(loss):
    X, y, _ = world(800, 0, rate=0.2)
    fitted = model(epochs=1, resample="over", loss=loss).fit(X, y)
    train_y = np.delete(y, fitted.steer_places_)
    of_rows = resample_rows(train_y, "over").log_shift
    # Resampled classes are equally frequent, so the loss has nothing left to even out.
    difference = fitted.log_shift_ - of_rows
    assert difference[0] == pytest.approx(difference[1], abs=1e-6)
    counts = np.bincount(train_y)
    moved = fitted.log_shift_[1] - fitted.log_shift_[0]
    assert moved == pytest.approx(np.log(counts[0] / counts[1]), abs=1e-6)


def test_the_shift_is_what_is_subtracted_from_the_logits_of_the_model():
    X, y, _ = world(600, 0)
    fitted = model(epochs=2, resample="smote", loss="ce:weight=[1, 3]").fit(X, y)
    assert fitted.log_shift_.shape == (2,)
    features = torch.from_numpy(fitted.encoder_.transform(X))
    with torch.no_grad():
        raw = fitted.model_(features).double().numpy()
    assert fitted.predict_logits(X) == pytest.approx(raw - fitted.log_shift_, abs=1e-5)
    assert fitted.set_params(correct_prior=False).log_shift_ is None
    assert fitted.predict_logits(X) == pytest.approx(raw, abs=1e-5)
    assert model(epochs=1).fit(X, y).log_shift_ is None
    with pytest.raises(NotFitted):
        _ = model().log_shift_
    assert not hasattr(model(), "log_shift_")
    assert clone(fitted).resample == "smote"


@pytest.mark.parametrize("loss", ["ce", "balanced_softmax"])
def test_epochs_are_judged_by_probabilities_for_the_data(loss):
    rows, steer = blobs(200), blobs(100, seed=1)
    seen = []

    class Watch(Hook):
        def on_steer(self, run, logits, labels):
            seen.append(logits)

    trained = train(
        net(), rows, steer, loss=loss, log_shift=SHIFT, hooks=[Watch()], options=options(epochs=1)
    )
    with torch.no_grad():
        raw = trained.model(steer.features) - SHIFT.float()
    assert torch.allclose(seen[0], raw, atol=1e-5)  # hooks and steered losses see the same
    if loss != "ce":
        raw = raw - trained.loss.log_shift()
    truth = steer_figures(raw.numpy(), steer.labels.numpy())
    assert trained.records[0].nll == pytest.approx(truth.nll, abs=1e-5)
    assert trained.records[0].refinement == pytest.approx(truth.refinement, abs=1e-5)


def test_a_model_that_knows_the_frequencies_only_is_judged_right():
    draw = np.random.default_rng(0)
    y = np.repeat([0, 1], [950, 50])
    found = resample_rows(y, "over")
    features = draw.normal(size=(1000, 2))
    rows, steer = ArrayRows(features[found.places], y[found.places]), ArrayRows(features, y)
    start = torch.nn.Linear(2, 2)
    torch.nn.init.zeros_(start.weight)
    torch.nn.init.zeros_(start.bias)
    slow = options(epochs=1, learning_rate=1e-9)
    record = train(start, rows, steer, log_shift=found.log_shift, options=slow).records[0]
    assert record.nll == pytest.approx(-0.95 * np.log(0.95) - 0.05 * np.log(0.05), abs=1e-4)
    assert train(start, rows, steer, options=slow).records[0].nll == pytest.approx(np.log(2))


@pytest.mark.parametrize("how", ["over", "under", "smote"])
def test_a_resampled_run_is_gone_on_with_to_the_bit(tmp_path, how):
    X, y, _ = world(600, 0)
    given = {"resample": how, "patience": None, "epochs": 6, "dropout": (0.2,)}
    whole = model(**given).fit(X, y)

    class Crash(Hook):
        def on_epoch_end(self, run, record):
            if run.epoch == 3:
                raise OSError("power")

    with pytest.raises(OSError, match="power"):
        model(**given, folder=tmp_path, hooks=[Crash()]).fit(X, y)
    resumed = model(**given, folder=tmp_path).fit(X, y)
    assert same_weights(resumed.model_, whole.model_)
    assert np.array_equal(resumed.predict_logits(X), whole.predict_logits(X))
    assert [r.nll for r in resumed.records_] == [r.nll for r in whole.records_]


def test_a_folder_with_another_shift_is_another_run(tmp_path):
    def run(folder, shift=None):
        rows = blobs(64), blobs(30, seed=1)
        return train(net(), *rows, folder=folder, log_shift=shift, options=options(epochs=1))

    run(tmp_path / "with", SHIFT)
    run(tmp_path / "with", SHIFT)
    for other in (None, SHIFT + 0.1):
        with refuses(InputError, "run", "log_shift"):
            run(tmp_path / "with", other)
    run(tmp_path / "without")
    with refuses(InputError, "run", "log_shift None", "not [-0.4"):
        run(tmp_path / "without", SHIFT)


def test_a_run_from_before_there_were_shifts_is_gone_on_with(tmp_path):
    given = blobs(64), blobs(30, seed=1)
    first = train(net(), *given, folder=tmp_path, options=options(epochs=1))
    path = tmp_path / "epoch-0000.safetensors"
    state = read_state(path, "")
    del state["fingerprint"]["log_shift"]
    write_state(path, state)
    again = train(net(), *given, folder=tmp_path, options=options(epochs=1))
    assert same_weights(again.model, first.model)


@pytest.mark.parametrize(
    "shift", [torch.zeros(2), torch.zeros(1, 3), torch.tensor([0.0, 1.0, torch.nan]), "over", 0.5]
)
def test_a_shift_that_fits_no_class_is_refused(shift):
    with refuses(InputError, "log_shift", "finite number", "number for each of the 3"):
        train(net(), blobs(64), blobs(30, seed=1), log_shift=shift, options=options(epochs=1))


@pytest.mark.parametrize("given", ["both", True, 3, ["over"]])
def test_an_unknown_way_to_resample_is_refused(given):
    X, y, _ = world(100, 0, rate=0.5)
    with refuses(InputError, "resample", "None", "'over'", "'under'", "'smote'"):
        model(resample=given).fit(X, y)
    with refuses(InputError, "resample", "None", "'over'", "'under'", "got"):
        TextClassifier(resample=given).fit(["a", "b"] * 5, [0, 1] * 5)


def test_texts_cannot_be_mixed():
    with refuses(InputError, "texts", "not have: choose 'over'", "'under'"):
        TextClassifier(resample="smote").fit(["a", "b"] * 5, [0, 1] * 5)


def test_smote_names_the_class_with_too_few_rows():
    X, y, _ = world(100, 0, rate=0.5)
    names = np.array(["no", "yes"], dtype=object)[y]
    names[7] = "rare"
    with refuses(InputError, "class 'rare'", "1 train row"):
        model(resample="smote").fit(X, names)
