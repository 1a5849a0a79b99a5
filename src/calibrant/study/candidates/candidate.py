"""Candidates of a study, and the fingerprints that name their folders."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.data.splits import Splits
from calibrant.distribution import own_version
from calibrant.study.result import name_candidate
from calibrant.study.settings.config import BASELINE, StudyConfig
from calibrant.study.settings.models import is_network, is_transformer

_NEUTRAL = {
    "hold", "confidence", "ood", "actions", "calibrator", "jobs", "title", "candidates", "seeds",
    "ensemble", "mc_dropout", "devices", "data", "golden", "largest_weight", "pack_anyway",
    "freeze", "model", "model_options", "training",
}  # fmt: skip
"""Settings that do not affect training, or are fingerprinted for each model; files by content."""


_ENCODER_VERSION = 3
"""Encoder version; bump it to invalidate cached candidates."""


_WHOLE = ("ensemble", "weighted")
"""Averages of several models, which have no seed of their own."""


@dataclass(frozen=True)
class StudyCandidate:
    """A model trained with one loss and one seed, or an average of such models.

    Parameters
    ----------
    loss : like "focal:gamma=3"
    seed : seed of the initial weights, the row order and dropout; for an ensemble, the first seed
    fingerprint : hash of all settings and files that its scores depend on
    way : "one" model, the "ensemble" of all seeds, "mc_dropout", or the "weighted" ensemble of
        several models
    members : the models that it averages: one for MC dropout, empty for a single model
    passes : forward passes that MC dropout averages
    model : name of the model, such as "boosting"
    raced : whether several models are raced, so that its name must say which it is

    Examples
    --------
    >>> one = StudyCandidate("focal:gamma=3", 0, "0123456789abcdef")
    >>> one.folder
    'focal-gamma-3-seed-0-01234567'
    >>> thinned = StudyCandidate(one.loss, 0, "89abcdef", "mc_dropout", (one,), passes=20)
    >>> thinned.name, thinned.folder
    ('focal:gamma=3, MC dropout (20 passes)', 'focal-gamma-3-seed-0-mc-dropout-20-89abcdef')
    """

    loss: str
    seed: int
    fingerprint: str
    way: str = "one"
    members: tuple[StudyCandidate, ...] = ()
    passes: int = 0
    model: str = ""
    raced: bool = False

    @property
    def name(self) -> str:
        """Display name: the raced model, the loss, a nonzero seed, and the kind of average."""
        model = short_name(self.model) if self.raced else ""
        return name_candidate(self.loss, self.seed, self.way, len(self.members), self.passes, model)

    @property
    def folder(self) -> str:
        """Folder name; it contains the fingerprint, so it changes with every dependency."""
        text = f"{short_name(self.model)}-{self.loss}" if self.raced else self.loss
        slug = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:60] or "loss"
        mc_dropout = f"-mc-dropout-{self.passes}" if self.way == "mc_dropout" else ""
        kind = self.way if self.way in _WHOLE else f"seed-{self.seed}{mc_dropout}"
        return f"{slug}-{kind}-{self.fingerprint[:8]}"


def short_name(model: str) -> str:
    """Return the name of a model; of a folder the last part.

    Examples
    --------
    >>> short_name("boosting"), short_name("models/minilm/")
    ('boosting', 'minilm')
    """
    return Path(model).name or model


def list_racers(
    config: StudyConfig, files: Mapping[str, str], splits: Splits
) -> tuple[StudyCandidate, ...]:
    """Return each model with cross-entropy and the first seed; empty for a single model."""
    if len(config.models) == 1:
        return ()
    listed = (list_candidates(config, files, splits, model) for model in config.models)
    racers = (each for own in listed for each in own if each.way == "one")
    return tuple(each for each in racers if (each.loss, each.seed) == (BASELINE, config.seeds[0]))


def list_candidates(
    config: StudyConfig, files: Mapping[str, str], splits: Splits, model: str | None = None
) -> tuple[StudyCandidate, ...]:
    """Return the candidates of a model, by default the first: each loss, then its averages."""
    model = config.models[0] if model is None else model
    inputs = _inputs_of(config, files, splits, model)
    candidates: list[StudyCandidate] = []
    for loss in config.candidates:
        inputs |= {"loss": loss, "code": _custom_loss_code(loss)}
        ones = tuple(
            StudyCandidate(
                loss,
                seed,
                _hash({**inputs, "own seed": seed}),
                model=model,
                raced=len(config.models) > 1,
            )
            for seed in config.seeds
        )
        candidates += [*ones, *_list_averages(config, ones)]
    return tuple(candidates)


def _inputs_of(
    config: StudyConfig, files: Mapping[str, str], splits: Splits, model: str
) -> dict[str, Any]:
    """Return all that training a model depends on, but its loss and seed."""
    from calibrant.study.candidates.classifier import step_options

    inputs = {key: value for key, value in config.to_dict().items() if key not in _NEUTRAL}
    inputs |= {
        "model": model,
        "frozen": config.is_frozen(model),
        "training": step_options(config, model),  # defaults may change between versions
        "files": dict(files),
        "splits": splits.to_dict(),
        "version": own_version(),
        "encoders": _ENCODER_VERSION,
    }
    return inputs | _pretrained_fingerprint(config, model) | _custom_network_code(model)


def weighted_ensemble(members: tuple[StudyCandidate, ...]) -> StudyCandidate:
    """Return the candidate that mixes several models with weights learned on the choice rows."""
    one = _average("weighted", members)
    return replace(one, raced=True)


def _list_averages(
    config: StudyConfig, networks: tuple[StudyCandidate, ...]
) -> list[StudyCandidate]:
    """Return the requested averages of a loss's networks."""
    averages = []
    if not is_network(config, networks[0].model):
        return []
    if config.mc_dropout:
        averages += [_average("mc_dropout", (one,), config.mc_dropout) for one in networks]
    if config.ensemble:
        averages.append(_average("ensemble", networks))
    return averages


