"""A network for texts as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from calibrant.data.resampling import Resampling
from calibrant.data.text_encoder import TextEncoder, as_texts
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.losses.names import LossLike
from calibrant.models import build
from calibrant.training.estimator import Estimator
from calibrant.training.hooks import Hook
from calibrant.training.options import ChooseBy, Optimizer, Precision, Schedule
from calibrant.training.text_rows import TextRows

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["TextClassifier"]

Network = str | Callable[[int, int], nn.Module]


class TextClassifier(Estimator):
    """A network for texts, with its `TextEncoder`.

    `fit` takes a list or a column of texts and splits steer rows off before anything is learned;
    the vocabulary is that of the train texts alone.

    Its probabilities are not calibrated: the steer rows have been used, so hand a fitted classifier
    and other rows to `CalibratedModel`.

    Parameters
    ----------
    model : "bilstm" or "text_cnn", any other registered model that reads texts, or a function of
        (n_tokens, n_classes) that makes one: it is called with (b, L) token ids and (b,) lengths
    model_options : arguments of the named network, such as {"embedding": 64, "hidden": 64}
    vocabulary, min_count, max_length : see `TextEncoder`
    loss : a name like "adafocal", "focal:gamma=3" or "0.5*ce + 0.5*soft_f1", a function of
        (logits, labels) or a Module, which is copied
    epochs, batch_size, optimizer, learning_rate, weight_decay, momentum, schedule, milestones,
    warmup, clip, precision : see `TrainingOptions`
    milestone_drop : `drop` of `TrainingOptions`
    patience : epochs without improvement after which to stop; None to run them all
    min_delta : by how much the figure of `choose_by` must improve to count
    choose_by : figure of the steer split that picks the epoch: "refinement" (log loss after
        temperature scaling), "nll" or "f1"
    steer_share : share of the rows of every class that is split off for steering, where `fit` is
        given no steer rows
    resample : how to make the classes of the train rows equally frequent: "over" repeats rows of
        the smaller ones, "under" drops rows of the larger ones; None to leave them. The vocabulary
        is learned before that, and steer rows stay as they are. See `resampled`
    correct_prior : whether to take off what the loss (class weights, balanced softmax) and
        `resample` moved the logits by, so that probabilities are those of the train rows' class
        frequencies
    seed : of the split, the first weights, the order of rows and dropout
    device : "auto", "cpu", "cuda", "cuda:1"
    folder : where checkpoints go, to go on after a crash; None to keep none
    hooks : see `Hook`
    progress : whether to draw a bar on stderr

    Attributes
    ----------
    classes_ : the classes in the order of the columns of `predict_proba`
    encoder_ : the fitted `TextEncoder`
    model_ : the network with the weights of the best epoch, on the CPU
    loss_ : the loss with what it learned, such as AdaFocal's gammas
    records_ : one `EpochRecord` for each epoch
    best_epoch_, why_ : the epoch that was kept, and why the run ended
    steer_places_ : positions of the rows that were split off for steering
    log_shift_ : what `predict_logits` subtracts from the logits of `model_`, (K,), or None

    Examples
    --------
    >>> from calibrant import TextClassifier
    >>> texts = ["it came broken", "broken on arrival", "too small for me", "a size too small"] * 10
    >>> why = ["defect", "defect", "size", "size"] * 10
    >>> small = {"embedding": 16, "hidden": 8}
    >>> model = TextClassifier(model_options=small, epochs=20, learning_rate=0.02)
    >>> model.fit(texts, why).predict(["broken", "small size"]).tolist()
    ['defect', 'size']
    """

    def __init__(  # noqa: PLR0913  # scikit-learn finds and sets parameters one by one
        self,
        *,
        model: Network = "bilstm",
        model_options: Mapping[str, Any] | None = None,
        vocabulary: int = 20_000,
        min_count: int = 2,
        max_length: int = 256,
        loss: LossLike = "ce",
        epochs: int = 100,
        batch_size: int = 64,
        optimizer: Optimizer = "adam",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        momentum: float = 0.9,
        schedule: Schedule = "constant",
        milestones: Sequence[int] = (),
        milestone_drop: float = 0.1,
        warmup: float = 0.0,
        clip: float | None = None,
        precision: Precision = "32-true",
        patience: int | None = 10,
        min_delta: float = 1e-4,
        choose_by: ChooseBy = "refinement",
        steer_share: float = 0.1,
        resample: Resampling | None = None,
        correct_prior: bool = True,
        seed: int = 0,
        device: str = "auto",
        folder: str | Path | None = None,
        hooks: Sequence[Hook] = (),
        progress: bool = False,
    ) -> None:
        super().__init__(
            loss=loss,
            epochs=epochs,
            batch_size=batch_size,
            optimizer=optimizer,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            momentum=momentum,
            schedule=schedule,
            milestones=milestones,
            milestone_drop=milestone_drop,
            warmup=warmup,
            clip=clip,
            precision=precision,
            patience=patience,
            min_delta=min_delta,
            choose_by=choose_by,
            steer_share=steer_share,
            resample=resample,
            correct_prior=correct_prior,
            seed=seed,
            device=device,
            folder=folder,
            hooks=hooks,
            progress=progress,
        )
        self.model = model
        self.model_options = model_options
        self.vocabulary = vocabulary
        self.min_count = min_count
        self.max_length = max_length

    def _new_encoder(self) -> TextEncoder:
        return TextEncoder(
            vocabulary=self.vocabulary, min_count=self.min_count, max_length=self.max_length
        )

    def _read(self, X: Any, name: str, encoder: TextEncoder) -> list[str]:  # noqa: N803
        return as_texts(X, name=name)

    def _encoded(self, encoder: TextEncoder, rows: list[str], labels: IntArray | None) -> TextRows:
        tokens, offsets = encoder.encode(rows)
        return TextRows(tokens, offsets, labels)

    def _check_resample(self) -> None:
        if self.resample == "smote":
            raise InputError(
                "resample='smote' mixes features of two rows, which texts do not have: choose "
                "'over' or 'under'."
            )
        super()._check_resample()

    def _network(self, encoder: TextEncoder, n_classes: int) -> nn.Module:
        options = self.model_options or {}
        if not isinstance(options, Mapping):
            raise InputError(
                "model_options must be a dict of the network's options, such as "
                f"{{'hidden': 64}}, got {options!r}."
            )
        n_tokens = len(encoder.words)
        if callable(self.model):
            return self.model(n_tokens, n_classes, **options)
        if self.model == "mlp":
            raise InputError("model must read texts, got 'mlp': choose 'bilstm' or 'text_cnn'.")
        given = {"model": self.model, "n_tokens": n_tokens, "n_classes": n_classes}
        return build({**options, **given}, model="model", options="model_options")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
