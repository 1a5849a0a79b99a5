"""How a study's candidates, rows and calibrators are called, and who stands beside whom."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.formatting import counted
from calibrant.results import Evaluation, Figure
from calibrant.study.result import CandidateResult, StudyResult

__all__ = [
    "baseline_of",
    "candidate_name",
    "family",
    "figure_of",
    "joined",
    "judged_rows",
    "judged_words",
    "loss_name",
    "method_name",
    "shown_name",
    "singles",
    "trained",
    "value_of",
]

_LOSSES = {
    "ce": "Cross-entropy",
    "focal": "Focal",
    "adafocal": "AdaFocal",
    "flsd": "FLSD",
    "calfocal": "CalFocal",
    "dual_focal": "Dual focal",
    "mmce": "MMCE",
    "soft_f1": "Soft F1",
    "hist_gradient_boosting": "HistGradientBoosting",
}
_METHODS = {
    "identity": "no further calibration",
    "temperature": "temperature scaling",
    "platt": "Platt scaling",
    "beta": "beta calibration",
    "ets": "ensemble temperature scaling",
    "svs": "structured vector scaling",
    "sms": "structured matrix scaling",
    "isotonic": "isotonic regression",
    "isotonic_strict": "strict isotonic regression",
    "vector": "vector scaling",
    "matrix": "matrix scaling",
    "dirichlet": "Dirichlet calibration",
    "quadratic": "quadratic scaling",
    "venn_abers": "Venn-Abers prediction",
}
_LONGEST = 120  # characters of a name


def loss_name(loss: str) -> str:
    """Return what people call a loss.

    Examples
    --------
    >>> loss_name("ce"), loss_name("focal:gamma=3"), loss_name("label_smoothing:alpha=0.1")
    ('Cross-entropy', 'Focal, gamma 3', 'Label smoothing, alpha 0.1')
    >>> loss_name("0.5*ce + 0.5*soft_f1")
    '0.5*ce + 0.5*soft_f1'
    """
    name, _, options = loss.partition(":")
    if not name.replace("_", "").isalnum() or (options and "=" not in options):
        return loss
    words = _LOSSES.get(name) or name[:1].upper() + name[1:].replace("_", " ")
    shown = options.replace("_", " ").replace("=", " ").replace(",", ", ")
    return f"{words}, {shown}" if shown else words


def candidate_name(candidate: CandidateResult) -> str:
    """Return the loss for people, the seed where it is not 0, and what is averaged."""
    return candidate.named(loss_name(candidate.loss))


def family(candidate: CandidateResult) -> str:
    """Return the name of the loss without its options."""
    return candidate.loss.partition(":")[0]


def method_name(method: str) -> str:
    """Return what people call a calibrator."""
    return _METHODS.get(method, method.replace("_", " "))


def shown_name(name: object) -> str:
    """Cut a name that is longer than any reader would read."""
    text = str(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def trained(result: StudyResult, *, references: bool = True) -> list[CandidateResult]:
    """Return the candidates that there are figures of."""
    found = [one for one in result.candidates if one.failed is None and one.test is not None]
    return found if references else [one for one in found if not one.reference]


def singles(result: StudyResult) -> list[CandidateResult]:
    """Return the candidates that are one trained network: neither references nor averages."""
    return [one for one in trained(result, references=False) if one.way == "one"]


def baseline_of(result: StudyResult) -> CandidateResult | None:
    """Return cross-entropy, of the chosen seed where there is one; None where all failed."""
    usual = [one for one in singles(result) if one.loss == "ce"]
    alike = [one for one in usual if one.seed == result.best.seed]
    return next(iter([*alike, *usual]), None)


def judged_words(result: StudyResult) -> str:
    """Say which rows the figures are of."""
    return "golden test rows" if result.golden else "held-out test rows"


def judged_rows(result: StudyResult, n: int | None = None) -> str:
    """Say which rows the figures are of, and how many they are."""
    rows = result.calibrated.n if n is None else n
    return counted(rows, judged_words(result).removesuffix("s"))


def figure_of(evaluation: Evaluation | None, name: str) -> Figure | None:
    """Return a figure, where there is one."""
    return None if evaluation is None else evaluation.figures.get(name)


def value_of(evaluation: Evaluation | None, name: str) -> float | None:
    """Return the value of a figure, where there is one."""
    found = figure_of(evaluation, name)
    return None if found is None else found.value


def joined(parts: Iterable[str]) -> str:
    """Join words with commas and a last "and".

    Examples
    --------
    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
