"""Names of a study's candidates, rows and calibrators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from calibrant.formatting import format_count
from calibrant.results import Evaluation, Figure
from calibrant.study.result import CandidateResult, StudyResult

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
_MODELS = {
    "boosting": "boosted trees",
    "linear": "linear",
    "mlp": "MLP",
    "ngrams": "n-grams",
    "bilstm": "BiLSTM",
    "text_cnn": "text CNN",
}
_LONGEST = 120  # characters of a name


def loss_name(loss: str) -> str:
    """Return the display name of a loss.

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
    """Return the display name of a candidate."""
    loss = loss_name(candidate.loss)
    if not candidate.raced:
        return candidate.named(loss, "")
    word = loss.partition(",")[0]
    if word[1:].islower():  # not AdaFocal, FLSD
        loss = loss[:1].lower() + loss[1:]
    name = candidate.named(loss, model_name(candidate.model))
    return capitalise(name)


def chosen_name(result: StudyResult) -> str:
    """Return the name of the chosen candidate; of a single one also its model."""
    best = result.best
    alone = sum(not one.reference for one in result.candidates) == 1
    return candidate_name(replace(best, raced=True) if alone and best.model else best)


def short_name(candidate: CandidateResult, winner: str) -> str:
    """Return a name for narrow charts: the model of a loser of the race, else the loss."""
    if candidate.way == "weighted":
        return f"mix of {len(candidate.members)}"
    if candidate.raced and candidate.model != winner:
        return capitalise(model_name(candidate.model))
    return candidate_name(replace(candidate, raced=False))


def capitalise(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def model_name(model: str) -> str:
    """Return the display name of a model."""
    return _MODELS.get(model, model)


def family(candidate: CandidateResult) -> str:
    """Return the name of the loss without its options."""
    return candidate.loss.partition(":")[0]


def method_name(method: str) -> str:
    """Return the display name of a calibrator."""
    return _METHODS.get(method, method.replace("_", " "))


def shown_name(name: object) -> str:
    """Truncate a very long name."""
    text = str(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def trained_candidates(result: StudyResult, *, references: bool = True) -> list[CandidateResult]:
    """Return the candidates that were trained and evaluated."""
    candidates = [one for one in result.candidates if one.failed is None and one.test is not None]
    return candidates if references else [one for one in candidates if not one.reference]


def singles(result: StudyResult) -> list[CandidateResult]:
    """Return the candidates that are one trained network: neither references nor averages."""
    return [one for one in trained_candidates(result, references=False) if one.way == "one"]


def baseline_of(result: StudyResult) -> CandidateResult | None:
    """Return cross-entropy of the winner of the race, preferably of the chosen seed, or None."""
    usual = [one for one in singles(result) if one.loss == "ce" and one.model == result.winner]
    alike = [one for one in usual if one.seed == result.best.seed]
    return next(iter([*alike, *usual]), None)


def judged_words(result: StudyResult) -> str:
    """Return the kind of rows that the metrics were computed on."""
    return "golden test rows" if result.golden else "held-out test rows"


def judged_rows(result: StudyResult, n: int | None = None) -> str:
    """Return the number and kind of rows that the metrics were computed on."""
    rows = result.calibrated.n if n is None else n
    return format_count(rows, judged_words(result).removesuffix("s"))


def figure_of(evaluation: Evaluation | None, name: str) -> Figure | None:
    """Return a metric, or None."""
    return None if evaluation is None else evaluation.figures.get(name)


def value_of(evaluation: Evaluation | None, name: str) -> float | None:
    """Return the value of a metric, or None."""
    figure = figure_of(evaluation, name)
    return None if figure is None else figure.value


def join_words(parts: Iterable[str]) -> str:
    """Join words with commas and a last "and".

    Examples
    --------
    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
