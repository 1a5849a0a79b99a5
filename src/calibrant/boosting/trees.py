"""Boosted trees as text, and what they compute: logits and contributions."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np

from calibrant.boosting.tree_text import check_text
from calibrant.cores import usable_threads
from calibrant.errors import InputError, MissingExtra
from calibrant.inputs import FloatArray

_LEAVES = re.compile(r"^num_leaves=(\d+)$", re.MULTILINE)
_BLOCK = 1024
"""Rows for which a second thread pays."""


def load_lightgbm() -> Any:
    """Return the module lightgbm, or raise `MissingExtra`."""
    try:
        import lightgbm
    except ImportError:
        raise MissingExtra("a model of boosted trees", "boosting") from None
    return lightgbm


class Trees:
    r"""Boosted trees that read features and return logits.

    $$ z_{ik} = b_k + \sum_t f_{tk}(x_i) $$

    with b the start of boosting and f the trees of class k. Two classes share one tree per round,
    whose sum is the log-odds of the second class: its logits are plus and minus one half of them.

    Parameters
    ----------
    text : the trees in LightGBM's own text format, as `strip_text` returns it; "" for no trees
    start : (K,) logits from which boosting started
    """

    def __init__(self, text: str, start: FloatArray) -> None:
        lightgbm = load_lightgbm()
        self.text, self.start = text, start
        self._booster: Any = lightgbm.Booster(model_str=text) if text else None

    @classmethod
    def read(cls, text: str, start: Any) -> Self:
        """Build from a text of any origin, which is checked first."""
        if text:
            check_text(text)
        trees = cls(text, _check_start(start))
        if text and trees._booster.num_model_per_iteration() != (_columns(trees.start) or (1,))[0]:
            raise InputError(
                f"start holds {len(trees.start)} numbers, but the trees are of another number of "
                "classes: pack the bundle again, or restore a copy."
            )
        return trees

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "start": self.start}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return 0 if self._booster is None else int(self._booster.current_iteration())

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return sum(int(leaves) for leaves in _LEAVES.findall(self.text))

    @property
    def n_features(self) -> int | None:
        """Number of features that the trees read; None without trees."""
        return None if self._booster is None else int(self._booster.num_feature())

    def predict(self, features: FloatArray, *, threads: int | None = None) -> FloatArray:
        """Return logits (n, K)."""
        if self._booster is None:
            return as_logits(np.zeros((len(features), *_columns(self.start))), self.start)
        scores = self._booster.predict(
            features, raw_score=True, num_threads=_threads(len(features), threads)
        )
        return as_logits(scores, self.start)

    def contributions(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return contributions (n, K, features) to the logits, and the base (K,).

        They are the Shapley values of the trees (TreeSHAP): with the base they add up to the
        logits.
        """
        if self._booster is None:
            return np.zeros((len(features), len(self.start), features.shape[1])), self.start
        answer = self._booster.predict(
            features, pred_contrib=True, num_threads=_threads(len(features), None)
        )
        values = np.asarray(answer, dtype=np.float64).reshape(
            len(features), -1, features.shape[1] + 1
        )
        base = as_logits(values[:1, :, -1].reshape(1, *_columns(self.start)), self.start)[0]
        if len(self.start) == 2:
            values = np.concatenate([-0.5 * values, 0.5 * values], axis=1)
        return values[:, :, :-1], base


def as_logits(scores: Any, start: FloatArray) -> FloatArray:
    """Return logits (n, K) from the sums of the trees and the start of boosting."""
    if len(start) > 2:
        return np.asarray(scores + start, dtype=np.float64)
    odds = np.asarray(scores, dtype=np.float64) + (start[1] - start[0])
    return np.column_stack([-0.5 * odds, 0.5 * odds])


def _columns(start: FloatArray) -> tuple[int, ...]:
    """Return the shape of the scores of a row: one number for two classes."""
    return () if len(start) == 2 else (len(start),)


def _check_start(start: Any) -> FloatArray:
    values = np.asarray(start, dtype=np.float64) if isinstance(start, list) else np.empty(0)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise InputError(
            f"start must hold a finite number for each of at least two classes, got {start!r:.200}."
        )
    return values


def _threads(n: int, wanted: int | None) -> int:
    return 1 if n < _BLOCK else wanted or usable_threads()
