"""The public contract of calibrators, as a check that a third party can run too."""

from __future__ import annotations

import warnings

from calibrant.calibrators import Calibrator
from calibrant.testing.calibrator_cases import Case, drawn
from calibrant.testing.calibrator_rules import REPETITION, RULES, Rule, no_harm, weights_are_taken

__all__ = ["check_calibrator"]

_ROWS = 300


def check_calibrator(
    calibrator: Calibrator,
    *,
    multiclass: bool = True,
    improves: bool = True,
    cross_validates: bool = False,
    seed: int = 0,
) -> None:
    """Check that a calibrator keeps the house contract.

    What it declares must be true: `keeps_argmax`, `keeps_ranking`, `takes_weights`,
    `needs_every_class` and `fewest_rows`. Its answer must not depend on the order of rows or of
    more than two classes, on a constant added to a row's logits, on (n,) or (n, 2), on lists or
    arrays, on names or numbers of classes. It must bear huge logits, separated, constant and
    random ones; give probabilities that are finite and sum to 1; survive strict JSON to the last
    bit; follow scikit-learn's rules of parameters; leave its arguments alone; forget an earlier
    fit; refuse bad input with an `InputError`; and not raise the log loss of a large sample. A
    `RuntimeWarning` anywhere is a fault.

    It is not a proof of calibration: a method can keep all of this and be of little use.

    Parameters
    ----------
    calibrator : an unfitted calibrator, which is cloned before every fit
    multiclass : whether it takes more than two classes
    improves : whether it is meant to lower the log loss of a miscalibrated model; a correction
        of priors, for one, is not
    cross_validates : whether it holds out rows to choose something; then copies of a row fall into
        different parts, and a weight need not equal a repetition
    seed : of the rows it is tried on

    Raises
    ------
    AssertionError
        naming the rule that is broken.

    Examples
    --------
    >>> from calibrant.calibrators import TemperatureScaling
    >>> check_calibrator(TemperatureScaling())
    """
    rules = dict(RULES)
    if cross_validates and calibrator.takes_weights:
        del rules[REPETITION]
        rules["weights must be taken"] = weights_are_taken
    if improves:
        rules["a large sample must not raise the log loss"] = no_harm
    rows = max(_ROWS, 3 * calibrator.fewest_rows)
    for world in ["binary", "tied"] + (["multiclass"] if multiclass else []):
        case = drawn(world, rows, seed)
        for text, rule in rules.items():
            _check(text, rule, calibrator, case, seed)


def _check(text: str, rule: Rule, calibrator: Calibrator, case: Case, seed: int) -> None:
    """Run one rule; whatever goes wrong in it is a broken rule."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            rule(calibrator, case, seed)
    except AssertionError as broken:
        raise AssertionError(f"{text} ({case.name}): {broken}") from broken.__cause__
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        raise AssertionError(f"{text} ({case.name}): {detail}") from error
