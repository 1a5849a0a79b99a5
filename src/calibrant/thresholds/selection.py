"""Choosing a threshold that keeps a promise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.thresholds.checks import EMPIRICAL, check_confidence
from calibrant.thresholds.chosen import Chosen
from calibrant.thresholds.labels_needed.unreachable import unreachable
from calibrant.thresholds.measures import Measures
from calibrant.thresholds.objective import as_targets, objective_of
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.candidates import candidates_at_ends, fixed_candidates
from calibrant.thresholds.proof.keeping import kept_candidates
from calibrant.thresholds.proof.question import Question, put_question
from calibrant.thresholds.proof.seen_labels import NOTHING_SEEN, Seen
from calibrant.thresholds.rates import Cost, Rate, Target

__all__ = ["answer", "select"]


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
    seen: Seen = NOTHING_SEEN,
    rng: int | np.random.Generator = 0,
) -> OperatingPoint:
    r"""Choose the threshold that keeps its targets on new rows, with the stated confidence.

    Rows whose probability is at least the threshold are acted on. For a target such as precision
    :math:`P(Y=1 \mid S \ge t) \ge \tau`, walk down the ranks and test at each position k, with
    :math:`h_k` positives among the first k rows, whether

    .. math:: P(\mathrm{Bin}(k, \tau) \ge h_k) \le \alpha_k

    where the levels :math:`\alpha_k` are laid out by n, :math:`\tau` and the confidence alone (see
    `walk`). With probability at least `confidence` every position that is certified keeps the
    target, for any distribution of scores and labels, at any n, ties included; among them the one
    is taken that is best for `maximise` or `minimise`; of those with the same recall the one that
    acts on fewest rows, for further ones would all be wrong. Recall, specificity, false positive
    rate and coverage only move one way with the threshold, and need one exact test.

    It is not a promise about drifted data (see `check_transfer`), nor for scores that were made
    with the help of these labels (see `Seen`).

    Parameters
    ----------
    labels : n labels
    probs : (n,) P(second class), or (n, K)
    hold : targets such as `precision >= 0.85`; several are held together
    maximise, minimise : what to make best among thresholds that hold. By default recall where
        precision is held, precision where recall is held, coverage where accuracy is held
    confidence : of the promise; None for the plain empirical choice, which promises nothing
    weights : inverse inclusion probabilities of the rows, at least 1
    largest_weight : the most that any row could weigh by the design; by default the largest weight
        given, which is right where rows of the rarest kind are among these: the promise then says
        that it needs this
    logits : instead of probs; rows whose probability has rounded to 1 stay apart
    classes : names behind the columns, when labels are names
    positive : the class that is acted on; by default the second of two, and predictions of any
        class are accepted where accuracy is held, or coverage or abstention alone
    seen : what the ranking has seen of these labels
    rng : seed of the random order of tied rows

    Raises
    ------
    TargetUnreachable
        where no threshold can be certified: what is missing, and how many labels would do.

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
    Wiens (2003), A fixed sequence Bonferroni procedure (levels that are carried along);
    Angelopoulos et al. (2021), Learn then Test (thresholds as hypotheses).
    """
    targets = as_targets(hold)
    if not isinstance(seen, Seen):
        raise InputError(f"seen must be a Seen, like Seen(candidates=10), got {seen!r}.")
    named = positive is not None
    objective, sign = objective_of(targets, maximise, minimise, one_class=named)
    if confidence is not None:
        check_confidence(confidence, hint=EMPIRICAL)
    asked = [target.rate for target in targets] + [objective]
    question = put_question(
        labels,
        probs,
        logits,
        asked,
        weights=weights,
        largest_weight=largest_weight,
        classes=classes,
        positive=positive,
        rng=rng,
        promised=confidence is not None,
    )
    return answer(question, targets, objective, sign, confidence=confidence, seen=seen)


def answer(
    question: Question,
    targets: tuple[Target, ...],
    objective: Rate | Cost,
    sign: int,
    *,
    confidence: float | None,
    seen: Seen = NOTHING_SEEN,
    share: float = 1.0,
) -> OperatingPoint:
    """Choose the threshold for a question; `share` of the allowed error may be spent on it."""
    cost = next((r for r in (*(t.rate for t in targets), objective) if isinstance(r, Cost)), None)
    delta = None if confidence is None else share * (1 - confidence) / seen.candidates
    if cost is not None and (not targets or any(t.rate is cost for t in targets)):
        found = fixed_candidates(question, cost)
    else:
        found = candidates_at_ends(question)
    kept = kept_candidates(question.rows, found, targets, delta)
    if not kept.any():
        raise unreachable(question, found, targets, confidence=confidence, delta=delta)
    values = sign * Measures(question.rows, found.positions[kept]).estimate(objective)
    values = np.where(np.isnan(values), -np.inf, values)
    equals = np.flatnonzero(kept)[values == values.max()]
    chosen = int(equals[0] if _gains_nothing(objective) else equals[-1])
    verb = "maximise" if sign > 0 else "minimise"
    made = Chosen(question, found, chosen, targets, f"{verb} {objective.name}", cost)
    return made.point(confidence=confidence, delta=delta, seen=seen)


def _gains_nothing(objective: Rate | Cost) -> bool:
    """Return whether a threshold that acts on more rows, at the same objective, is only more wrong.

    At the same recall, or the same npv of 1, all further rows are wrong ones. At the same precision
    or false positive rate there are right ones among them.
    """
    return isinstance(objective, Rate) and objective.given in ("positive", "pass")
