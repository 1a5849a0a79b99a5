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
from calibrant.training.options import ChooseBy, Optimizer, Precision, Schedule
from calibrant.training.text_rows import TextRows

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["TextClassifier"]

Network = str | Path | Callable[[int, int], nn.Module]
Encoder = TextEncoder | SubwordEncoder

_WORDS = {"vocabulary": 20_000, "min_count": 2}
_MAX_LENGTH = 256
_USUAL = {
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
_USUAL_OF_TRANSFORMERS = {
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

    `fit` takes a list or a column of texts and splits steer rows off before anything is learned;
    the vocabulary is that of the train texts alone. A pretrained transformer is fine-tuned: it
    brings its own tokenizer and weights, from a folder or from a hub.

    An option that is "auto" is what networks of its kind are usually trained with:

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
    | max_length | 256 | 256, or its positions where it has fewer |

    Its probabilities are not calibrated: the steer rows have been used, so hand a fitted classifier
    and other rows to `CalibratedModel`.

    Parameters
    ----------
    model : "bilstm" or "text_cnn", any other registered model that reads texts; a transformer: its
        folder, as `save_pretrained` writes it, or its id on a hub, such as
        "distilbert-base-uncased"; or a function of (n_tokens, n_classes) that makes a network: it
        is called with (b, L) token ids and (b,) lengths
    model_options : arguments of the named network, such as {"embedding": 64, "hidden": 64}; of a
        transformer "pooling" and "dropout", see `Transformer`
    vocabulary, min_count : see `TextEncoder`; not for transformers
    max_length : words of a text that are read, or the tokens of a transformer
    loss : a name like "adafocal", "focal:gamma=3" or "0.5*ce + 0.5*soft_f1", a function of
        (logits, labels) or a Module, which is copied
    epochs, batch_size, accumulate, optimizer, learning_rate, weight_decay, momentum, nesterov,
    schedule, milestones, warmup, clip, precision, compile : see `TrainingOptions`
    milestone_drop : `drop` of `TrainingOptions`
    patience : epochs without improvement after which to stop; None to run them all
    min_delta : by how much the figure of `choose_by` must improve to count
    choose_by : figure of the steer split that picks the epoch: "refinement" (log loss after
        temperature scaling), "nll" or "f1"; "last" keeps the last epoch
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
    devices : processes, one for each GPU; more than one needs `torchrun` or a script that can be
        started again
    folder : where checkpoints go, to go on after a crash; None to keep none
    hooks : see `Hook`
    progress : whether to draw a bar on stderr

    Attributes
    ----------
    classes_ : the classes in the order of the columns of `predict_proba`
    encoder_ : the fitted `TextEncoder`, or the `SubwordEncoder` of a transformer
    model_ : the network with the weights of the best epoch, on the CPU
    options_ : the `TrainingOptions` that were used
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

    def _usual(self) -> Mapping[str, Any]:
        return _USUAL_OF_TRANSFORMERS if is_source(self.model) else _USUAL

    def _new_encoder(self) -> Encoder:
        if is_source(self.model):
            return self._its_own_encoder(self.model)
        return TextEncoder(
            vocabulary=self.vocabulary,
            min_count=self.min_count,
            max_length=_MAX_LENGTH if self.max_length == "auto" else self.max_length,
        )

    def _its_own_encoder(self, source: str | Path) -> SubwordEncoder:
        """Return the encoder that a transformer brings along."""
        for name, usual in _WORDS.items():
            if getattr(self, name) != usual:
                raise InputError(
                    f"{name} is about the words of the train texts, but a transformer brings its "
                    f"own tokenizer: leave {name} out."
                )
        pooling = self._network_options().get("pooling", "auto")
        found = read_pretrained(source, pooling=pooling)
        usual = min(_MAX_LENGTH, found.positions or _MAX_LENGTH)
        return found.encoder(usual if self.max_length == "auto" else self.max_length)

    def _read(self, X: Any, name: str, encoder: Encoder) -> list[str]:  # noqa: N803
        return as_texts(X, name=name)

    def _encoded(self, encoder: Encoder, rows: list[str], labels: IntArray | None) -> TextRows:
        tokens, offsets = encoder.encode(rows)
        return TextRows(tokens, offsets, labels)

    def _check_resample(self) -> None:
        if self.resample == "smote":
            raise InputError(
                "resample='smote' mixes features of two rows, which texts do not have: choose "
                "'over' or 'under'."
            )
        super()._check_resample()

    def _network(self, encoder: Encoder, n_classes: int) -> nn.Module:
        options = self._network_options()
        if is_source(self.model):
            return Transformer.from_pretrained(self.model, n_classes, **options)
        n_tokens = len(encoder.words)
        if callable(self.model):
            return self.model(n_tokens, n_classes, **options)
        _check_reads_texts(self.model)
        given = {"model": self.model, "n_tokens": n_tokens, "n_classes": n_classes}
        return build({**options, **given}, model="model", options="model_options")

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
    """Refuse a registered network that reads something else; `build` refuses what is none."""
    known = models() if isinstance(name, str) else {}
    if name in known and "n_tokens" not in inspect.signature(known[name]).parameters:
        raise InputError(
            f"model must read texts, got {name!r}: choose 'bilstm' or 'text_cnn', or name the "
            "folder of a transformer or its id on a hub."
        )
