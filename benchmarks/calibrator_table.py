"""Every calibrator on the same rows, ours and other libraries': what each gains, and what it costs.

Networks are fitted on their published validation part and judged on the test part. Tables and
worlds are fitted on 5,000 rows and judged on the rest of the table, or on 100,000 new rows.

- harm: NLL above the uncalibrated model's by more than 0.1 % and by more than 2 standard errors of
  the paired difference;
- objective: what a method and its twin elsewhere both minimise, on the rows they were fitted on;
  the twin of ours has the peer's settings;
- clearly above: the held-out NLL of our method, as it is by default, exceeds the peer's by the same
  two rules as harm.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import calibration_cases
from benchmarks.calibrator_peers import PEERS, Fitted, Peer, missing, quietly, versions
from benchmarks.calibrator_twins import TWINS, Twin, fitted
from benchmarks.harness import Size
from benchmarks.outcome import Outcome
from calibrant.calibrators import list_methods
from calibrant.errors import InputError
from calibrant.metrics import brier, ece
from calibrant.testing import WORLDS, Draw, shifted_world, true_ce

__all__ = ["measure"]

ROWS = {"full": 5_000, "toy": 1_000}
JUDGED = {"full": 100_000, "toy": 5_000}
TABLES = ("adult / boosting", "bank_marketing / naive bayes", "credit_default / forest")
SKIPPED = ("chain", "prior_correction", "focal_recovery")
"""They learn nothing from labels, or are made of others."""

MATTERS = 1e-3
ERRORS = 2.0
EXACT = 1e-6
SUM = 1e-4
"""A row whose sum is further from 1 does not hold probabilities."""

QUICK = 0.2
"""Fits that take fewer seconds are timed three times."""

_MISSING: dict[str, str | None] = {}


@dataclass(frozen=True)
class Rows:
    """A case: rows to fit on and rows to judge by."""

    name: str
    group: str
    fit_logits: np.ndarray
    fit_labels: np.ndarray
    logits: np.ndarray
    labels: np.ndarray
    posterior: np.ndarray | None = None

    @property
    def k(self) -> int:
        """Number of classes."""
        return 2 if self.logits.ndim == 1 else int(self.logits.shape[1])

    def facts(self) -> dict[str, Any]:
        """Return what the table says about the case itself."""
        sizes = {"fitted": len(self.fit_labels), "judged": len(self.labels)}
        return {"case": self.name, "group": self.group, "classes": self.k, **sizes}


@dataclass
class Contender:
    """A method on a case: the fitted method, the loss of each judged row, and its table row.

    `fitted` and `losses` are None where it could not be run.
    """

    package: str
    method: str
    row: dict[str, Any]
    fitted: Fitted | None = None
    losses: np.ndarray | None = None

    @property
    def name(self) -> str:
        """The method; with its package where it is a peer's."""
        return self.method if self.package == "calibrant" else f"{self.package}: {self.method}"


def measure(size: Size) -> list[Outcome]:
    """Judge every method on every case, and hold the shared ones against the peers'."""
    facts, table, pairs = [], [], []
    for rows in _cases(size):
        tried = {one.name: one for one in _contenders(rows)}
        _add_harm(tried)
        facts.append(rows.facts())
        table += [one.row for one in tried.values()]
        pairs += [_pair(twin, rows, tried) for twin in TWINS if twin.suits(rows.k)]
    compared = [pair for pair in pairs if pair is not None]
    return [_no_harm(table, facts), *_goals(compared)]


# Cases --------------------------------------------------------------------------------------------


def _cases(size: Size) -> Iterator[Rows]:
    networks = calibration_cases.scored_rows()
    for i, (name, logits, labels, fit, judge) in enumerate(networks):
        if size == "toy":
            if i == 2:
                break
            fit, judge = fit[: ROWS[size]], judge[: JUDGED[size]]
        yield Rows(name, "networks", logits[fit], labels[fit], logits[judge], labels[judge])
    if size == "full":
        yield from _tables(ROWS[size])
    worlds = [*WORLDS.values(), shifted_world(0.05)]
    for world in worlds if size == "full" else [WORLDS["binary"], WORLDS["multiclass"]]:
        seen, new = world.draw(ROWS[size], 0), world.draw(JUDGED[size], 1)
        yield Rows(
            world.name,
            "worlds",
            _logits(seen),
            seen.labels,
            _logits(new),
            new.labels,
            new.posterior,
        )


