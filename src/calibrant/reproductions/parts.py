"""The rows of an experiment, one job each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

__all__ = ["Part", "Parts"]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with their labels.

    Parameters
    ----------
    inputs : what an estimator's `fit` takes: a list of texts, images as bytes, or a table
    labels : (n,) classes as numbers from 0
    posterior : (n, K) true probabilities of the classes, where a made world knows them
    """

    inputs: Any
    labels: IntArray
    posterior: FloatArray | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise InputError(
                f"{len(self.inputs)} inputs have {len(self.labels)} labels: give each its own."
            )

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Parts:
    """What a loader returns: who learns, who steers, who calibrates, who judges.

    The papers steer, choose epochs and fit temperatures on the same validation rows; here
    calibrators have rows of their own.

    Parameters
    ----------
    train : rows of the gradients
    steer : rows that AdaFocal follows and that choose the epoch and the recipe
    calib : rows of calibrators and thresholds
    test : rows of every reported figure
    classes : names of the classes, by their numbers
    outside : inputs that belong to no class, by the name of their data set
    model_options : of the network, such as word vectors that go with the vocabulary
    note : how these rows differ from the paper's, as one sentence
    """

    train: Part
    steer: Part
    calib: Part
    test: Part
    classes: tuple[str, ...]
    outside: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each part."""
        return {name: len(getattr(self, name)) for name in ("train", "steer", "calib", "test")}
