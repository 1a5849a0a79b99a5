"""Tables with a rare class, and the effect of resampling, weights and logit adjustment."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.calibrators import Identity, PlattScaling, TemperatureScaling
from calibrant.data.row_files import read_rows
from calibrant.data.splitting import split_rows
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics import evaluate, f1_macro, recall
from reproductions.data_sets import find
from reproductions.fitting import Fitted
from reproductions.parts import Part, Parts

__all__ = ["long_tail", "made_rare", "rare_class"]

_SHARES = (50, 10, 15, 25)
_MADE_ROWS = 800
_WAYS = {"raw": Identity, "temperature": TemperatureScaling, "platt": PlattScaling}
_FIGURES = ("ece_em", "ece_ew", "ece_debiased", "nll", "brier", "auroc", "auprc")


def long_tail(reading: Mapping[str, Any]) -> Parts:
    """Return the parts of a table with a rare class, 50 : 10 : 15 : 25, each class in proportion.

    Every part has the class frequencies of the data: what a method changes about them it changes in
    training, and the test rows tell what that did to the probabilities.

    Parameters
    ----------
    reading : `table`, "mammography" (2.3 % are calcifications) or "credit_default" (22 % default);
        `rows`, how many at most (all); `made`, whether to make rows up, of which the true
        probabilities are then known

    Examples
    --------
    >>> parts = long_tail({"made": True, "rows": 800})
    >>> parts.sizes(), parts.classes
    ({'train': 400, 'steer': 80, 'calib': 120, 'test': 200}, ('common', 'rare'))
    """
    if reading.get("made"):
        part = made_rare(reading.get("rows") or _MADE_ROWS)
        return _split(part, ("common", "rare"), "The rows are made up.")
    name = reading.get("table", "mammography")
    if name not in _TABLES:
        raise InputError(f"table must be one of {', '.join(_TABLES)}, got {name!r}.")
    part, classes, note = _TABLES[name]()
    rows = reading.get("rows")
    if rows is not None and rows < len(part):
        rows_kept = split_rows(part.labels, (rows, len(part) - rows), seed=1)[0]
        part = _taken(part, rows_kept)
    return _split(part, classes, note)


def made_rare(n: int, *, seed: int = 0) -> Part:
    r"""Make rows up whose true probabilities are known: about one in eleven is rare.

    $$ \log \frac{\eta}{1 - \eta} = -3.7 + 1.5 x_1 - x_2 + [\text{shop} = \text{new}] $$

    $x_1$ and $x_2$ are standard normal, and three shops are equally frequent.

    Parameters
    ----------
    n : number of rows
    seed : of the draw

    Examples
    --------
    >>> part = made_rare(100_000)
    >>> print(f"{part.labels.mean():.2f} {part.posterior[:, 1].mean():.2f}")
    0.09 0.09
    """
    draw = np.random.default_rng(seed)
    first, second = draw.normal(size=(2, n))
    shop = draw.choice(["new", "old", "web"], n)
    odds = -3.7 + 1.5 * first - second + (shop == "new")
    rare = 1.0 / (1.0 + np.exp(-odds))
    table = pa.table({"first": first, "second": second, "shop": shop.tolist()})
    labels = (draw.random(n) < rare).astype(np.int64)
    return Part(table, labels, np.column_stack([1.0 - rare, rare]))


def rare_class(fitted: Fitted) -> dict[str, Any]:
    """Return the results of the rarest class: its recall and the calibration of its scores.

    Three times: for the model as it is, after temperature scaling, and after Platt scaling, whose
    offset can take back a moved prior; both are fitted on the calib rows. Given are the recall of
    each class and the macro F1 of the most probable class, figures of the rare class's own
    probability (calibration errors with interval and floor, ranking), and its mean beside the share
    of rows that are of it. `log_shift` is what the loss and re-sampling moved the logits by, and
    `corrected` says whether it has been taken off.

    Parameters
    ----------
    fitted : the run
    """
    parts, n_classes = fitted.parts, len(fitted.parts.classes)
    rare = int(np.bincount(parts.train.labels, minlength=n_classes).argmin())
    figures: dict[str, Any] = {
        "class": parts.classes[rare],
        "place": rare,
        "corrected": bool(fitted.model.correct_prior),
        "log_shift": _log_shift(fitted.model),
    }
    for way, method in _WAYS.items():
        calibrator = method().fit(
            fitted.logits["calib"], parts.calib.labels, classes=range(n_classes)
        )
        figures[way] = _figures(
            parts.test.labels, calibrator.predict_proba(fitted.logits["test"]), rare
        )
    return figures


def _figures(labels: IntArray, probs: FloatArray, rare: int) -> dict[str, Any]:
    classes = range(probs.shape[1])
    own = evaluate((labels == rare).astype(np.int64), probs[:, rare], target="positive")
    fields = {name: own[name].to_dict() for name in _FIGURES}
    return {
        "recall": recall(labels, probs, classes=classes).tolist(),
        "f1_macro": f1_macro(labels, probs, classes=classes),
        **{
            name: {key: one.get(key) for key in ("value", "low", "high", "floor")}
            for name, one in fields.items()
        },
        "mean_score": float(probs[:, rare].mean()),
        "event_rate": float((labels == rare).mean()),
        "verdict": own.verdict.text,
    }


def _log_shift(model: Any) -> list[float] | None:
    """Return what a model was moved by, whether or not it takes that off."""
    willing = copy.copy(model)
    willing.correct_prior = True
    shift = willing.log_shift_
    return None if shift is None else shift.tolist()


def _mammography() -> tuple[Part, tuple[str, ...], str]:
    table = read_rows(find("mammography", "mammography.csv.gz")[0])
    note = "3,329 of the 11,183 rows have the same features, those of a picture without a spot."
    return _part(table, "label"), ("no calcification", "calcification"), note


def _credit_default() -> tuple[Part, tuple[str, ...], str]:
    file = find("credit_default", "credit_default.csv.gz")[0]
    table = read_rows(file, texts=["SEX", "EDUCATION", "MARRIAGE"]).drop_columns(["ID"])
    note = "Sex, education and marriage are codes, so they are read as categories."
    return _part(table, "default payment next month"), ("paid", "default"), note


_TABLES: Mapping[str, Callable[[], tuple[Part, tuple[str, ...], str]]] = {
    "mammography": _mammography,
    "credit_default": _credit_default,
}


def _part(table: pa.Table, label: str) -> Part:
    return Part(table.drop_columns([label]), table[label].to_numpy().astype(np.int64))


def _split(part: Part, classes: tuple[str, ...], note: str) -> Parts:
    places = split_rows(part.labels, _SHARES, seed=1)
    train, steer, calib, test = (_taken(part, at) for at in places)
    return Parts(train, steer, calib, test, classes, note=note)


def _taken(part: Part, places: IntArray) -> Part:
    posterior = None if part.posterior is None else part.posterior[places]
    return Part(part.inputs.take(pa.array(places)), part.labels[places], posterior)
