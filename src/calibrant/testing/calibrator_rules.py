"""Rules that every calibrator must follow, whatever it declares."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.calibrators import Calibrator, Identity
from calibrant.convert import log_odds_from_logits, log_probs_from_logits
from calibrant.errors import InputError, NotFitted
from calibrant.testing.calibrator_cases import (
    CLOSE,
    CalibratorCase,
    FloatArray,
    as_two_columns,
    degenerate_cases,
    draw_case,
    expect,
    expect_close,
    expect_equal,
    expect_refusal,
    expect_valid,
    fit_copy,
    with_bad_labels,
)

_NEAR_TIE = 1e-3
_GRID_LOG_ODDS = np.linspace(-12.0, 12.0, 97)
"""Log-odds in steps of 1/4, over a wider range than those of the rows."""

_REST_DRAWS = 5  # Random shares of the other classes with which a class is tried


def argmax(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `keeps_argmax`, also with labels that contradict the scores."""
    if not calibrator.keeps_argmax:
        return
    fresh = as_two_columns(case.fresh)
    low, high = np.sort(fresh, axis=1)[:, -2:].T
    clear = fresh[high - low > _NEAR_TIE]
    for learned, name in _fit_variants(calibrator, case, seed):
        out = learned.predict_log_proba(clear)
        rows, top = np.arange(len(clear)), clear.argmax(axis=1)
        rest = out.copy()
        rest[rows, top] = -np.inf
        lost = out[rows, top] <= rest.max(axis=1)
        expect(
            not lost.any(),
            f"{name}: logits {clear[lost][:1]} became log-probabilities {out[lost][:1]}",
        )


