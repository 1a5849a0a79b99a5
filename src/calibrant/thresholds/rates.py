"""Rates and targets: conditional probabilities that a threshold is held to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any, ClassVar, Literal

from calibrant.errors import InputError
from calibrant.results import Interval

EMPIRICAL = "0.95 is usual, and None gives the plain empirical choice"
"""Hint for functions that also accept `confidence=None`."""


def check_confidence(confidence: Any, *, hint: str = "0.95 is usual") -> None:
    """Raise `InputError` unless the confidence is a number strictly between 0 and 1."""
    check_between_0_and_1(confidence, "confidence", hint)


def check_between_0_and_1(value: Any, name: str, hint: str) -> None:
    """Raise `InputError` unless the value is a number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1, got {value!r}: {hint}.")


@dataclass(frozen=True)
class RateValue:
    """A rate at the threshold, measured on the rows that chose it.

    Parameters
    ----------
    value : the estimate; None if no row meets the condition
    interval : valid for a threshold fixed beforehand
    n : rows that meet the condition; with weights their effective number
    """

    value: float | None
    interval: Interval | None
    n: float

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape."""
        span = self.interval
        out: dict[str, Any] = {"value": self.value, "low": None, "high": None, "n": self.n}
        if span is not None:
            out |= {"low": span.low, "high": span.high, "interval_method": span.method}
        return out

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], confidence: float) -> RateValue:
        """Rebuild from `to_dict`."""
        span = None
        if saved["low"] is not None:
            method = str(saved.get("interval_method", ""))
            span = Interval(float(saved["low"]), float(saved["high"]), confidence, method)
        value = None if saved["value"] is None else float(saved["value"])
        return cls(value, span, saved["n"])


Event = Literal["positive", "negative", "act", "pass"]
Condition = Literal["positive", "negative", "act", "pass", "all"]
Sense = Literal[">=", "<="]

LARGEST_COST = 1e12  # Beyond this, sums of costs lose their meaning in float64


@dataclass(frozen=True)
class Rate:
    """A share of rows: the frequency of an event among the rows that meet a condition.

    A row is acted on when its score reaches the threshold, and passed over otherwise. Where the
    score is the confidence in the predicted class, `positive` means a correct prediction.

    `precision >= 0.85` makes a `Target`.

    Parameters
    ----------
    name : as in files and on the command line
    event, condition : the share is P(event | condition)
    words : the share in words
    of : the scores it applies to: those of one `class`, the `top-label` ones, or `any`

    Examples
    --------
    >>> precision >= 0.85
    Target('precision>=0.85')
    >>> print(recall.words)
    share of the positive rows that is acted on
    """

    name: str
    event: Event
    condition: Condition
    words: str
    of: Literal["class", "top-label", "any"] = "class"

    def __ge__(self, value: float) -> Target:
        return Target(self, ">=", value)

    def __le__(self, value: float) -> Target:
        return Target(self, "<=", value)

    def __gt__(self, value: float) -> Target:
        raise InputError(f"write {self.name} >= {value}: a target includes its value.")

    def __lt__(self, value: float) -> Target:
        raise InputError(f"write {self.name} <= {value}: a target includes its value.")

    def __str__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        """The name in words."""
        return _TITLES.get(self.name, self.name)

    def check(self, sense: Sense, value: float) -> None:
        """Raise `InputError` for a value that no sample can prove."""
        if not 0 < value < 1:
            raise InputError(
                f"the target {self.name}{sense}{value:g} must lie strictly between 0 and 1: "
                "85 percent is 0.85, and no sample can prove 0 or 1."
            )

    @property
    def good_when_high(self) -> bool:
        """Whether higher values are better."""
        return self.name not in ("false_discovery", "fpr", "abstention")


@dataclass(frozen=True)
class Cost:
    r"""Cost of each kind of decision; its expectation is a bounded mean, not a share.

    .. math:: E[c] = c_{fp} P(A, N) + c_{fn} P(\bar A, P) + c_{tp} P(A, P) + c_{tn} P(\bar A, N)

    with A acted on, P positive and N negative.

    With calibrated probabilities, acting pays where
    :math:`p \ge (c_{fp} - c_{tn}) / (c_{fp} - c_{tn} + c_{fn} - c_{tp})`: the `baseline`.

    Parameters
    ----------
    false_positive : of acting on a row that is not positive
    false_negative : of passing over a positive row
    true_positive, true_negative : of the right decisions, usually 0

    Examples
    --------
    >>> cost = Cost(false_positive=1, false_negative=9)
    >>> cost.baseline
    0.1
    >>> cost <= 0.05
    Target('cost<=0.05')
    """

    false_positive: float
    false_negative: float
    true_positive: float = 0.0
    true_negative: float = 0.0
    name: ClassVar[str] = "cost"
    words: ClassVar[str] = "expected cost of a row"

    def __post_init__(self) -> None:
        if not all(isinstance(c, Real) and 0 <= float(c) <= LARGEST_COST for c in self.matrix):
            raise InputError(
                f"costs must be numbers between 0 and {LARGEST_COST:g}, got {self.matrix}."
            )
        if self.false_positive <= self.true_negative or self.false_negative <= self.true_positive:
            raise InputError(
                "a wrong decision must cost more than the right one: false_positive more than "
                f"true_negative and false_negative more than true_positive, got {self.matrix}."
            )

    def __le__(self, value: float) -> Target:
        return Target(self, "<=", value)

    def __ge__(self, value: float) -> Target:
        return Target(self, ">=", value)  # raises InputError

    def __str__(self) -> str:
        return self.name

    @property
    def matrix(self) -> tuple[float, float, float, float]:
        """False positive, false negative, true positive, true negative."""
        return (self.false_positive, self.false_negative, self.true_positive, self.true_negative)

    @property
    def baseline(self) -> float:
        """The threshold that is best if the probabilities are calibrated."""
        acting = self.false_positive - self.true_negative
        return acting / (acting + self.false_negative - self.true_positive)

    def check(self, sense: Sense, value: float) -> None:
        """Raise `InputError` for a limit that every decision, or none, meets."""
        if sense != "<=" or not min(self.matrix) < value < max(self.matrix):
            raise InputError(
                f"the target cost{sense}{value:g} must be an upper limit between the smallest and "
                f"the largest cost, {min(self.matrix):g} and {max(self.matrix):g}."
            )


@dataclass(frozen=True, repr=False)
class Target:
    """A rate or an expected cost, and the value that it must reach or must not exceed.

    Parameters
    ----------
    rate : the `Rate`, or the `Cost`
    sense : ">=" or "<="
    value : of a rate strictly between 0 and 1
    """

    rate: Rate | Cost
    sense: Sense
    value: float

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, Real):
            raise InputError(f"a target's value must be a number, got {self.value!r}.")
        self.rate.check(self.sense, self.value)
        object.__setattr__(self, "value", float(self.value))

    def __bool__(self) -> bool:
        """Raise `InputError`: chained comparisons would silently drop a target."""
        raise InputError(
            "a target has no truth value: instead of a chain like 0.8 <= recall <= 0.9 give two "
            "targets, [recall >= 0.8, recall <= 0.9]."
        )

    def met_by(self, value: float) -> bool:
        """Whether a value of the rate meets the target."""
        return value >= self.value if self.sense == ">=" else value <= self.value

    @property
    def words(self) -> str:
        """The target in words: "precision is at least 85 %"."""
        bound = "at least" if self.sense == ">=" else "at most"
        if isinstance(self.rate, Cost):
            return f"the expected cost is {bound} {self.value:.6g} a row"
        return f"{self.rate.title} is {bound} {self.value * 100:.6g} %"

    def __str__(self) -> str:
        return f"{self.rate.name}{self.sense}{self.value!r}"

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


precision = Rate("precision", "positive", "act", "share of the rows acted on that is positive")
"""P(positive | acted on): how often acting is correct."""

false_discovery = Rate(
    "false_discovery", "negative", "act", "share of the rows acted on that is not positive"
)
"""P(not positive | acted on): 1 - precision."""

npv = Rate("npv", "negative", "pass", "share of the rows passed over that is not positive")
"""P(not positive | passed over), the negative predictive value: how often passing is correct."""

recall = Rate("recall", "act", "positive", "share of the positive rows that is acted on")
"""P(acted on | positive): the share of positives that is found."""

specificity = Rate("specificity", "pass", "negative", "share of the other rows that is passed over")
"""P(passed over | not positive): the share of negatives that is left alone."""

fpr = Rate("fpr", "act", "negative", "share of the other rows that is acted on")
"""P(acted on | not positive), the false positive rate: 1 - specificity."""

coverage = Rate("coverage", "act", "all", "share of all rows that is acted on", "any")
"""P(acted on): the automation rate."""

abstention = Rate("abstention", "pass", "all", "share of all rows that is handed over", "any")
"""P(passed over): 1 - coverage."""

accuracy = Rate(
    "accuracy", "positive", "act", "share of the accepted predictions that is right", "top-label"
)
"""P(prediction is correct | accepted), decided by the predicted class's probability."""