def _tables(n: int) -> Iterator[Rows]:
    if calibration_cases.data_folder() is None:
        return
    wanted = set(TABLES)
    for case in calibration_cases._table_cases("full"):  # lazy: models are fitted one by one
        if case.name in wanted:
            split = case.split(n, 0)
            if split is not None:
                yield Rows(
                    case.name,
                    "tables",
                    split.fit_logits,
                    split.fit_labels,
                    split.logits,
                    split.labels,
                )
            wanted.remove(case.name)
        if not wanted:
            return


def _logits(draw: Draw) -> np.ndarray:
    from calibrant.convert import logits_from_probs

    return logits_from_probs(draw.probs.astype(np.float64), floor=calibration_cases.FLOOR)


# Contenders ---------------------------------------------------------------------------------------


def _contenders(rows: Rows) -> Iterator[Contender]:
    for name, kind in list_methods().items():
        if name not in SKIPPED:
            yield _tried("calibrant", name, lambda z, y, kind=kind: fitted(kind().fit(z, y)), rows)
    for peer in PEERS:
        if peer.suits(rows.k):
            yield _peer(peer, rows)


def _peer(peer: Peer, rows: Rows) -> Contender:
    if peer.name not in _MISSING:
        _MISSING[peer.name] = missing(peer)
    why_not = _MISSING[peer.name]
    if peer.most_classes is not None and rows.k > peer.most_classes:
        why_not = "would take over a minute"
    if why_not is not None:
        return _not_run(peer.package, peer.method, rows, why_not)
    with quietly():
        return _tried(peer.package, peer.method, peer.fit, rows)


def _tried(
    package: str, method: str, fit: Callable[[np.ndarray, np.ndarray], Fitted], rows: Rows
) -> Contender:
    """Fit a method, up to three times where it is quick, and judge it."""
    seconds: list[float] = []
    # Whatever another library does goes into the table; ours may refuse rows, and no more.
    caught = InputError if package == "calibrant" else Exception
    try:
        while len(seconds) < 3 and sum(seconds) < QUICK:
            start = time.perf_counter()
            result = fit(rows.fit_logits, rows.fit_labels)
            seconds.append(time.perf_counter() - start)
        log_probs = result.log_probs(rows.logits)
    except caught as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        return _not_run(package, method, rows, f"stopped with {text}")
    probs = np.exp(log_probs)
    wrong = int((~(np.abs(probs.sum(axis=1) - 1.0) < SUM)).sum())  # NaN is wrong, too
    if wrong:
        why_not = f"{wrong:,} of {len(probs):,} rows do not sum to 1"
        return _not_run(package, method, rows, why_not)
    losses = -log_probs[np.arange(len(rows.labels)), rows.labels]
    row = {"case": rows.name, "package": package, "method": method}
    row |= _figures(probs, losses, rows)
    row["fit_s"] = None if result.model is None else _short(statistics.median(seconds))
    chosen = getattr(result.model, "chosen_", None)
    if chosen is not None:
        row["chosen"] = chosen.method
    return Contender(package, method, row, result, losses)


def _not_run(package: str, method: str, rows: Rows, why_not: str) -> Contender:
    row = {"case": rows.name, "package": package, "method": method, "why_not": why_not}
    return Contender(package, method, row)


# Figures ------------------------------------------------------------------------------------------


def _figures(probs: np.ndarray, losses: np.ndarray, rows: Rows) -> dict[str, float | None]:
    probs /= probs.sum(axis=1, keepdims=True)  # some peers sum to 1 in float32 only
    judged = probs[:, 1] if rows.k == 2 else probs
    figures = {
        "nll": float(losses.mean()),
        "ece_ew": ece(rows.labels, judged, n_bins=15),
        "ece_em": ece(rows.labels, judged, n_bins=15, scheme="mass"),
        "brier": brier(rows.labels, judged),
    }
    if rows.posterior is not None:
        figures["true_ce"] = true_ce(Draw(rows.labels, judged, rows.posterior))
    return {name: _short(value) for name, value in figures.items()}


