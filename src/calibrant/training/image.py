"""A network for images as a scikit-learn classifier."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from calibrant.data.encoders.image_encoder import ImageEncoder, as_images
from calibrant.data.resampling import Resampling
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.losses.names import LossLike
from calibrant.models import build, models
from calibrant.training.estimator import Auto, Estimator
from calibrant.training.hooks import Hook
from calibrant.training.image_rows import ImageRows
from calibrant.training.options import Average, ChooseBy, Optimizer, Precision, Schedule

if TYPE_CHECKING:
    from sklearn.utils import Tags


Network = str | Callable[..., nn.Module]

_RUN: Mapping[str, Any] = {
    "epochs": 30, "batch_size": 128, "optimizer": "sgd", "schedule": "linear", "warmup": 0.2,
    "patience": None,
}  # fmt: skip
_STEPS: Mapping[str, Mapping[str, Any]] = {
    "sgd": {"learning_rate": 0.1, "weight_decay": 1e-3},
    "adam": {"learning_rate": 1e-3, "weight_decay": 0.0},
    "adamw": {"learning_rate": 1e-3, "weight_decay": 0.01},
}
"""Default learning rate and weight decay of each optimiser."""

_SMALL_RUN = {**_RUN, "epochs": 20, "batch_size": 64, "optimizer": "adamw"}
_SMALL_STEPS = {**_STEPS, "adamw": {"learning_rate": 5e-3, "weight_decay": 0.01}}
"""Defaults of "small_cnn"."""


class ImageClassifier(Estimator):
    """A network for images, with its `ImageEncoder`.

    `fit` takes images of one size as bytes, (n, height, width, channels), and splits off steer
    images first; means and standard deviations of the channels are those of the train images.
    Train images are randomly shifted by a few pixels and mirrored in every epoch; steer images and
    scored images are not. `calibrant.data.read_images` reads files.

    An option that is "auto" has the usual value for the network:

    | option | "small_cnn" | other networks |
    |---|---|---|
    | epochs | 20 | 30 |
    | batch_size | 64 | 128 |
    | optimizer | "adamw" | "sgd", with Nesterov momentum |
    | learning_rate | 0.005 | 0.1; 0.001 with "adam" or "adamw" |
    | weight_decay | 0.01 | 0.001; 0 with "adam", 0.01 with "adamw" |
    | schedule, warmup | "linear", 0.2 | "linear", 0.2 |
    | patience | None | None |

    Its probabilities are not calibrated: the steer rows are used up, so pass the fitted
    classifier and other rows to `CalibratedModel`.

    Parameters
    ----------
    model : "resnet50", "resnet110", "wrn_26_10", "densenet121", "small_cnn" (learns in minutes on a
        CPU), any other registered model that reads images, or a function of (n_channels, n_classes)
        that returns one: it is called with (b, C, H, W) numbers
    model_options : arguments of the named network, such as {"width": 16}
    crop : maximum shift of a train image in pixels, filled with black; 0 for none
    flip : whether to mirror half of the train images horizontally; not for signs and letters
    loss : a name like "adafocal", "focal:gamma=3" or "0.5*ce + 0.5*soft_f1", a function of
        (logits, labels) or a Module, which is copied
    epochs, batch_size, accumulate, optimizer, learning_rate, weight_decay, momentum, nesterov,
    schedule, milestones, warmup, clip, precision, compile, average : see `TrainingOptions`, and
        the table for "auto"
    milestone_drop : `drop` of `TrainingOptions`
    patience : epochs without improvement after which to stop; "auto" or None to run them all
    min_delta : minimum improvement of the metric of `choose_by` to count
    choose_by : metric of the steer split that chooses the epoch: "refinement" (log loss after
        temperature scaling), "nll" or "f1"; "last" uses the last epoch
    steer_share : share of the rows of every class that is split off as steer rows, if
        `fit` is given none
    resample : how to make the classes of the train rows equally frequent: "over" repeats rows of
        the smaller ones, "under" drops rows of the larger ones; None for no resampling. The encoder
        is fitted before, and steer rows are not resampled. See `resampled`
    correct_prior : whether to remove the shift of the logits caused by the loss (class weights,
        balanced softmax) and `resample`, so that probabilities match the class frequencies of the
        train rows
    seed : seed of the split, the initial weights, the row order, crops, flips and dropout
    device : "auto", "cpu", "cuda", "cuda:1"
    devices : processes, one for each GPU; more than one needs `torchrun` or a script that can be
        started again
    folder : folder for checkpoints, to resume after a crash; None for no checkpoints
    hooks : see `Hook`
    progress : whether to show a progress bar on stderr

    Attributes
    ----------
    classes_ : the classes in the order of the columns of `predict_proba`
    encoder_ : the fitted `ImageEncoder`
    model_ : the network with the weights of the best epoch or their average, on the CPU
    options_ : the `TrainingOptions` that were used
    loss_ : the trained loss, with state such as AdaFocal's gammas
    records_ : one `EpochRecord` for each epoch
    best_epoch_, why_ : the best epoch, and the reason for the end of the run
    average_ : the `AverageRecord` of the averaged weights; None if none were averaged
    steer_places_ : positions of the rows that were split off for steering
    log_shift_ : (K,) shift that `predict_logits` subtracts from the logits of `model_`, or None

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from calibrant import ImageClassifier
    >>> draw = np.random.default_rng(0)
    >>> images = draw.integers(0, 100, size=(80, 8, 8, 1), dtype=np.uint8)
    >>> images[::2, :4] += 100  # every other one is bright at the top
    >>> where = ["top", "nowhere"] * 40
    >>> def tiny(n_channels, n_classes):
    ...     return nn.Sequential(nn.Flatten(), nn.Linear(n_channels * 64, n_classes))
    >>> model = ImageClassifier(model=tiny, crop=1, learning_rate=0.01, batch_size=16, device="cpu")
    >>> model.fit(images, where).predict(images[:2]).tolist()
    ['top', 'nowhere']
    """

    _scoring_batch_size = 256

    def __init__(  # noqa: PLR0913  # scikit-learn finds and sets parameters one by one
        self,
        *,
        model: Network = "resnet50",
        model_options: Mapping[str, Any] | None = None,
        crop: int = 4,
        flip: bool = True,
        loss: LossLike = "ce",
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        accumulate: int = 1,
        optimizer: Optimizer | Auto = "auto",
        learning_rate: float | Auto = "auto",
        weight_decay: float | Auto = "auto",
        momentum: float = 0.9,
        nesterov: bool | Auto = "auto",
        schedule: Schedule | Auto = "auto",
        milestones: Sequence[int] = (),
        milestone_drop: float = 0.1,
        warmup: float | Auto = "auto",
        clip: float | Auto | None = None,
        precision: Precision = "32-true",
        compile: bool = False,
        patience: int | Auto | None = "auto",
        min_delta: float = 1e-4,
        choose_by: ChooseBy = "refinement",
        average: Average = None,
        steer_share: float = 0.1,
        resample: Resampling | None = None,
        correct_prior: bool = True,
        seed: int = 0,
        device: str = "auto",
        devices: int = 1,
        folder: str | Path | None = None,
        hooks: Sequence[Hook] = (),
        progress: bool = False,
    ) -> None:
        super().__init__(
            loss=loss,
            epochs=epochs,
            batch_size=batch_size,
            accumulate=accumulate,
            optimizer=optimizer,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            schedule=schedule,
            milestones=milestones,
            milestone_drop=milestone_drop,
            warmup=warmup,
            clip=clip,
            precision=precision,
            compile=compile,
            patience=patience,
            min_delta=min_delta,
            choose_by=choose_by,
            average=average,
            steer_share=steer_share,
            resample=resample,
            correct_prior=correct_prior,
            seed=seed,
            device=device,
            devices=devices,
            folder=folder,
            hooks=hooks,
            progress=progress,
        )
        self.model = model
        self.model_options = model_options
        self.crop = crop
        self.flip = flip

    def _default_options(self) -> Mapping[str, Any]:
        small = isinstance(self.model, str) and self.model == "small_cnn"
        run, steps = (_SMALL_RUN, _SMALL_STEPS) if small else (_RUN, _STEPS)
        optimizer = run["optimizer"] if self.optimizer == "auto" else self.optimizer
        nesterov = optimizer == "sgd" and self.momentum != 0
        of_optimizer = steps.get(optimizer, steps["sgd"])
        return {**run, **of_optimizer, "optimizer": optimizer, "nesterov": nesterov}

    def _new_encoder(self) -> ImageEncoder:
        return ImageEncoder()

    def _read_input(self, X: Any, name: str, encoder: ImageEncoder) -> NDArray[np.uint8]:  # noqa: N803
        if hasattr(encoder, "size_"):
            return encoder.check_images(X, name=name)
        return as_images(X, name=name)

    def _encode_rows(
        self, encoder: ImageEncoder, rows: NDArray[np.uint8], labels: IntArray | None
    ) -> ImageRows:
        images = encoder.check_images(rows, name="steer X")  # train images have the size already
        return ImageRows(
            images,
            labels,
            mean=encoder.mean_,
            std=encoder.std_,
            crop=self.crop,
            flip=self.flip,
        )

    def _check_resample(self) -> None:
        if self.resample == "smote":
            raise InputError(
                "resample='smote' interpolates features, which images do not have: choose "
                "'over' or 'under'."
            )
        super()._check_resample()

    def _build_network(self, encoder: ImageEncoder, n_classes: int) -> nn.Module:
        options = self.model_options or {}
        if not isinstance(options, Mapping):
            raise InputError(
                "model_options must be a dict of the network's options, such as "
                f"{{'width': 16}}, got {options!r}."
            )
        if callable(self.model):
            return self.model(encoder.channels_, n_classes, **options)
        _check_reads_images(self.model)
        required = {"model": self.model, "n_channels": encoder.channels_, "n_classes": n_classes}
        return build({**options, **required}, model="model", options="model_options")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _check_reads_images(model: Any) -> None:
    """Raise `InputError` for a registered network that does not read images."""
    known = models()
    reads = [name for name in known if "n_channels" in inspect.signature(known[name]).parameters]
    if model in known and model not in reads:
        raise InputError(
            f"model must read images, got {model!r}: choose one of {', '.join(map(repr, reads))}."
        )
