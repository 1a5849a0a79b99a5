"""Selection of a threshold with a guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.thresholds.chosen import ChosenCandidate
from calibrant.thresholds.labels_needed.unreachable import build_unreachable_error
from calibrant.thresholds.measures import Measures
from calibrant.thresholds.objective import as_targets, resolve_objective
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.candidates import candidates_at_ends, fixed_candidates
from calibrant.thresholds.proof.keeping import screen_candidates
from calibrant.thresholds.proof.question import ThresholdProblem, build_problem
from calibrant.thresholds.proof.seen_labels import NO_LABEL_USE, LabelUse
from calibrant.thresholds.rates import EMPIRICAL, Cost, Rate, Target, check_confidence


def select(
    labels: Any,
    probs: Any = None,
    *,
    hold: Target | str | Iterable[Target | str] = (),
    maximise: Rate | None = None,
    minimise: Rate | Cost | None = None,
    confidence: float | None = 0.95,
    weights: Any = None,
    largest_weight: float | None = None,
    logits: Any = None,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    label_use: LabelUse = NO_LABEL_USE,
    rng: int | np.random.Generator = 0,
) -> OperatingPoint:
    r"""Choose the threshold that keeps its targets on new rows, with the stated confidence.

    Rows whose probability is at least the threshold are acted on. For a target such as precision
    :math:`P(Y=1 \mid S \ge t) \ge \tau`, walk down the ranks and test at each position k, with
    :math:`h_k` positives among the first k rows, whether

    .. math:: P(\mathrm{Bin}(k, \tau) \ge h_k) \le \alpha_k

    where the levels :math:`\alpha_k` depend only on n, :math:`\tau` and the confidence (see
    `walk`). With probability at least `confidence` every certified position keeps the target, for
    any distribution of scores and labels, at any n, ties included. Among them the best one for
    `maximise` or `minimise` is chosen; at equal recall, the one that acts on the fewest rows, since
    the additional rows would all be wrong. Recall, specificity, false positive rate and coverage
    are monotone in the threshold and need one exact test.

    It is not a promise about drifted data (see `check_transfer`), nor about scores that used these
    labels (see `LabelUse`).

    Parameters
    ----------
    labels : n labels
    probs : (n,) P(second class), or (n, K)
    hold : targets such as `precision >= 0.85`; several are held jointly
    maximise, minimise : objective among the thresholds that hold. By default recall if precision
        is held, precision if recall is held, coverage if accuracy is held
    confidence : of the promise; None for the plain empirical choice, which promises nothing
    weights : inverse inclusion probabilities of the rows, at least 1
    largest_weight : largest weight that the sampling design allows; by default the largest
        observed weight, which is correct if these rows include the rarest kind: the promise then
        states this condition
    logits : instead of probs; rows whose probability rounds to 1 stay distinct
    classes : names of the columns, when labels are names
    positive : the class that is acted on; by default the second of two, and predictions of any
        class are accepted if accuracy is held, or coverage or abstention alone
    label_use : how the ranking used these labels
    rng : seed for the random order of tied rows

    Raises
    ------
    TargetUnreachable
        if no threshold can be certified: what is missing, and how many labels are needed.

    Examples
    --------
    >>> from calibrant.testing import THRESHOLD_WORLDS
    >>> from calibrant.thresholds import precision, recall
    >>> draw = THRESHOLD_WORLDS["bimodal"].draw(2000, 0)
    >>> point = select(draw.labels, draw.probs, hold=precision >= 0.85, maximise=recall)
    >>> print(point.guarantee)
    Precision is at least 85 % for class '1', with 95 % confidence, on new rows drawn like these
    2,000.
    >>> round(point.threshold, 3), round(point["recall"].value, 3)
    (0.541, 0.589)

    References
    ----------
    Wiens (2003), A fixed sequence Bonferroni procedure (carrying levels along);
    Angelopoulos et al. (2021), Learn then Test (thresholds as hypotheses).
    """
    targets = as_targets(hold)
    if not isinstance(label_use, LabelUse):
        raise InputError(
            f"label_use must be a LabelUse, like LabelUse(candidates=10), got {label_use!r}."
        )
    named = positive is not None
    objective, sign = resolve_objective(targets, maximise, minimise, one_class=named)
    if confidence is not None:
        check_confidence(confidence, hint=EMPIRICAL)
    rates = [target.rate for target in targets] + [objective]
    problem = build_problem(
        labels,
        probs,
        logits,
        rates,
        weights=weights,
        largest_weight=largest_weight,
        classes=classes,
        positive=positive,
        rng=rng,
        promised=confidence is not None,
    )
    return solve_problem(
        problem, targets, objective, sign, confidence=confidence, label_use=label_use
    )


def solve_problem(
    problem: ThresholdProblem,
    targets: tuple[Target, ...],
    objective: Rate | Cost,
    sign: int,
    *,
    confidence: float | None,
    label_use: LabelUse = NO_LABEL_USE,
    share: float = 1.0,
) -> OperatingPoint:
    """Choose the threshold of a problem, spending `share` of the allowed error."""
    cost = next((r for r in (*(t.rate for t in targets), objective) if isinstance(r, Cost)), None)
    delta = None if confidence is None else share * (1 - confidence) / label_use.candidates
    if cost is not None and (not targets or any(t.rate is cost for t in targets)):
        candidates = fixed_candidates(problem, cost)
    else:
        candidates = candidates_at_ends(problem)
    holds = screen_candidates(problem.rows, candidates, targets, delta)
    if not holds.any():
        raise build_unreachable_error(
            problem, candidates, targets, confidence=confidence, delta=delta
        )
    values = sign * Measures(problem.rows, candidates.positions[holds]).estimate(objective)
    values = np.where(np.isnan(values), -np.inf, values)
    equals = np.flatnonzero(holds)[values == values.max()]
    chosen = int(equals[0] if _prefers_fewer_rows(objective) else equals[-1])
    verb = "maximise" if sign > 0 else "minimise"
    choice = ChosenCandidate(problem, candidates, chosen, targets, f"{verb} {objective.name}", cost)
    return choice.to_point(confidence=confidence, delta=delta, label_use=label_use)


def _prefers_fewer_rows(objective: Rate | Cost) -> bool:
    """Return whether acting on more rows at the same objective only adds errors.

    At equal recall, or an equal npv of 1, all additional rows are wrong. At equal precision or
    false positive rate some of them are correct.
    """
    return isinstance(objective, Rate) and objective.condition in ("positive", "pass")