RATES: Mapping[str, Rate] = {
    rate.name: rate
    for rate in (
        precision, recall, specificity, fpr, npv, false_discovery, accuracy, coverage, abstention,
    )
}  # fmt: skip

_TITLES = {
    "fpr": "false positive rate",
    "npv": "negative predictive value",
    "false_discovery": "false discovery rate",
}

_TARGET = re.compile(
    r"\s*(?:(?P<of>.*\S)\s*:)?\s*(?P<rate>[A-Za-z_]+)\s*(?P<sense>>=|<=)\s*(?P<value>\S+)\s*"
)


def rate_named(name: str) -> Rate:
    """Return a rate by its name.

    Examples
    --------
    >>> rate_named("npv").condition
    'pass'
    """
    if name not in RATES:
        near = get_close_matches(name, RATES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose among {', '.join(RATES)}."
        raise InputError(f"there is no rate {name!r}: {hint}")
    return RATES[name]


def parse_target(text: str) -> tuple[str | None, Target]:
    """Parse `class: rate>=value`, or `rate>=value` for the positive class.

    Examples
    --------
    >>> parse_target("item_defective: precision>=0.85")
    ('item_defective', Target('precision>=0.85'))
    >>> parse_target("fpr <= 0.01")
    (None, Target('fpr<=0.01'))
    """
    match = _TARGET.fullmatch(text)
    if match is None:
        raise InputError(
            f"{text!r} is not a target: write it like 'precision>=0.85' or "
            "'item_defective: precision>=0.85'."
        )
    rate = rate_named(match["rate"].lower())
    try:
        value = float(match["value"])
    except ValueError:
        raise InputError(
            f"{text!r}: {match['value']!r} is not a number: write 85 percent as 0.85."
        ) from None
    return match["of"] or None, Target(rate, ">=" if match["sense"] == ">=" else "<=", value)


def parse_hold(text: str, *, flag: str | None = None) -> tuple[str | None, tuple[Target, ...]]:
    """Parse `class: rate>=value and rate>=value`; the class is None if it is not named."""
    (of, first), *rest = (parse_target(part) for part in _parts(text))
    for other, target in rest:
        if of is None and other is not None:
            raise InputError(
                f"hold {text!r} names {other!r} after a target without a class: name it first, as "
                f"in '{other}: {first} and {target}'."
            )
        if other not in (None, of):
            separate = f"{other}: {target}"
            remedy = (
                f"give {separate!r} separately"
                if flag is None
                else f"give {separate!r} to a separate {flag}"
            )
            raise InputError(
                f"hold {text!r} names {of!r} and {other!r}, but one threshold acts on one "
                f"class: {remedy}."
            )
    return of, (first, *(target for _, target in rest))


def _parts(text: str) -> list[str]:
    """Split at " and ", except inside the name of a class, where no target precedes it."""
    parts, joint = [""], ""
    for i, piece in enumerate(re.split(r"(\s+and\s+)", text, flags=re.IGNORECASE)):
        if i % 2:
            joint = piece
        elif re.search("[<>]=", parts[-1]):
            parts.append(piece)
        else:
            parts[-1] += joint + piece if i else piece
    return parts