def ranking(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `keeps_ranking`, also with labels that contradict the scores."""
    if not calibrator.keeps_ranking or case.k > 2:
        return
    for learned, name in _fit_variants(calibrator, case, seed):
        both = learned.predict_log_proba(as_two_columns(_GRID_LOG_ODDS))
        step = np.diff(both[:, 1] - both[:, 0])
        at = int(step.argmin())
        expect(
            bool(step[at] > 0),
            f"{name}: log-odds {_GRID_LOG_ODDS[at : at + 2]} became "
            f"P(positive) {np.exp(both[at : at + 2, 1])}",
        )


def order_of_a_class(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `keeps_order_of`: the probability of the class rises with the model's, and only so."""
    rng = np.random.default_rng(seed)
    for learned, name in _fit_variants(calibrator, case, seed):
        for position in filter(learned.keeps_order_of, range(case.k)):
            odds = np.stack(
                [_new_log_odds(learned, position, rng, case.k) for _ in range(_REST_DRAWS)]
            )
            expect(
                bool((np.diff(odds[0]) > 0).all()),
                f"{name}: the probability of class {position} does not always rise",
            )
            expect(
                bool(np.ptp(odds, axis=0).max() < CLOSE),
                f"{name}: the probability of class {position} depends on the other classes",
            )


def _new_log_odds(
    learned: Calibrator, position: int, rng: np.random.Generator, k: int
) -> FloatArray:
    """Return calibrated log-odds of a class on the grid; the others share the rest at random."""
    rest = log_probs_from_logits(rng.normal(scale=2.0, size=(1, k - 1)))
    logits = np.insert(np.repeat(rest, len(_GRID_LOG_ODDS), axis=0), position, _GRID_LOG_ODDS, 1)
    odds = log_odds_from_logits(learned.predict_log_proba(logits))
    return odds[:, position] if k > 2 else odds * (1.0 if position else -1.0)


def weights(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `takes_weights`: a weight equals a repetition, or is refused."""
    if not calibrator.takes_weights:
        expect_refusal("weights", lambda: fit_copy(calibrator, case, weights=np.ones(case.n)))
        return
    times = np.random.default_rng(seed).integers(0, 4, case.n)
    repeated = fit_copy(
        calibrator, case, np.repeat(case.logits, times, axis=0), np.repeat(case.labels, times)
    )
    expect_close(
        repeated.predict_proba(case.fresh),
        fit_copy(calibrator, case, weights=times).predict_proba(case.fresh),
    )


def absent_class(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `needs_every_class`: rows without the last class are accepted or refused.

    With two classes a single one remains, which any method may refuse.
    """
    present = case.labels < case.k - 1
    logits, labels = case.logits[present], case.labels[present]
    if calibrator.needs_every_class:
        expect_refusal("an absent class", lambda: fit_copy(calibrator, case, logits, labels))
        return
    try:
        learned = fit_copy(calibrator, case, logits, labels)
    except InputError:
        if case.k == 2:
            return
        raise
    expect_valid(learned, case.fresh)


def _fit_variants(
    calibrator: Calibrator, case: CalibratorCase, seed: int
) -> Iterator[tuple[Calibrator, str]]:
    """Yield fits on good, random and contradicting labels; refused ones are skipped."""
    yield fit_copy(calibrator, case), case.name
    for bad in with_bad_labels(case, seed):
        try:
            yield fit_copy(calibrator, bad), bad.name
        except InputError:
            continue


Rule = Callable[[Calibrator, CalibratorCase, int], None]
_NAMES = ("north", "east", "south", "west", "middle", "above", "below")
_HUGE = 1e4
_LARGE_SAMPLE = 4000
_HARM = 0.02


def parameters(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check get_params, set_params and clone."""
    params = calibrator.get_params(deep=False)
    expect(calibrator.set_params(**params) is calibrator, "set_params did not return the object")
    learned = fit_copy(calibrator, case)
    copy = clone(learned)
    expect(repr(copy) == repr(calibrator), f"{calibrator!r} became {copy!r}")
    try:
        copy.predict_proba(case.fresh)
    except NotFitted:
        return
    raise AssertionError("the clone of a fitted calibrator is fitted")


def returns_itself(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that fit returns the calibrator."""
    copy = clone(calibrator)
    expect(copy.fit(case.logits, case.labels) is copy, "it returned something else")


def unfitted(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that every method raises NotFitted before fit."""
    copy = clone(calibrator)
    methods: dict[str, Callable[[], object]] = {
        "predict_proba": lambda: copy.predict_proba(case.fresh),
        "predict_log_proba": lambda: copy.predict_log_proba(case.fresh),
        "predict": lambda: copy.predict(case.fresh),
        "to_dict": copy.to_dict,
    }
    for name, call in methods.items():
        try:
            call()
        except NotFitted:
            continue
        raise AssertionError(f"{name} did not raise NotFitted")


def probabilities(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that probabilities are valid, and that predict follows them."""
    learned = fit_copy(calibrator, case)
    expect_valid(learned, case.fresh)
    log_probs = learned.predict_log_proba(case.fresh)
    best = log_probs > np.log(0.5) if case.k == 2 else log_probs.argmax(axis=1)
    expect(
        np.array_equal(learned.predict(case.fresh), best.astype(np.int64)),
        "predict does not return the most probable class",
    )


def arguments(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that arrays are not modified."""
    arrays = {
        "logits": case.logits.copy(),
        "labels": case.labels.copy(),
        "weights": np.ones(case.n),
    }
    if not calibrator.takes_weights:
        del arrays["weights"]
    originals = {name: array.copy() for name, array in arrays.items()}
    learned = clone(calibrator)
    learned.fit(**arrays)
    fresh = case.fresh.copy()
    learned.predict_proba(fresh)
    for name, array in arrays.items():
        expect(np.array_equal(array, originals[name]), f"fit changed {name}")
    expect(np.array_equal(fresh, case.fresh), "predict_proba changed logits")


def rows_alone(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that the prediction of a row does not depend on other rows."""
    learned = fit_copy(calibrator, case)
    alone = [learned.predict_proba(case.fresh[i : i + 1]) for i in range(5)]
    expect_close(learned.predict_proba(case.fresh)[:5], np.concatenate(alone))


def same_bits(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that the same input gives the same result."""
    first, second = (fit_copy(calibrator, case).predict_log_proba(case.fresh) for _ in range(2))
    expect_equal(first, second)


def refit(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that a second fit forgets the first, even one with other classes."""
    again = fit_copy(calibrator, draw_case("binary", case.n, seed + 1))
    again.fit(case.logits, case.labels)
    expect_equal(
        fit_copy(calibrator, case).predict_log_proba(case.fresh),
        again.predict_log_proba(case.fresh),
    )


def order_of_rows(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that rows may be in any order, also sorted by label."""
    probs = fit_copy(calibrator, case).predict_proba(case.fresh)
    mixed = np.random.default_rng(seed).permutation(case.n)
    for order in (mixed, np.argsort(-case.labels)):
        other = fit_copy(calibrator, case, case.logits[order], case.labels[order])
        expect_close(probs, other.predict_proba(case.fresh))


def order_of_classes(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that more than two classes may be in any order."""
    if case.k == 2:
        return
    order = np.roll(np.arange(case.k), 2)
    moved = fit_copy(calibrator, case, case.logits[:, order], np.argsort(order)[case.labels])
    expect_close(
        fit_copy(calibrator, case).predict_proba(case.fresh)[:, order],
        moved.predict_proba(case.fresh[:, order]),
    )


def row_constants(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that a constant added to all logits of a row has no effect."""
    rng = np.random.default_rng(seed)
    logits, fresh = (
        as_two_columns(z) + rng.integers(-60, 60, len(z))[:, None]
        for z in (case.logits, case.fresh)
    )
    expect_close(
        fit_copy(calibrator, case).predict_proba(as_two_columns(case.fresh)),
        fit_copy(calibrator, case, logits).predict_proba(fresh),
    )


def one_or_two_columns(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that log-odds (n,) and logits (n, 2) mean the same in fit and in predict."""
    if case.k > 2:
        return
    pair, fresh = (np.column_stack([np.zeros_like(z), z]) for z in (case.logits, case.fresh))
    narrow, wide = fit_copy(calibrator, case), fit_copy(calibrator, case, pair)
    probs = narrow.predict_proba(case.fresh)
    for learned in (narrow, wide):
        expect_close(probs, learned.predict_proba(case.fresh))
        expect_close(np.column_stack([1 - probs, probs]), learned.predict_proba(fresh))


def lists(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that lists give the same result as arrays."""
    learned = fit_copy(calibrator, case, case.logits.tolist(), case.labels.tolist())
    expect_equal(
        fit_copy(calibrator, case).predict_proba(case.fresh),
        learned.predict_proba(case.fresh.tolist()),
    )


def single_precision(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that float32 logits are accepted and computed in float64."""
    logits, fresh = case.logits.astype(np.float32), case.fresh.astype(np.float32)
    wide = fit_copy(calibrator, case, logits.astype(np.float64))
    expect_close(
        wide.predict_proba(fresh.astype(np.float64)),
        fit_copy(calibrator, case, logits).predict_proba(fresh),
    )


def names(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check class names: in the order of `classes`, else in sorted order."""
    expected = fit_copy(calibrator, case).predict_log_proba(case.fresh)
    class_names = np.array(_NAMES[: case.k])
    for order, classes in (
        (class_names, class_names.tolist()),
        (np.sort(class_names), None),
    ):
        learned = fit_copy(calibrator, case, labels=order[case.labels], classes=classes)
        expect(
            learned.classes_.tolist() == order.tolist(),
            f"classes {order.tolist()} became {learned.classes_.tolist()}",
        )
        expect_equal(expected, learned.predict_log_proba(case.fresh))
        best = expected > np.log(0.5) if case.k == 2 else expected.argmax(axis=1)
        expect(
            np.array_equal(learned.predict(case.fresh), order[best.astype(np.int64)]),
            "predict does not return class names",
        )


def huge_logits(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that logits of 10,000 neither overflow nor warn."""
    sharp = case.logits * (_HUGE / np.abs(case.logits).max())
    mixed = case.logits.copy()
    mixed[::10] = sharp[::10]
    rivals = np.sort(as_two_columns(sharp), axis=1)
    rivals[:, -2] = rivals[:, -1] - 0.01  # two classes close together, the others far away
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fit_on in (case.logits, sharp, mixed):
            learned = fit_copy(calibrator, case, fit_on)
            for logits in (sharp, mixed, rivals):
                expect_valid(learned, logits)


def no_optimum(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that data without a finite optimum give valid probabilities or are refused."""
    for rows in degenerate_cases(case, seed):
        try:
            learned = fit_copy(calibrator, rows)
        except InputError:
            continue
        try:
            expect_valid(learned, case.fresh)
        except AssertionError as broken:
            raise AssertionError(f"{rows.name}: {broken}") from None


def bad_input(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that fit and predict refuse bad input with an InputError."""
    logits, labels = case.logits, case.labels
    broken = {name: logits.copy() for name in ("NaN", "infinity")}
    broken["NaN"].flat[7] = np.nan
    broken["infinity"].flat[7] = np.inf
    few = max(calibrator.fewest_rows - 1, 0)
    pairs = {
        **{f"{name} in fit": (array, labels) for name, array in broken.items()},
        "no rows in fit": (logits[:0], labels[:0]),
        "one label too few": (logits, labels[:-1]),
        "a label beyond the classes": (logits, np.where(np.arange(case.n) == 3, case.k, labels)),
        "a negative label": (logits, np.where(np.arange(case.n) == 3, -1, labels)),
        "fewer rows than fewest_rows": (logits[:few], labels[:few]),
    }
    for what, pair in pairs.items():
        expect_refusal(what, lambda pair=pair: fit_copy(calibrator, case, *pair))  # type: ignore[misc]
    learned = fit_copy(calibrator, case)
    wide = np.column_stack([case.fresh, case.fresh])
    inputs = {
        **{f"{name} in predict": array for name, array in broken.items()},
        "no rows in predict": logits[:0],
        "another number of classes": np.column_stack([wide, wide]) if case.k == 2 else wide,
    }
    for what, array in inputs.items():
        expect_refusal(what, lambda array=array: learned.predict_proba(array))  # type: ignore[misc]


def one_row(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that a single row gives valid probabilities or is refused."""
    try:
        learned = fit_copy(calibrator, case, case.logits[:1], case.labels[:1])
    except InputError:
        return
    expect_valid(learned, case.fresh)


def saving(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that a calibrator survives strict JSON bit for bit."""
    learned = fit_copy(
        calibrator, case, labels=np.array(_NAMES)[case.labels], classes=_NAMES[: case.k]
    )
    text = json.dumps(learned.to_dict(), allow_nan=False)
    for loader in (Calibrator, type(calibrator)):
        loaded = loader.from_dict(json.loads(text))
        expect(loaded.classes_.tolist() == learned.classes_.tolist(), "classes were lost")
        expect_equal(learned.predict_log_proba(case.fresh), loaded.predict_log_proba(case.fresh))
        expect(json.dumps(loaded.to_dict()) == text, "it is saved differently after loading")


def damage(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that a saved calibrator is refused if a parameter is missing or not a number."""
    saved = fit_copy(calibrator, case).to_dict()
    newer = {**saved, "format": saved["format"] + 1}
    expect_refusal("a newer format", lambda: Calibrator.from_dict(newer))
    for name in saved["params"]:
        values: tuple[Any, ...] = ("missing", None, {})
        for what in values:
            params = {**saved["params"], name: what}
            if what == "missing":
                del params[name]
            broken = {**saved, "params": params}
            expect_refusal(
                f"{name!r} that is {what}",
                lambda broken=broken: Calibrator.from_dict(broken),  # type: ignore[misc]
            )


def accepts_weights(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check that weights are accepted and give valid probabilities."""
    times = np.random.default_rng(seed).integers(0, 4, case.n)
    expect_valid(fit_copy(calibrator, case, weights=times), case.fresh)


def no_harm(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check the log loss of fresh rows after fitting on a large sample."""
    many = draw_case(case.name, _LARGE_SAMPLE, seed)
    before, after = (_log_loss(fit_copy(c, many), many) for c in (Identity(), calibrator))
    expect(after <= before + _HARM, f"log loss {before:.4f} became {after:.4f}")


def _log_loss(learned: Calibrator, case: CalibratorCase) -> float:
    log_probs = learned.predict_log_proba(as_two_columns(case.fresh))
    return -float(log_probs[np.arange(len(log_probs)), case.fresh_labels].mean())


REPETITION = "a weight must equal a repetition, or be refused"

RULES: dict[str, Rule] = {
    "clone, get_params and set_params must work": parameters,
    "arguments must not be modified": arguments,
    "fit must return the calibrator": returns_itself,
    "every method must raise NotFitted before fit": unfitted,
    "probabilities must be finite, within [0, 1] and sum to 1": probabilities,
    "the same input must give the same result": same_bits,
    "a second fit must forget the first": refit,
    "lists must be accepted": lists,
    "float32 must be accepted and computed in float64": single_precision,
    "class names must be accepted": names,
    "the prediction of a row must not depend on other rows": rows_alone,
    "the order of rows must not matter": order_of_rows,
    "the order of classes must not matter": order_of_classes,
    "(n,) and (n, 2) must agree": one_or_two_columns,
    "a constant added to a row's logits must have no effect": row_constants,
    "logits of 10,000 must be accepted without a warning": huge_logits,
    "data without an optimum must give valid probabilities or be refused": no_optimum,
    "one row must give valid probabilities or be refused": one_row,
    "bad input must be refused": bad_input,
    "keeps_argmax must be true if declared": argmax,
    "keeps_ranking must be true if declared": ranking,
    "keeps_order_of must be true of each class that it names": order_of_a_class,
    REPETITION: weights,
    "an absent class must be accepted or refused": absent_class,
    "a saved calibrator must load": saving,
    "a damaged file must be refused": damage,
}
"""All rules by the text in their error messages, in the order of checking."""
