"""A candidate: one loss with one seed, and the folder that holds what became of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.study.config import StudyConfig

__all__ = ["Candidate", "candidates_of"]

_NEUTRAL = {
    "hold", "confidence", "ood", "actions", "calibrator", "jobs", "title", "candidates", "seeds",
}  # fmt: skip
"""Settings that say nothing about how a candidate is trained."""


@dataclass(frozen=True)
class Candidate:
    """One loss with one seed.

    Parameters
    ----------
    loss : like "focal:gamma=3"
    seed : of the first weights, the order of rows and dropout
    fingerprint : of all settings and files that its training depends on

    Examples
    --------
    >>> Candidate("focal:gamma=3", 0, "0123456789abcdef").folder
    'focal-gamma-3-seed-0-01234567'
    """

    loss: str
    seed: int
    fingerprint: str

    @property
    def folder(self) -> str:
        """Name of its folder: another one as soon as anything it depends on changes."""
        plain = re.sub(r"[^a-z0-9.]+", "-", self.loss.lower()).strip("-.")[:60] or "loss"
        return f"{plain}-seed-{self.seed}-{self.fingerprint[:8]}"


def candidates_of(config: StudyConfig, files: Mapping[str, str]) -> tuple[Candidate, ...]:
    """Return all candidates of a study.

    Parameters
    ----------
    config : the settings
    files : hashes of the files that are read, by what they are ("data", "golden")
    """
    told = {key: value for key, value in config.to_dict().items() if key not in _NEUTRAL}
    told["files"] = dict(files)
    return tuple(
        Candidate(loss, seed, _hash({**told, "loss": loss, "candidate seed": seed}))
        for loss in config.candidates
        for seed in config.seeds
    )


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
