"""A candidate: a loss with a seed or an average of such networks, and the folder it lies in."""

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
from calibrant.study.candidates.classifier import steps_of
from calibrant.study.scoring_ways import name_candidate
from calibrant.study.settings.config import StudyConfig

__all__ = ["Candidate", "candidates_of"]

_NEUTRAL = {
    "hold", "confidence", "ood", "actions", "calibrator", "jobs", "title", "candidates", "seeds",
    "ensemble", "mc_dropout", "devices", "data", "golden", "largest_weight",
}  # fmt: skip
"""Settings that say nothing about how a network is trained; of files the content counts."""


_ENCODERS = 2
"""Counts changes of what encoders learn: what an earlier one learned is not gone on with."""


@dataclass(frozen=True)
class Candidate:
    """One loss with one seed, or an average of such networks.

    Parameters
    ----------
    loss : like "focal:gamma=3"
    seed : of the first weights, the order of rows and dropout; of an ensemble the first one's
    fingerprint : of all settings and files that its scores depend on
    way : "one" network, the "ensemble" of those of all seeds, or "mc_dropout"
    members : the networks that it averages; of MC dropout one; none where it is a network itself
    passes : thinned copies that MC dropout averages

    Examples
    --------
    >>> one = Candidate("focal:gamma=3", 0, "0123456789abcdef")
    >>> one.folder
    'focal-gamma-3-seed-0-01234567'
    >>> thinned = Candidate(one.loss, 0, "89abcdef", "mc_dropout", (one,), passes=20)
    >>> thinned.name, thinned.folder
    ('focal:gamma=3, MC dropout (20 passes)', 'focal-gamma-3-seed-0-mc-dropout-20-89abcdef')
    """

    loss: str
    seed: int
    fingerprint: str
    way: str = "one"
    members: tuple[Candidate, ...] = ()
    passes: int = 0

    @property
    def name(self) -> str:
        """What messages call it: the loss, the seed where it is not 0, and what is averaged."""
        return name_candidate(self.loss, self.seed, self.way, len(self.members), self.passes)

    @property
    def folder(self) -> str:
        """Name of its folder: another one as soon as anything it depends on changes."""
        plain = re.sub(r"[^a-z0-9.]+", "-", self.loss.lower()).strip("-.")[:60] or "loss"
        thinned = f"-mc-dropout-{self.passes}" if self.way == "mc_dropout" else ""
        which = "ensemble" if self.way == "ensemble" else f"seed-{self.seed}{thinned}"
        return f"{plain}-{which}-{self.fingerprint[:8]}"


def candidates_of(
    config: StudyConfig, files: Mapping[str, str], splits: Splits
) -> tuple[Candidate, ...]:
    """Return all candidates of a study: of each loss its networks, then their averages."""
    told = {key: value for key, value in config.to_dict().items() if key not in _NEUTRAL}
    told |= {
        "model": config.network,
        "training": steps_of(config),  # what is usual may change too
        "files": dict(files),
        "splits": splits.to_dict(),
        "version": own_version(),
        "encoders": _ENCODERS,
    }
    told |= _pretrained(config) | _own_network(config)
    found: list[Candidate] = []
    for loss in config.candidates:
        told |= {"loss": loss, "code": _own_code(loss)}
        ones = tuple(
            Candidate(loss, seed, _hash({**told, "own seed": seed})) for seed in config.seeds
        )
        found += [*ones, *_averages(config, ones)]
    return tuple(found)


def _averages(config: StudyConfig, ones: tuple[Candidate, ...]) -> list[Candidate]:
    """Return what is asked for beside the networks of a loss."""
    found = []
    if config.mc_dropout:
        found += [_average("mc_dropout", (one,), config.mc_dropout) for one in ones]
    if config.ensemble:
        found.append(_average("ensemble", ones))
    return found


def _average(way: str, members: tuple[Candidate, ...], passes: int = 0) -> Candidate:
    told = {"way": way, "of": [one.fingerprint for one in members], "passes": passes}
    return Candidate(members[0].loss, members[0].seed, _hash(told), way, members, passes)


def _pretrained(config: StudyConfig) -> dict[str, str]:
    """Return what stands for a model that was trained before: its content, wherever it lies."""
    from calibrant.models.pretrained import fingerprint
    from calibrant.models.pretrained_folder import is_source

    pretrained = config.kind == "text" and is_source(config.network)
    return {"model": fingerprint(config.network)} if pretrained else {}


def _own_network(config: StudyConfig) -> dict[str, list[str]]:
    """Return what a network that is the user's own is made of, as for a loss."""
    from calibrant.losses.describing import describe_code
    from calibrant.models.registry import models

    made = models().get(config.network)
    code = "" if made is None else describe_code([made])
    return {"network code": [_source(made), code]} if code else {}


def _own_code(loss: str) -> list[str]:
    """Return what a loss that is the user's own, or has such parts, is made of.

    Where its source can be read it stands for the loss, and so does the code that Python made of
    it: a file may have been changed since it was imported.
    """
    from calibrant.losses import FunctionLoss, as_loss
    from calibrant.losses.describing import describe
    from calibrant.losses.own_code import is_user_code
    from calibrant.training.seeds import own_randomness

    with own_randomness(0):  # a loss may draw its first weights
        made = as_loss(loss, class_counts=(1, 1))
    own: list[Any] = []
    for part in made.modules():
        own += [part.function] if isinstance(part, FunctionLoss) else []
        own += [type(part)] if is_user_code(type(part)) else []
    return [*map(_source, own), describe(made)] if own else []


def _source(own: Any) -> str:
    """Return the source of a function or class, or of that of a callable object; "" without one."""
    while isinstance(own, partial):
        own = own.func
    written = own if inspect.isroutine(own) or isinstance(own, type) else type(own)
    with suppress(OSError, TypeError):  # typed into a console, or written in C
        return inspect.getsource(written)
    return ""


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