def _average(way: str, members: tuple[StudyCandidate, ...], passes: int = 0) -> StudyCandidate:
    inputs = {"way": way, "of": [member.fingerprint for member in members], "passes": passes}
    first = members[0]
    fingerprint = _hash(inputs)
    return replace(first, fingerprint=fingerprint, way=way, members=members, passes=passes)


def _pretrained_fingerprint(config: StudyConfig, model: str) -> dict[str, str]:
    """Return the fingerprint of a pretrained model: its content, not its location."""
    from calibrant.models.pretrained import fingerprint

    return {"model": fingerprint(model)} if is_transformer(config, model) else {}


def _custom_network_code(model: str) -> dict[str, list[str]]:
    """Return the code of a user-defined network."""
    from calibrant.losses.describing import describe_code
    from calibrant.models.registry import models

    network = models().get(model)
    code = "" if network is None else describe_code([network])
    return {"network code": [_source_code(network), code]} if code else {}


def _custom_loss_code(loss: str) -> list[str]:
    """Return the code of a loss that is user-defined or has user-defined parts.

    Both the source, where available, and the compiled code are used: a file may have changed
    since it was imported.
    """
    from calibrant.losses import FunctionLoss, as_loss
    from calibrant.losses.describing import describe, is_user_code
    from calibrant.training.seeds import isolated_randomness

    with isolated_randomness(0):  # a loss may draw initial weights
        module = as_loss(loss, class_counts=(1, 1))
    custom: list[Any] = []
    for part in module.modules():
        custom += [part.function] if isinstance(part, FunctionLoss) else []
        custom += [type(part)] if is_user_code(type(part)) else []
    return [*map(_source_code, custom), describe(module)] if custom else []


def _source_code(code: Any) -> str:
    """Return the source of a function, a class or a callable object's class; "" if unavailable."""
    while isinstance(code, partial):
        code = code.func
    definition = code if inspect.isroutine(code) or isinstance(code, type) else type(code)
    with suppress(OSError, TypeError):  # typed into a console, or written in C
        return inspect.getsource(definition)
    return ""


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
