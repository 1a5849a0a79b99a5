"""Contract check for calibrators, usable by third parties."""

from __future__ import annotations

import warnings

from calibrant.calibrators import Calibrator
from calibrant.testing.calibrator_cases import CalibratorCase, draw_case
from calibrant.testing.calibrator_rules import REPETITION, RULES, Rule, accepts_weights, no_harm

_ROWS = 300


def check_calibrator(
    calibrator: Calibrator,
    *,
    multiclass: bool = True,
    improves: bool = True,
    cross_validates: bool = False,
    seed: int = 0,
) -> None:
    """Check that a calibrator follows the calibrator contract.

    Its declarations must be true: `keeps_argmax`, `keeps_ranking`, `keeps_order_of`,
    `takes_weights`, `needs_every_class` and `fewest_rows`. Its predictions must not depend on the
    order of rows or of more than two classes, on a constant added to a row's logits, on (n,) or
    (n, 2), on lists or arrays, on class names or numbers. It must handle huge, separated, constant
    and random logits; return finite probabilities that sum to 1; survive strict JSON bit for bit;
    follow scikit-learn's parameter rules; not modify its arguments; forget an earlier fit; refuse
    bad input with an `InputError`; and not raise the log loss of a large sample. Any
    `RuntimeWarning` is a failure.

    It is not a proof of calibration: a method can pass and still be of little use.

    Parameters
    ----------
    calibrator : an unfitted calibrator, which is cloned before every fit
    multiclass : whether it supports more than two classes
    improves : whether it should lower the log loss of a miscalibrated model; a prior correction,
        for example, need not
    cross_validates : whether it uses held-out rows internally; then copies of a row fall into
        different folds, and a weight need not equal a repetition
    seed : seed of the test data

    Raises
    ------
    AssertionError
        naming the violated rule.

    Examples
    --------
    >>> from calibrant.calibrators import TemperatureScaling
    >>> check_calibrator(TemperatureScaling())
    """
    rules = dict(RULES)
    if cross_validates and calibrator.takes_weights:
        del rules[REPETITION]
        rules["weights must be accepted"] = accepts_weights
    if improves:
        rules["a large sample must not raise the log loss"] = no_harm
    rows = max(_ROWS, 3 * calibrator.fewest_rows)
    for world in ["binary", "tied"] + (["multiclass"] if multiclass else []):
        case = draw_case(world, rows, seed)
        for text, rule in rules.items():
            _run_rule(text, rule, calibrator, case, seed)


def _run_rule(
    text: str, rule: Rule, calibrator: Calibrator, case: CalibratorCase, seed: int
) -> None:
    """Run one rule; any exception counts as a violation."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            rule(calibrator, case, seed)
    except AssertionError as violation:
        raise AssertionError(f"{text} ({case.name}): {violation}") from violation.__cause__
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        raise AssertionError(f"{text} ({case.name}): {detail}") from error
