"""Rows of an experiment by split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

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

    def take(self, places: IntArray) -> Part:
        """Return the rows at these places."""
        if isinstance(self.inputs, np.ndarray):
            inputs: Any = self.inputs[places]
        elif hasattr(self.inputs, "take"):
            inputs = self.inputs.take(places)
        else:
            inputs = [self.inputs[place] for place in places]
        posterior = None if self.posterior is None else self.posterior[places]
        return Part(inputs, self.labels[places], posterior)


@dataclass(frozen=True, eq=False)
class Parts:
    """What a loader returns: who learns, who steers, who calibrates, who judges.

    The papers steer, choose epochs and fit temperatures on the same validation rows; here
    calibrators have rows of their own.

    Parameters
    ----------
    train : rows of the gradients
    steer : rows that AdaFocal follows and that choose the epoch; without `choice` the recipe too
    calib : rows of calibrators and thresholds
    test : rows of every reported figure
    classes : names of the classes, by their numbers
    outside : inputs that belong to no class, by the name of their data set
    model_options : of the network, such as word vectors that go with the vocabulary
    note : how these rows differ from the paper's, as one sentence
    choice : rows that only compare methods, where `with_choice` kept some
    """

    train: Part
    steer: Part
    calib: Part
    test: Part
    classes: tuple[str, ...]
    outside: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    choice: Part | None = None

    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each part."""
        return {name: len(part) for name, part in self.named().items()}

    def named(self) -> dict[str, Part]:
        """Return every part by name; "choice" is among them where there is one."""
        parts = {"train": self.train, "steer": self.steer, "calib": self.calib, "test": self.test}
        return parts if self.choice is None else {**parts, "choice": self.choice}

    def with_choice(self) -> Parts:
        """Halve the steer rows: one half is followed in training, the other compares methods.

        A loss that follows rows, and an epoch that is chosen on them, look better there than on
        new rows; methods that do neither do not. On rows that nobody followed all are equal. Each
        class is halved, at random but always alike, so that all methods and seeds have the same.
        """
        labels = self.steer.labels
        order = np.lexsort((np.random.default_rng(1).random(len(labels)), labels))
        followed, choice_rows = np.sort(order[::2]), np.sort(order[1::2])
        return replace(self, steer=self.steer.take(followed), choice=self.steer.take(choice_rows))
