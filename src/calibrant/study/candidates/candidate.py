"""Candidates of a study, and the fingerprints that name their folders."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibrant.data.splits import Splits
from calibrant.distribution import own_version
from calibrant.study.candidates.classifier import step_options
from calibrant.study.result import name_candidate
from calibrant.study.settings.config import StudyConfig

_NEUTRAL = {
    "hold", "confidence", "ood", "actions", "calibrator", "jobs", "title", "candidates", "seeds",
    "ensemble", "mc_dropout", "devices", "data", "golden", "largest_weight",
}  # fmt: skip
"""Settings that do not affect training; files are fingerprinted by content."""


_ENCODER_VERSION = 2
"""Encoder version; bump it to invalidate cached candidates."""


@dataclass(frozen=True)
class StudyCandidate:
    """One loss with one seed, or an average of such networks.

    Parameters
    ----------
    loss : like "focal:gamma=3"
    seed : seed of the initial weights, the row order and dropout; for an ensemble, the first seed
    fingerprint : hash of all settings and files that its scores depend on
    way : "one" network, the "ensemble" of all seeds, or "mc_dropout"
    members : the networks that it averages: one for MC dropout, empty for a single network
    passes : forward passes that MC dropout averages

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

    @property
    def name(self) -> str:
        """Display name: the loss, a nonzero seed, and the kind of average."""
        return name_candidate(self.loss, self.seed, self.way, len(self.members), self.passes)

    @property
    def folder(self) -> str:
        """Folder name; it contains the fingerprint, so it changes with every dependency."""
        slug = re.sub(r"[^a-z0-9.]+", "-", self.loss.lower()).strip("-.")[:60] or "loss"
        mc_dropout = f"-mc-dropout-{self.passes}" if self.way == "mc_dropout" else ""
        kind = "ensemble" if self.way == "ensemble" else f"seed-{self.seed}{mc_dropout}"
        return f"{slug}-{kind}-{self.fingerprint[:8]}"


def list_candidates(
    config: StudyConfig, files: Mapping[str, str], splits: Splits
) -> tuple[StudyCandidate, ...]:
    """Return all candidates of a study: for each loss its networks, then their averages."""
    inputs = {key: value for key, value in config.to_dict().items() if key not in _NEUTRAL}
    inputs |= {
        "model": config.network,
        "training": step_options(config),  # defaults may change between versions
        "files": dict(files),
        "splits": splits.to_dict(),
        "version": own_version(),
        "encoders": _ENCODER_VERSION,
    }
    inputs |= _pretrained_fingerprint(config) | _custom_network_code(config)
    candidates: list[StudyCandidate] = []
    for loss in config.candidates:
        inputs |= {"loss": loss, "code": _custom_loss_code(loss)}
        networks = tuple(
            StudyCandidate(loss, seed, _hash({**inputs, "own seed": seed})) for seed in config.seeds
        )
        candidates += [*networks, *_list_averages(config, networks)]
    return tuple(candidates)


def _list_averages(
    config: StudyConfig, networks: tuple[StudyCandidate, ...]
) -> list[StudyCandidate]:
    """Return the requested averages of a loss's networks."""
    averages = []
    if config.mc_dropout:
        averages += [_average("mc_dropout", (one,), config.mc_dropout) for one in networks]
    if config.ensemble:
        averages.append(_average("ensemble", networks))
    return averages


def _average(way: str, members: tuple[StudyCandidate, ...], passes: int = 0) -> StudyCandidate:
    inputs = {"way": way, "of": [member.fingerprint for member in members], "passes": passes}
    return StudyCandidate(members[0].loss, members[0].seed, _hash(inputs), way, members, passes)


def _pretrained_fingerprint(config: StudyConfig) -> dict[str, str]:
    """Return the fingerprint of a pretrained model: its content, not its location."""
    from calibrant.models.pretrained import fingerprint
    from calibrant.models.pretrained_folder import is_source

    pretrained = config.kind == "text" and is_source(config.network)
    return {"model": fingerprint(config.network)} if pretrained else {}


def _custom_network_code(config: StudyConfig) -> dict[str, list[str]]:
    """Return the code of a user-defined network."""
    from calibrant.losses.describing import describe_code
    from calibrant.models.registry import models

    network = models().get(config.network)
    code = "" if network is None else describe_code([network])
    return {"network code": [_source_code(network), code]} if code else {}


def _custom_loss_code(loss: str) -> list[str]:
    """Return the code of a loss that is user-defined or has user-defined parts.

    Both the source, where available, and the compiled code are used: a file may have changed
    since it was imported.
    """
    from calibrant.losses import FunctionLoss, as_loss
    from calibrant.losses.describing import describe
    from calibrant.losses.own_code import is_user_code
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
