"""A bundle as a study packs it: with figures, candidates, checks, sources and a report."""

from tests.unit.bundle.parts import point, temperature

from calibrant.bundle import BundlePoint, pack

REPORT = "<!doctype html><title>The study</title><script>1</script>"
FIGURES = {
    "accuracy": {"value": 0.7983, "low": 0.7832, "high": 0.8127, "floor": None, "definition": "s"},
    "nll": {"value": 0.6657, "low": 0.629, "high": 0.7046, "floor": None, "definition": "n"},
    "ece_ew": {
        "value": 0.0292, "low": 0.0025, "high": 0.0394, "floor": {"mean": 0.0179, "q95": 0.0351},
        "definition": "mean gap",
    },
}  # fmt: skip
CANDIDATES = [
    {
        "name": "ce", "loss": "ce", "seed": 0, "way": "one", "chosen": False, "reference": False,
        "failed": None, "refinement": 0.7123, "weights": 240_901, "test": {"accuracy": 0.781},
    },
    {
        "name": "focal:gamma=3 (seed 1)", "loss": "focal:gamma=3", "seed": 1, "way": "one",
        "chosen": True, "reference": False, "failed": None, "refinement": 0.7012, "weights": 7,
        "test": {"accuracy": 0.798},
    },
    {
        "name": "adafocal", "loss": "adafocal", "seed": 0, "way": "one", "chosen": False,
        "reference": False, "failed": "the loss became NaN in epoch 2", "refinement": None,
        "weights": 0, "test": None,
    },
]  # fmt: skip


def check(verdict="kept"):
    """Return what test rows said about a promise, as `Transfer.to_dict` does."""
    claims = {"kept": "precision is at least 85 %", "broken": "it is false that precision is high"}
    text = f"{verdict.capitalize()} (confidence 95 %): {claims[verdict]} (88.0 % on 90 rows)."
    return {"verdict": verdict, "text": text, "confidence": 0.95, "n": 3000, "checks": []}


def study_bundle(folder, *, report=REPORT, metrics=None, provenance=None, **more):
    """Pack it; `report` is the content of its report, None for none."""
    files = {}
    if report is not None:
        files["report.html"] = folder.parent / "a-report.html"
        files["report.html"].write_text(report, encoding="utf-8")
    source = folder.parent / "logs.csv"
    source.write_text("a\n1\n", encoding="utf-8")
    judged = {"hold": "defect: precision>=0.85", "class": "defect", "reached": True}
    lost = {"hold": "parts: recall>=0.99", "class": "parts", "reached": False}
    default_metrics = {
        "n": 2905, "source": "golden", "test": FIGURES, "candidates": CANDIDATES,
        "why": "it has the smallest log loss",
        "points": [
            {**judged, "threshold": 0.75, "decides": True, "why": None, "check": check()},
            {**lost, "threshold": None, "decides": True, "why": "too few rows", "check": None},
        ],
    }  # fmt: skip
    default_provenance = {
        "config": {"label": "reason", "training": {"epochs": 5}},
        "splits": {"train": {"source": "logs", "rows": 12799}, "test": "odd"},
        "confidence_together": 0.95,
    }
    return pack(
        folder, calibrator=temperature(), points=[BundlePoint(point("defect", 0.75), "calibrated")],
        metrics=default_metrics if metrics is None else metrics,
        provenance={**default_provenance, **(provenance or {})},
        sources=[("data", source)], files=files, force=True, **more,
    )  # fmt: skip
