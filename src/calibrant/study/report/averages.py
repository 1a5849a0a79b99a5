"""What ensembles and MC dropout came to in a study, beside the networks that they average."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.formatting import number, percent
from calibrant.study.report.wording import candidate_name, singles, trained, value_of
from calibrant.study.result import CandidateResult, StudyResult
from calibrant.study.scoring_ways import WAYS, way_sentence

__all__ = ["averages", "way_sentences"]

_TITLES = {"ensemble": "Ensembles", "mc_dropout": "MC dropout"}


def way_sentences(result: StudyResult) -> list[str]:
    """Say in one sentence each what the averages among the candidates are."""
    there = {one.way for one in trained(result)}
    return [words for way in WAYS if way in there and (words := way_sentence(way))]


def averages(result: StudyResult) -> list[tuple[str, str]]:
    """Tell for ensembles and for MC dropout what averaging changed, at the best of them."""
    return [(title, words) for way, title in _TITLES.items() if (words := _told(result, way))]


def _told(result: StudyResult, way: str) -> str:
    tried = [one for one in trained(result, references=False) if one.way == way]
    if not tried:
        return ""
    best = min(tried, key=lambda one: (one.refinement is None, one.refinement))
    parts = _averaged(result, best)
    then, now = _mean(parts, "scaled", "nll"), value_of(best.scaled, "nll")
    right = [_mean(parts, "test", "accuracy"), value_of(best.test, "accuracy")]
    if then is None or now is None:
        return ""
    of = f"{len(parts)} networks have on average" if len(parts) > 1 else "network alone has"
    # No verdict: a smaller number on these rows need not be one on others.
    return (
        f"{candidate_name(best)}: after temperature scaling its log loss is {number(now)}, where "
        f"its {of} {number(then)}; its accuracy is {percent(right[1])} instead of "
        f"{percent(right[0])}."
    )


def _averaged(result: StudyResult, one: CandidateResult) -> list[CandidateResult]:
    """Return the networks that a candidate averages."""
    seeds = one.members or (one.seed,)
    return [each for each in singles(result) if each.loss == one.loss and each.seed in seeds]


def _mean(ones: Sequence[CandidateResult], part: str, name: str) -> float | None:
    values = [value for one in ones if (value := value_of(getattr(one, part), name)) is not None]
    return sum(values) / len(values) if values else None
