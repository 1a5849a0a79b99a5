"""Options of boosting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

from calibrant.boosting.tree_text import DEEPEST, MOST_LEAVES
from calibrant.errors import InputError

_SPLIT = 20
"""Fewest parts into which the train rows can be split."""

_ONE_BY_ONE = 64
"""Categories up to which a split sets one apart; columns with more are split into two groups. The
same number is how many train rows a category must have on average for it: a category that stands
alone is only split off if it fills a leaf, while small ones fill it together. Groups of large
categories fit more noise: on Adult their log loss is higher."""

_FEW = 8  # Categories that are always set apart one by one

ChooseBy = Literal["refinement", "nll", "f1", "last"]


@dataclass(frozen=True)
class BoostingOptions:
    """Checked options of a run; see `BoostingClassifier`."""

    n_estimators: int
    learning_rate: float
    num_leaves: int
    min_child_samples: int
    reg_lambda: float
    colsample_bytree: float
    subsample: float
    cat_smooth: float
    max_bin: int
    evaluate_every: int
    patience: int | None
    min_delta: float
    choose_by: ChooseBy
    seed: int
    n_jobs: int

    def __post_init__(self) -> None:
        for name, (rule, holds) in _RULES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not holds(value):
                raise InputError(f"{name} must be {rule}, got {value!r}.")

    def parameters(self, n: int, n_classes: int) -> dict[str, Any]:
        """Return the parameters of LightGBM for n train rows.

        Few rows have smaller leaves than `min_child_samples`, so that they can be split. A group of
        categories needs as many rows as any leaf; LightGBM would want 100 of them.
        """
        classes = {} if n_classes == 2 else {"num_class": n_classes}
        least = max(1, min(self.min_child_samples, n // _SPLIT))
        return classes | {
            "objective": "none",
            "metric": "None",
            "boost_from_average": False,
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "max_depth": DEEPEST,
            "min_data_in_leaf": least,
            "lambda_l2": self.reg_lambda,
            "feature_fraction": self.colsample_bytree,
            "bagging_fraction": self.subsample,
            "bagging_freq": 1 if self.subsample < 1 else 0,
            "cat_smooth": self.cat_smooth,
            "min_data_per_group": least,
            "max_cat_to_onehot": max(_FEW, min(_ONE_BY_ONE, n // _ONE_BY_ONE)),
            "max_bin": self.max_bin,
            "seed": self.seed % 2**31,
            "feature_pre_filter": False,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": self.n_jobs,
            "verbosity": -1,
        }


def _whole(low: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Integral) and int(value) >= low


def _number(low: float, high: float, *, closed: bool = True) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        number = float(value) if isinstance(value, Real) else math.nan
        return number <= high and (low <= number if closed else low < number)

    return holds


_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "n_estimators": ("a whole number of at least 1", _whole(1)),
    "learning_rate": ("a number above 0, up to 1", _number(0.0, 1.0, closed=False)),
    "num_leaves": (
        f"a whole number from 2 to {MOST_LEAVES}",
        lambda v: _whole(2)(v) and v <= MOST_LEAVES,
    ),
    "min_child_samples": ("a whole number of at least 1", _whole(1)),
    "reg_lambda": ("a number of at least 0", _number(0.0, 1e30)),
    "colsample_bytree": ("a number above 0, up to 1", _number(0.0, 1.0, closed=False)),
    "subsample": ("a number above 0, up to 1", _number(0.0, 1.0, closed=False)),
    "cat_smooth": ("a number of at least 0", _number(0.0, 1e30)),
    "max_bin": ("a whole number from 2 to 65535", lambda v: _whole(2)(v) and v <= 65535),
    "evaluate_every": ("a whole number of at least 1", _whole(1)),
    "patience": ("None or a whole number of at least 1", lambda v: v is None or _whole(1)(v)),
    "min_delta": ("a number of at least 0", _number(0.0, 1e30)),
    "choose_by": (f"one of {', '.join(get_args(ChooseBy))}", lambda v: v in get_args(ChooseBy)),
    "seed": ("a whole number of at least 0", _whole(0)),
    "n_jobs": ("None, -1 or a whole number of at least 1", _whole(1)),
}
