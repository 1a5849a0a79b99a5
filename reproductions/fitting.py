"""Training of one run: a method of an experiment with one seed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.inputs import FloatArray
from calibrant.study.candidates.processes import Progress
from reproductions.experiment import Experiment, Method
from reproductions.parts import Parts

if TYPE_CHECKING:
    from calibrant.reports.displays.bin_history import BinHistory
    from calibrant.training.estimator import Estimator

__all__ = ["Fitted", "classifier_of", "fit"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Results of training a run, to be evaluated.

    Parameters
    ----------
    experiment, method, seed : which run it is
    parts : its rows
    model : the fitted classifier
    logits : (n, K) of each part but the train rows, and of each data set of `parts.outside`
    seconds : that training took
    test_history : error, calibration error and log loss of the test rows after each epoch
    bins : confidence and accuracy of the steer rows by bin and epoch
    """

    experiment: Experiment
    method: Method
    seed: int
    parts: Parts
    model: Estimator
    logits: Mapping[str, FloatArray]
    seconds: float
    test_history: tuple[Mapping[str, float], ...] = ()
    bins: BinHistory | None = None


def fit(
    experiment: Experiment,
    method: Method,
    seed: int,
    parts: Parts,
    *,
    overrides: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    tell: Progress | None = None,
) -> Fitted:
    """Train one method with one seed and score every part.

    The seed is that of the first weights, of the order of rows and of dropout; the rows of each
    part are the same for all seeds, as in the papers.

    Parameters
    ----------
    experiment : at the size that is wanted
    method : of the experiment
    seed : at least 0
    parts : the rows
    overrides : arguments of the classifier from the command line, over all others
    folder : where checkpoints go, to go on after an interruption; None to keep none
    tell : gets a line after each epoch
    """
    from calibrant.study.candidates.epoch_messages import EpochMessages
    from calibrant.training.bin_trace import BinTrace
    from calibrant.training.hooks import Hook
    from reproductions.epoch_history import EpochHistory

    model = classifier_of(experiment, method, seed, parts, overrides=overrides)
    watch, trace = EpochHistory(model, parts, every=experiment.look_every), BinTrace()
    hooks: list[Hook] = [watch, trace]
    if tell is not None:
        name = f"{experiment.name}: {method.label}, seed {seed}"
        hooks.append(EpochMessages(name, model._options().epochs, tell))
    model.set_params(hooks=hooks, folder=folder)
    started = time.perf_counter()
    model.fit(
        parts.train.inputs, parts.train.labels, steer=(parts.steer.inputs, parts.steer.labels)
    )
    before = sum(epoch.seconds for epoch in model.records_[: watch.first])
    seconds = before + time.perf_counter() - started - watch.seconds
    scored = {name: part.inputs for name, part in parts.named().items() if name != "train"}
    logits = {
        name: model.predict_logits(rows) for name, rows in {**scored, **parts.outside}.items()
    }
    return Fitted(
        experiment, method, seed, parts, model, logits, seconds, tuple(watch.epochs), trace.history
    )


def classifier_of(
    experiment: Experiment,
    method: Method,
    seed: int,
    parts: Parts,
    *,
    overrides: Mapping[str, Any] | None = None,
) -> Estimator:
    """Return the classifier of a run, not yet fitted."""
    from calibrant.training.image import ImageClassifier
    from calibrant.training.tabular import TabularClassifier
    from calibrant.training.text import TextClassifier

    kinds = {"image": ImageClassifier, "table": TabularClassifier, "text": TextClassifier}
    requested = {**experiment.options_of(method, overrides), "seed": seed}
    options = {name: _plain(value) for name, value in requested.items()}
    network = {**(options.pop("model_options", None) or {}), **parts.model_options}
    if network:
        options["model_options"] = network
    classifier: Estimator = kinds[experiment.kind](**options)
    return classifier


def _plain(value: Any) -> Any:
    """Resolve a config value: "none" is None, "data:NAME" the folder of a data set."""
    if value == "none":
        return None
    if isinstance(value, str) and value.startswith("data:"):
        from reproductions.data_sets import find

        return find(value.removeprefix("data:"))[0].parent
    return value