def _add_harm(tried: Mapping[str, Contender]) -> None:
    """Hold every method against the model as it is."""
    before = tried["identity"].losses
    assert before is not None
    for one in tried.values():
        if one.losses is not None:
            change = _difference(one.losses, before)
            one.row["nll_change"] = _short(change["relative"])
            one.row["nll_change_z"] = _short(change["z"])
            one.row["harm"] = change["clear"]


def _difference(losses: np.ndarray, other: np.ndarray) -> dict[str, Any]:
    """Say by how much losses exceed others, in shares, in standard errors, and whether clearly."""
    if not (np.isfinite(losses).all() and np.isfinite(other).all()):
        mean, against = float(losses.mean()), float(other.mean())
        return {"relative": None, "z": None, "clear": mean > against}
    apart = losses - other
    mean, error = float(apart.mean()), float(apart.std() / np.sqrt(len(apart)))
    relative = mean / float(other.mean())
    z = mean / error if error > 0 else 0.0
    return {"relative": relative, "z": z, "clear": relative > MATTERS and z > ERRORS}


def _short(value: float | None) -> float | None:
    """Return six digits; None for what JSON cannot say."""
    return float(f"{value:.6g}") if value is not None and np.isfinite(value) else None


# Goals --------------------------------------------------------------------------------------------


def _pair(twin: Twin, rows: Rows, tried: Mapping[str, Contender]) -> dict[str, Any] | None:
    """Hold a method against the same one elsewhere; None where either was not run."""
    default, peer = tried[twin.method], tried[twin.peer]
    if peer.fitted is None or peer.losses is None or default.losses is None:
        return None
    pair = {"method": twin.method, "peer": twin.peer, "case": rows.name}
    if twin.objectives is not None:
        with quietly():
            ours, theirs = twin.objectives(peer.fitted, rows.fit_logits, rows.fit_labels)
        pair |= {"objective": ours, "peer_objective": theirs}
        pair["excess"] = (ours - theirs) / max(abs(theirs), 1e-12) if np.isfinite(theirs) else -1.0
    held_out = _difference(default.losses, peer.losses)
    return pair | {f"held_out_{name}": value for name, value in held_out.items()}


def _goals(pairs: Sequence[dict[str, Any]]) -> Iterator[Outcome]:
    by_method: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for pair in pairs:
        by_method[pair["method"]].append(pair)
    for method, compared in by_method.items():
        others = ", ".join(dict.fromkeys(pair["peer"].partition(":")[0] for pair in compared))
        tried = [pair for pair in compared if "excess" in pair]
        details = {"pairs": [_rounded(pair) for pair in compared]}
        if tried:
            yield Outcome(
                f"{method}: own objective on the fitting rows never above {others}",
                max(pair["excess"] for pair in tried),
                EXACT,
                "of the peer's",
                "below",
                details,
            )
        losing = [pair for pair in compared if pair["held_out_clear"]]
        yield Outcome(
            f"{method}: held-out NLL clearly above {others} in none of {len(compared)} comparisons",
            float(len(losing)),
            1.0,
            "comparisons",
            "below",
            {"losing": [_rounded(pair) for pair in losing]} | ({} if tried else details),
        )


def _rounded(pair: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _short(v) if isinstance(v, float) else v for k, v in pair.items()}


def _no_harm(table: Sequence[dict[str, Any]], facts: Sequence[dict[str, Any]]) -> Outcome:
    harmed = [row["case"] for row in table if row["method"] == "auto" and row.get("harm")]
    return Outcome(
        f"automatic choice harms none of {len(facts)} cases",
        float(len(harmed)),
        1.0,
        "cases",
        "below",
        {"harmed": harmed, "versions": versions(), "cases": list(facts), "table": list(table)},
    )
