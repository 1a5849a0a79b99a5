"""A network for texts as a scikit-learn classifier."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.text_encoder import TextEncoder, as_texts
from calibrant.data.resampling import Resampling
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.losses.names import LossLike
from calibrant.models import Transformer, build, models
from calibrant.models.pretrained import read_pretrained
from calibrant.models.pretrained_folder import is_source
from calibrant.models.transformer import options_of
from calibrant.training.estimator import Auto, Estimator
from calibrant.training.hooks import Hook
from calibrant.training.options import Average, ChooseBy, Optimizer, Precision, Schedule
from calibrant.training.text_rows import TextRows

if TYPE_CHECKING:
    from sklearn.utils import Tags


Network = str | Path | Callable[[int, int], nn.Module]
Encoder = TextEncoder | SubwordEncoder

_WORDS = {"vocabulary": 20_000, "min_count": 2}
_MAX_LENGTH = 256
_DEFAULTS = {
    "epochs": 100,
    "batch_size": 64,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "schedule": "constant",
    "warmup": 0.0,
    "clip": None,
    "patience": 10,
}
_TRANSFORMER_DEFAULTS = {
    "epochs": 4,
    "batch_size": 32,
    "optimizer": "adamw",
    "learning_rate": 5e-5,
    "weight_decay": 0.01,
    "schedule": "linear",
    "warmup": 0.1,
    "clip": 1.0,
    "patience": None,
}


class TextClassifier(Estimator):
    """A network for texts, with its encoder.

    `fit` takes a list or a column of texts and splits off steer rows first; the vocabulary is built
    from the train texts only. A pretrained transformer is fine-tuned: it comes with its tokenizer
    and weights, from a folder or from a hub.

    An option that is "auto" has the usual value for the kind of network:

    | option | own networks | transformers |
    |---|---|---|
    | epochs | 100 | 4 |
    | batch_size | 64 | 32 |
    | optimizer | "adam" | "adamw" |
    | learning_rate | 0.001 | 0.00005 |
    | weight_decay | 0 | 0.01 |
    | schedule | "constant" | "linear" |
    | warmup | 0 | 0.1 |
    | clip | None | 1 |
    | patience | 10 | None |
    | max_length | 256 | 256, or its number of positions if smaller |

    Its probabilities are not calibrated: the steer rows are used up, so pass the fitted
    classifier and other rows to `CalibratedModel`.

    Parameters
    ----------
    model : "bilstm" or "text_cnn", any other registered model that reads texts; a transformer: its
        folder, as `save_pretrained` writes it, or its id on a hub, such as
        "distilbert-base-uncased"; or a function of (n_tokens, n_classes) that returns a network: it
        is called with (b, L) token ids and (b,) lengths
    model_options : arguments of the named network, such as {"embedding": 64, "hidden": 64}; of a
        transformer "pooling" and "dropout", see `Transformer`
    vocabulary, min_count : see `TextEncoder`; not for transformers
    max_length : maximum number of words per text, or of tokens for a transformer
    loss : a name like "adafocal", "focal:gamma=3" or "0.5*ce + 0.5*soft_f1", a function of
        (logits, labels) or a Module, which is copied
    epochs, batch_size, accumulate, optimizer, learning_rate, weight_decay, momentum, nesterov,
    schedule, milestones, warmup, clip, precision, compile, average : see `TrainingOptions`
    milestone_drop : `drop` of `TrainingOptions`
    patience : epochs without improvement after which to stop; None to run them all
    min_delta : minimum improvement of the metric of `choose_by` to count
    choose_by : metric of the steer split that chooses the epoch: "refinement" (log loss after
        temperature scaling), "nll" or "f1"; "last" uses the last epoch
    steer_share : share of the rows of every class that is split off as steer rows, if
        `fit` is given none
    resample : how to make the classes of the train rows equally frequent: "over" repeats rows of
        the smaller ones, "under" drops rows of the larger ones; None for no resampling. The
        vocabulary is built before, and steer rows are not resampled. See `resampled`
    correct_prior : whether to remove the shift of the logits caused by the loss (class weights,
        balanced softmax) and `resample`, so that probabilities match the class frequencies of the
        train rows
    seed : seed of the split, the initial weights, the row order and dropout
    device : "auto", "cpu", "cuda", "cuda:1"
    devices : processes, one for each GPU; more than one needs `torchrun` or a script that can be
        started again
    folder : folder for checkpoints, to resume after a crash; None for no checkpoints
    hooks : see `Hook`
    progress : whether to show a progress bar on stderr

    Attributes
    ----------
    classes_ : the classes in the order of the columns of `predict_proba`
    encoder_ : the fitted `TextEncoder`, or the `SubwordEncoder` of a transformer
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
        max_length: int | Auto = "auto",
        loss: LossLike = "ce",
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        accumulate: int = 1,
        optimizer: Optimizer | Auto = "auto",
        learning_rate: float | Auto = "auto",
        weight_decay: float | Auto = "auto",
        momentum: float = 0.9,
        nesterov: bool = False,
        schedule: Schedule | Auto = "auto",
        milestones: Sequence[int] = (),
        milestone_drop: float = 0.1,
        warmup: float | Auto = "auto",
        clip: float | Auto | None = "auto",
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
        self.vocabulary = vocabulary
        self.min_count = min_count
        self.max_length = max_length

    def _default_options(self) -> Mapping[str, Any]:
        return _TRANSFORMER_DEFAULTS if is_source(self.model) else _DEFAULTS

    def _new_encoder(self) -> Encoder:
        if is_source(self.model):
            return self._pretrained_encoder(self.model)
        return TextEncoder(
            vocabulary=self.vocabulary,
            min_count=self.min_count,
            max_length=_MAX_LENGTH if self.max_length == "auto" else self.max_length,
        )

    def _pretrained_encoder(self, source: str | Path) -> SubwordEncoder:
        """Return the encoder of a transformer."""
        for name, default in _WORDS.items():
            if getattr(self, name) != default:
                raise InputError(
                    f"{name} is about the words of the train texts, but a transformer comes with "
                    f"its tokenizer: leave {name} out."
                )
        pooling = self._network_options().get("pooling", "auto")
        pretrained = read_pretrained(source, pooling=pooling)
        default = min(_MAX_LENGTH, pretrained.positions or _MAX_LENGTH)
        return pretrained.encoder(default if self.max_length == "auto" else self.max_length)

    def _read_input(self, X: Any, name: str, encoder: Encoder) -> list[str]:  # noqa: N803
        return as_texts(X, name=name)

    def _encode_rows(self, encoder: Encoder, rows: list[str], labels: IntArray | None) -> TextRows:
        tokens, offsets = encoder.encode(rows)
        return TextRows(tokens, offsets, labels)

    def _check_resample(self) -> None:
        if self.resample == "smote":
            raise InputError(
                "resample='smote' interpolates features, which texts do not have: choose "
                "'over' or 'under'."
            )
        super()._check_resample()

    def _build_network(self, encoder: Encoder, n_classes: int) -> nn.Module:
        options = self._network_options()
        if is_source(self.model):
            return Transformer.from_pretrained(self.model, n_classes, **options)
        n_tokens = len(encoder.words)
        if callable(self.model):
            return self.model(n_tokens, n_classes, **options)
        _check_reads_texts(self.model)
        required = {"model": self.model, "n_tokens": n_tokens, "n_classes": n_classes}
        return build({**options, **required}, model="model", options="model_options")

    def _network_options(self) -> dict[str, Any]:
        options = self.model_options or {}
        if not isinstance(options, Mapping):
            raise InputError(
                "model_options must be a dict of the network's options, such as "
                f"{{'hidden': 64}}, got {options!r}."
            )
        return options_of(options) if is_source(self.model) else dict(options)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _check_reads_texts(name: Any) -> None:
    """Raise `InputError` for a registered network that does not read texts."""
    known = models() if isinstance(name, str) else {}
    if name in known and "n_tokens" not in inspect.signature(known[name]).parameters:
        raise InputError(
            f"model must read texts, got {name!r}: choose 'bilstm' or 'text_cnn', or give the "
            "folder or the hub id of a transformer."
        )
