"""Metrics of a method over seeds: means, spreads, intervals, floors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reproductions.experiment import Method
from reproductions.paired_loss import PairedLoss

__all__ = [
    "FIGURES",
    "PRINTED",
    "WAYS",
    "MethodSummary",
    "SeedFigure",
    "Spread",
    "method_of",
    "paper_error",
    "spread_of",
]

WAYS = ("raw", "temperature", "ets", "spline", "auto")
"""The network's own probabilities, three calibrators, and the automatic choice of one."""

FIGURES = ("ece_em", "ece_ew", "ece_debiased", "ece_sweep_em", "nll", "brier", "error")

PRINTED = (
    ("ece_em", "ece_em", "raw"),
    ("ece_em_scaled", "ece_em", "temperature"),
    ("ece_ew", "ece_ew", "raw"),
    ("ece_ew_scaled", "ece_ew", "temperature"),
    ("ece", "ece_ew", "raw"),  # of papers that know one ECE only, the equally wide one
    ("error", "error", "raw"),
)
"""What papers print, as a config names it, and which of our figures and ways stands beside it."""


@dataclass(frozen=True)
class Spread:
    """A number over seeds.

    Parameters
    ----------
    n : seeds that have it
    mean : over them
    sd : standard deviation between seeds (divisor n - 1); None for one seed
    least, most : its range
    """

    n: int
    mean: float
    sd: float | None
    least: float
    most: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class SeedFigure:
    """A figure of the test rows over seeds.

    All seeds are judged on the same test rows, so chance in these rows does not average out:
    interval and floor are those of one run, not of the mean.

    Parameters
    ----------
    value : the figure over seeds
    low, high : means of the ends of each run's interval
    floor, floor_q95 : what a perfectly calibrated model with these scores gets, on average and
        95 times in 100 at most; means over seeds. None for figures that have no floor.
    """

    value: Spread
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    floor_q95: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class MethodSummary:
    """Results of one method over seeds.

    Parameters
    ----------
    name, label : of the method
    seeds : that were run
    figures : by way of calibrating, then by name; one that no seed has is not there
    refinement : log loss after temperature scaling, of the rows that compare methods
    calib_nll : cross-validated log loss of the calib rows after the automatic choice
    temperature, seconds, best_epoch : over seeds
    chosen : the calibrator that the automatic choice took, by seed
    published : the paper's figures, in percent
    nll : log loss after the automatic choice against cross-entropy with temperature scaling
    nll_scaled : the same, after temperature scaling
    compared_on : the rows of `refinement`: "choice" where a run keeps some for it, else "steer"
    """

    name: str
    label: str
    seeds: tuple[int, ...]
    figures: Mapping[str, Mapping[str, SeedFigure]]
    refinement: Spread | None
    calib_nll: Spread | None
    temperature: Spread | None
    seconds: Spread | None
    best_epoch: Spread | None
    chosen: Mapping[int, str]
    published: Mapping[str, float]
    nll: PairedLoss | None = None
    nll_scaled: PairedLoss | None = None
    compared_on: str = "steer"

    def figure(self, way: str, name: str) -> SeedFigure | None:
        """Return a figure, or None."""
        return self.figures.get(way, {}).get(name)

    def mean(self, way: str, name: str) -> float | None:
        """Return the mean of a figure over seeds, or None."""
        spread = self.figure(way, name)
        return None if spread is None else spread.value.mean

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        spreads = ("refinement", "calib_nll", "temperature", "seconds", "best_epoch")
        return {
            "name": self.name,
            "label": self.label,
            "seeds": list(self.seeds),
            "figures": {
                way: {name: each.to_dict() for name, each in figures_of_way.items()}
                for way, figures_of_way in self.figures.items()
            },
            "chosen": {str(seed): taken for seed, taken in self.chosen.items()},
            "published": dict(self.published),
            "compared_on": self.compared_on,
            **{name: _plain(getattr(self, name)) for name in (*spreads, "nll", "nll_scaled")},
        }


def spread_of(values: Iterable[Any]) -> Spread | None:
    """Return mean, standard deviation and range of the numbers among `values`.

    Examples
    --------
    >>> spread_of([1.0, 2.0, 6.0, None])
    Spread(n=3, mean=3.0, sd=2.6457513110645907, least=1.0, most=6.0)
    >>> spread_of([4]).sd, spread_of([None])
    (None, None)
    """
    numbers = sorted(float(each) for each in values if _is_number(each))
    if not numbers:
        return None
    n = len(numbers)
    mean = math.fsum(numbers) / n
    variance = math.fsum((each - mean) ** 2 for each in numbers) / (n - 1) if n > 1 else None
    sd = None if variance is None else math.sqrt(variance)
    return Spread(n, mean, sd, numbers[0], numbers[-1])


def paper_error(methods: Iterable[MethodSummary]) -> str:
    """Return the calibration error that stands beside the paper's: with its bins, or "ece_em"."""
    printed = {name for each in methods for name in each.published}
    wide = printed & {"ece", "ece_ew", "ece_ew_scaled"}
    return "ece_ew" if wide and not printed & {"ece_em", "ece_em_scaled"} else "ece_em"


def method_of(
    method: Method,
    records: Sequence[Mapping[str, Any]],
    published: Mapping[str, float],
    nll: PairedLoss | None = None,
    nll_scaled: PairedLoss | None = None,
) -> MethodSummary:
    """Return the summary of one method.

    Parameters
    ----------
    method : that was run
    records : its run records, one for each seed, ordered by seed
    published : the paper's figures of it, in percent
    nll, nll_scaled : its log loss beside that of cross-entropy
    """
    rows = "choice" if all(each.get("choice") for each in records) else "steer"
    of_ways = {way: _figures(records, way) for way in WAYS}
    return MethodSummary(
        name=method.name,
        label=method.label,
        seeds=tuple(int(each["seed"]) for each in records),
        figures={way: figures_of_way for way, figures_of_way in of_ways.items() if figures_of_way},
        refinement=spread_of((each.get(rows) or {}).get("refinement") for each in records),
        calib_nll=spread_of((each.get("calib") or {}).get("nll") for each in records),
        temperature=spread_of(each.get("temperature") for each in records),
        seconds=spread_of(each.get("seconds") for each in records),
        best_epoch=spread_of(each.get("best_epoch") for each in records),
        chosen={int(each["seed"]): str(each["chosen"]) for each in records if each.get("chosen")},
        published=dict(published),
        nll=nll,
        nll_scaled=nll_scaled,
        compared_on=rows,
    )


def _figures(records: Sequence[Mapping[str, Any]], way: str) -> dict[str, SeedFigure]:
    figures = {}
    for name in FIGURES:
        # A run without the value must not lend its interval or floor to the others' mean.
        runs = [((each.get("figures") or {}).get(way) or {}).get(name) or {} for each in records]
        runs = [each for each in runs if _is_number(each.get("value"))]
        value = spread_of(each["value"] for each in runs)
        if value is not None:
            floors = [each.get("floor") or {} for each in runs]
            figures[name] = SeedFigure(
                value,
                *(_mean(each.get(end) for each in runs) for end in ("low", "high")),
                *(_mean(each.get(key) for each in floors) for key in ("mean", "q95")),
            )
    return figures


def _mean(values: Iterable[Any]) -> float | None:
    """Return the mean; None where a run lacks the value, as ends must belong together."""
    listed = list(values)
    spread = spread_of(listed)
    return None if spread is None or spread.n < len(listed) else spread.mean


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _plain(result: Spread | PairedLoss | None) -> dict[str, Any] | None:
    return None if result is None else result.to_dict()
