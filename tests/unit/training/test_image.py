"""ImageClassifier: images in, probabilities out, normalised by the train images alone."""

import pickle

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.base import clone, is_classifier
from tests.sentences import refuses
from tests.unit.training.runs import same_weights
from torch import nn

from calibrant import ImageClassifier
from calibrant.errors import InputError
from calibrant.losses import AdaFocalLoss
from calibrant.training import Hook


def tiny(n_channels, n_classes, width=8):
    return nn.Sequential(
        nn.Conv2d(n_channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(16 * width, n_classes),
    )  # fmt: skip


SMALL = {
    "model": tiny, "epochs": 8, "batch_size": 16, "learning_rate": 0.05, "crop": 1,
    "device": "cpu",
}  # fmt: skip


def drawn(n=64, size=16, channels=3, seed=0):
    """Noise; images of "right" are brighter in their right half."""
    draw = np.random.default_rng(seed)
    images = draw.integers(0, 156, size=(n, size, size, channels), dtype=np.uint8)
    images[1::2, :, size // 2 :] += 100
    return images, ["left", "right"] * (n // 2)


def test_images_are_told_apart():
    images, sides = drawn()
    fitted = ImageClassifier(**SMALL, flip=False).fit(images, sides)
    other, truth = drawn(seed=1)
    assert fitted.score(other, truth) > 0.95
    assert fitted.classes_.tolist() == ["left", "right"]
    assert fitted.predict_proba(other).shape == (64, 2)
    assert fitted.predict_proba(other) == pytest.approx(softmax(fitted.predict_logits(other), 1))
    assert fitted.predict_proba(other).sum(axis=1) == pytest.approx(np.ones(64))
    assert is_classifier(fitted)


def test_sixty_four_images_of_noise_are_learned_by_heart():
    images = np.random.default_rng(0).integers(0, 256, size=(64, 16, 16, 3), dtype=np.uint8)
    labels = np.random.default_rng(1).integers(0, 4, size=64)
    model = ImageClassifier(
        model=tiny, model_options={"width": 32}, epochs=60, batch_size=16, learning_rate=0.05,
        crop=0, flip=False, weight_decay=0.0, device="cpu",
    )  # fmt: skip
    fitted = model.fit(images, labels, steer=(images, labels))
    assert fitted.score(images, labels) == 1.0
    assert len(fitted.steer_places_) == 0


def test_what_is_usual_for_images_stands_behind_auto():
    options = ImageClassifier()._options()
    assert (options.epochs, options.batch_size, options.patience) == (30, 128, None)
    assert (options.optimizer, options.learning_rate, options.momentum) == ("sgd", 0.1, 0.9)
    assert (options.nesterov, options.weight_decay) == (True, 1e-3)
    assert (options.schedule, options.warmup) == ("linear", 0.2)
    adam = ImageClassifier(optimizer="adam", epochs=3)._options()
    assert (adam.learning_rate, adam.nesterov, adam.weight_decay, adam.epochs) == (
        1e-3,
        False,
        0,
        3,
    )
    assert not ImageClassifier(momentum=0.0)._options().nesterov
    with refuses(InputError, "optimizer"):
        ImageClassifier(optimizer="lion")._options()


def test_the_small_network_has_its_own_usual_values():
    options = ImageClassifier(model="small_cnn")._options()
    assert (options.epochs, options.batch_size, options.patience) == (20, 64, None)
    assert (options.optimizer, options.learning_rate, options.weight_decay) == ("adamw", 5e-3, 0.01)
    assert (options.schedule, options.warmup, options.nesterov) == ("linear", 0.2, False)
    sgd = ImageClassifier(model="small_cnn", optimizer="sgd", epochs=3)._options()
    assert (sgd.learning_rate, sgd.weight_decay, sgd.nesterov, sgd.epochs) == (0.1, 1e-3, True, 3)


def test_the_small_network_learns_from_few_images():
    images, sides = drawn(n=200)
    model = ImageClassifier(model="small_cnn", epochs=8, flip=False, device="cpu")
    fitted = model.fit(images, sides)
    assert fitted.score(*drawn(n=100, seed=1)) > 0.95
    large = ImageClassifier(model="small_cnn", epochs=2, flip=False, device="cpu")
    assert large.fit(*drawn(n=64, size=100)).model_.config["side"] == 40


def test_the_options_that_were_used_are_kept():
    fitted = ImageClassifier(**SMALL).fit(*drawn())
    assert (fitted.options_.epochs, fitted.options_.optimizer) == (8, "sgd")
    assert len(fitted.records_) == 8


def test_the_encoder_learns_from_the_train_images_alone():
    images, sides = drawn()
    fitted = ImageClassifier(**{**SMALL, "epochs": 1}).fit(images, sides)
    train = np.delete(images, fitted.steer_places_, axis=0)
    assert 0 < len(fitted.steer_places_) < 64
    assert fitted.encoder_.mean_ == pytest.approx((train / 255).mean((0, 1, 2)), abs=1e-12)
    given = ImageClassifier(**{**SMALL, "epochs": 1}).fit(images, sides, steer=drawn(20, seed=1))
    assert given.encoder_.mean_ == pytest.approx((images / 255).mean((0, 1, 2)), abs=1e-12)


def test_the_same_seed_gives_the_same_weights_and_another_gives_others():
    images, sides = drawn()
    one, same, other = (
        ImageClassifier(**{**SMALL, "epochs": 2}, seed=seed).fit(images, sides)
        for seed in (3, 3, 4)
    )
    assert same_weights(one.model_, same.model_)
    assert not same_weights(one.model_, other.model_)


def test_moved_and_mirrored_images_are_others_to_learn_from():
    images, sides = drawn()
    plain, moved, mirrored = (
        ImageClassifier(**{**SMALL, "epochs": 1, "crop": crop}, flip=flip).fit(images, sides)
        for crop, flip in ((0, False), (2, False), (0, True))
    )
    assert not same_weights(plain.model_, moved.model_)
    assert not same_weights(plain.model_, mirrored.model_)


class Crash(Hook):
    def on_epoch_start(self, run):
        if run.epoch == 2:
            raise KeyboardInterrupt


def test_a_run_that_was_stopped_is_gone_on_with_to_the_same_bits(tmp_path):
    images, sides = drawn()
    small = {**SMALL, "epochs": 4}
    whole = ImageClassifier(**small).fit(images, sides)
    with pytest.raises(KeyboardInterrupt):
        ImageClassifier(**small, folder=tmp_path, hooks=(Crash(),)).fit(images, sides)
    resumed = ImageClassifier(**small, folder=tmp_path).fit(images, sides)
    assert same_weights(whole.model_, resumed.model_)
    assert [r.loss for r in whole.records_] == [r.loss for r in resumed.records_]


def test_a_run_is_not_gone_on_with_other_crops_or_other_images(tmp_path):
    images, sides = drawn()
    small = {**SMALL, "epochs": 1}
    ImageClassifier(**small, folder=tmp_path).fit(images, sides)
    with refuses(InputError, "train rows '58", "crop 1 flip'", "not '58", "crop 1'"):
        ImageClassifier(**small, folder=tmp_path, flip=False).fit(images, sides)
    with refuses(InputError, "run", "train rows"):
        ImageClassifier(**small, folder=tmp_path).fit(images[:, ::-1], sides)


@pytest.mark.parametrize("way", ["over", "under"])
def test_classes_can_be_made_equally_frequent(way):
    images, sides = drawn(120)
    rare = np.flatnonzero((np.arange(120) % 2 == 0) | (np.arange(120) < 40))
    images, sides = images[rare], np.array(sides)[rare]
    fitted = ImageClassifier(**SMALL, resample=way, flip=False).fit(images, sides)
    assert fitted.score(images, sides) > 0.9
    assert fitted.log_shift_[1] - fitted.log_shift_[0] == pytest.approx(np.log(54 / 18))


def test_rows_between_images_are_refused():
    with refuses(InputError, "resample='smote' interpolates", "images", "'over'", "'under'"):
        ImageClassifier(**SMALL, resample="smote").fit(*drawn())
    with refuses(InputError, "resample", "None", "'over'", "'under'"):
        ImageClassifier(**SMALL, resample="both").fit(*drawn())


def test_a_steered_loss_and_parts_of_batches_work():
    fitted = ImageClassifier(
        **{**SMALL, "epochs": 3}, loss=AdaFocalLoss(n_bins=3), accumulate=2
    ).fit(*drawn())
    assert all(record.gammas is not None for record in fitted.records_)


def test_grey_images_lists_and_tensors_give_the_same():
    images, sides = drawn(channels=1)
    small = {**SMALL, "epochs": 2}
    expected = ImageClassifier(**small).fit(images, sides).predict_logits(images)
    for given in (images[..., 0], list(images[..., 0]), torch.from_numpy(images)):
        found = ImageClassifier(**small).fit(given, sides).predict_logits(given)
        assert np.array_equal(found, expected)


def test_a_registered_network_learns():
    images, sides = drawn(32)
    model = ImageClassifier(
        model_options={"width": 4}, epochs=1, batch_size=8, crop=1, device="cpu"
    )
    fitted = model.fit(images, sides)
    assert type(fitted.model_).__name__ == "ResNet50"
    assert fitted.model_.config["n_channels"] == 3
    assert np.isfinite(fitted.predict_logits(images)).all()


def test_it_can_be_cloned_pickled_and_asked_for_its_parameters():
    model = ImageClassifier(**SMALL, flip=False)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.get_params()["crop"] == 1
    assert clone(model).set_params(crop=3).crop == 3
    images, sides = drawn()
    fitted = ImageClassifier(**{**SMALL, "epochs": 1}).fit(images, sides)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(loaded.predict_proba(images), fitted.predict_proba(images))
    tags = model.__sklearn_tags__().input_tags
    assert tags.three_d_array
    assert not tags.two_d_array


def test_images_of_another_size_are_refused():
    images, sides = drawn()
    fitted = ImageClassifier(**{**SMALL, "epochs": 1}).fit(images, sides)
    with refuses(InputError, "X", "16 x 16", "colour images", "fit", "got 8", "x 8 col"):
        fitted.predict(images[:, :8, :8])
    with refuses(InputError, "16 x 16 colour", "colour images", "fit", "got 16", "x 16 grey"):
        fitted.predict(images[..., :1])
    with refuses(InputError, "steer X", "16 x 16", "colour", "got 8"):
        ImageClassifier(**SMALL).fit(images, sides, steer=(images[:, ::2], sides))


@pytest.mark.parametrize("name", ["mlp", "bilstm", "text_cnn"])
def test_networks_that_read_something_else_are_refused(name):
    with refuses(InputError, "model", "read images", f"got '{name}'", "choose", "'resnet50'"):
        ImageClassifier(**{**SMALL, "model": name}).fit(*drawn())


def test_bad_options_are_named():
    images, sides = drawn()
    for changes, message in (
        (
            {"model": "resnet5"},
            ("model", "name", "network", "got 'resnet5'", "you mean 'resnet50'"),
        ),
        ({"model": "resnet50", "model_options": {"widthh": 4}}, ("not an option", "network")),
        ({"model_options": ["width"]}, ("model_options", "dict", "got ['width']")),
        ({"crop": 16}, ("crop", "whole number", "pixels", "0 to 15")),
        ({"crop": 0.5}, ("crop", "whole number")),
        ({"flip": "yes"}, ("flip", "True", "False", "got 'yes'")),
        ({"epochs": 0}, ("epochs", "whole number", "at least 1")),
    ):
        with refuses(InputError, *message):
            ImageClassifier(**{**SMALL, **changes}).fit(images, sides)


def test_images_too_small_for_a_network_are_named():
    images, sides = drawn(size=4)
    model = ImageClassifier(model_options={"width": 4}, crop=1, device="cpu")
    with refuses(InputError, "at least 8 x", "8 pixels", "network", "got 4", "x 4"):
        model.fit(images, sides)


def test_what_is_no_images_is_refused():
    images, sides = drawn()
    with refuses(InputError, "X", "whole numbers 0..255"):
        ImageClassifier(**SMALL).fit(images / 255, sides)
    with pytest.raises(InputError, match=r"got \(64, 256\)"):
        ImageClassifier(**SMALL).fit(images.reshape(64, -1)[:, :256], sides)
    with pytest.raises(InputError, match="63 labels for 64 rows"):
        ImageClassifier(**SMALL).fit(images, sides[:-1])
