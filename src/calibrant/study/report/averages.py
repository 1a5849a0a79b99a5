"""Comparison of ensembles and MC dropout with the networks that they average."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.formatting import number, percent
from calibrant.study.report.wording import candidate_name, singles, trained_candidates, value_of
from calibrant.study.result import CandidateResult, StudyResult
from calibrant.study.scoring_ways import WAYS, way_sentence

_TITLES = {"ensemble": "Ensembles", "mc_dropout": "MC dropout"}


def way_sentences(result: StudyResult) -> list[str]:
    """Return one sentence for each kind of average among the candidates."""
    ways = {one.way for one in trained_candidates(result)}
    return [words for way in WAYS if way in ways and (words := way_sentence(way))]


def averages(result: StudyResult) -> list[tuple[str, str]]:
    """Describe the effect of averaging for the best ensemble and the best MC dropout."""
    return [
        (title, words)
        for way, title in _TITLES.items()
        if (words := _describe_average(result, way))
    ]


def _describe_average(result: StudyResult, way: str) -> str:
    tried = [one for one in trained_candidates(result, references=False) if one.way == way]
    if not tried:
        return ""
    best = min(tried, key=lambda one: (one.refinement is None, one.refinement))
    parts = _averaged_networks(result, best)
    then, now = _mean(parts, "scaled", "nll"), value_of(best.scaled, "nll")
    right = [_mean(parts, "test", "accuracy"), value_of(best.test, "accuracy")]
    if then is None or now is None:
        return ""
    of = f"{len(parts)} networks have on average" if len(parts) > 1 else "network alone has"
    # No verdict: the difference may not generalise to other rows.
    return (
        f"{candidate_name(best)}: after temperature scaling its log loss is {number(now)}, where "
        f"its {of} {number(then)}; its accuracy is {percent(right[1])} instead of "
        f"{percent(right[0])}."
    )


def _averaged_networks(result: StudyResult, one: CandidateResult) -> list[CandidateResult]:
    """Return the networks that a candidate averages."""
    seeds = one.members or (one.seed,)
    return [
        network for network in singles(result) if network.loss == one.loss and network.seed in seeds
    ]


def _mean(ones: Sequence[CandidateResult], part: str, name: str) -> float | None:
    values = [value for one in ones if (value := value_of(getattr(one, part), name)) is not None]
    return sum(values) / len(values) if values else None
