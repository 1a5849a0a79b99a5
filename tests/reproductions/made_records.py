"""Run records with figures that are easy to work out by hand."""

import numpy as np
from reproductions.experiment import Experiment, Method
from reproductions.summary import summarise

ROWS = {"train": 800, "steer": 100, "calib": 100, "test": 400}


def made_experiment(**other):
    """Two methods with the paper's figures, one without."""
    settings = {
        "name": "made",
        "title": "Made-up rows",
        "paper": "Somebody 2020, Table 1",
        "kind": "table",
        "data": "made",
        "methods": (
            Method("ce", "CE", {"loss": "ce"}),
            Method("focal", "FL-3", {"loss": "focal:gamma=3"}),
        ),
        "training": {"epochs": 10, "patience": "none"},
        "published": {
            "ce": {"ece_em": 9.0, "ece_em_scaled": 3.0},
            "focal": {"ece_em": 4.0, "ece_em_scaled": 2.5},
        },
    }
    return Experiment(**{**settings, **other})


def figure(value, floor=None, spread=0.01):
    """A figure with an interval of `spread` on both sides."""
    known = None if floor is None else {"mean": floor[0], "q95": floor[1]}
    low, high = (None, None) if value is None else (max(0.0, value - spread), value + spread)
    return {"value": value, "low": low, "high": high, "floor": known}


def figures(ece, nll=0.5, error=0.2):
    """The seven figures of one way of calibrating."""
    floor = (0.010, 0.015)
    return {
        "ece_em": figure(ece, floor),
        "ece_ew": figure(ece, floor),
        "ece_debiased": figure(ece / 2, floor),
        "ece_sweep_em": figure(ece, floor),
        "nll": figure(nll),
        "brier": figure(nll / 2),
        "error": figure(error),
    }


def made_record(method="ce", seed=0, **other):
    """A run of `made_experiment`: `ece` before calibrating, half of it after T, then `auto`."""
    ece, error = other.pop("ece", 0.08), other.pop("error", 0.2)
    auto, refinement = other.pop("auto", 0.02), other.pop("refinement", 0.6)
    ways = {
        "raw": figures(ece, error=error),
        "temperature": figures(ece / 2, error=error),
        "ets": figures(ece / 2, error=error),
        "spline": figures(auto, error=error),
        "auto": figures(auto, error=error),
    }
    return {
        "schema": 1,
        "experiment": "made",
        "method": method,
        "label": method.upper(),
        "seed": seed,
        "size": "full",
        "rows": ROWS,
        "classes": ["no", "yes"],
        "note": "",
        "epochs": 10,
        "best_epoch": 4,
        "seconds": 10.0 + seed,
        "seconds_of_an_epoch": 1.0,
        "steer": {"refinement": refinement, "nll": 0.7, "ece": 0.05},
        "temperature": 1.5,
        "chosen": "spline",
        "figures": ways,
        "machine": {"cpu": "Two cores", "gpu": None},
        "date": f"2026-11-{16 + seed}",
        **other,
    }


def made_runs():
    """Three seeds of both methods; the focal one has the least refinement.

    ECE_EM before calibration: CE 0.07, 0.08, 0.09 (mean 0.08, sd 0.01); FL-3 0.03, 0.04, 0.05.
    """
    plain = [made_record("ce", seed, ece=0.07 + 0.01 * seed) for seed in range(3)]
    focal = [
        made_record("focal", seed, ece=0.03 + 0.01 * seed, refinement=0.5, error=0.203)
        for seed in range(3)
    ]
    return [*plain, *focal]


def made_losses(gap=-0.1, seeds=(0, 1, 2), n=ROWS["test"], seed=0):
    """Losses of test rows: those of the focal method differ by `gap` on average."""
    rng = np.random.default_rng(seed)
    row = rng.exponential(0.5, n)
    found = {}
    for each in seeds:
        plain = row + rng.normal(0, 0.05, n)
        focal = row + gap + rng.normal(0, 0.2, n)
        found["ce", each] = {"temperature": plain, "auto": plain}
        found["focal", each] = {"temperature": focal, "auto": focal}
    return found


def made_summary(runs=None, losses=None, **other):
    """The summary of these runs, or of `made_runs`; `other` settings of the experiment."""
    return summarise(made_experiment(**other), made_runs() if runs is None else runs, losses)


def goal(summary, name):
    """The goal of this name."""
    return next(each for each in summary.goals if each.name == name)
