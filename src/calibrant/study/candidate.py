"""A candidate: one loss with one seed, and the folder that holds what became of it."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from calibrant.data.splits import Splits
from calibrant.study.config import StudyConfig
from calibrant.study.defaults import SMALL, TEXT

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


def candidates_of(
    config: StudyConfig, files: Mapping[str, str], splits: Splits
) -> tuple[Candidate, ...]:
    """Return all candidates of a study.

    Parameters
    ----------
    config : the settings
    files : hashes of the files that are read, by what they are ("data", "golden")
    splits : which rows have which job
    """
    told = {key: value for key, value in config.to_dict().items() if key not in _NEUTRAL}
    told |= {"files": dict(files), "splits": splits.to_dict(), "defaults": [SMALL, TEXT]}
    told["version"] = metadata.version("calibrant")
    found = []
    for loss in config.candidates:
        told |= {"loss": loss, "code": _own_code(loss)}
        found += [Candidate(loss, s, _hash({**told, "own seed": s})) for s in config.seeds]
    return tuple(found)


def _own_code(loss: str) -> list[str]:
    """Return the source of a user's own loss, or of its parts."""
    from calibrant.losses import as_loss

    found = []
    for part in as_loss(loss, class_counts=(1, 1)).modules():
        kind = type(part)
        if not kind.__module__.startswith(("calibrant.", "torch.")):
            with suppress(OSError, TypeError):  # not written in a file
                found.append(inspect.getsource(kind))
    return found


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
