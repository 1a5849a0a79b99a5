"""The study, read top to bottom: candidates, trained, compared, calibrated, certified, packed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bundle import Bundle, CalibRows, pack
from calibrant.calibrators import AutoCalibrator, Calibrator
from calibrant.calibrators.base.registry import find_method
from calibrant.errors import InputError, TrainingError
from calibrant.files.lock import exclusive_folder
from calibrant.inputs import FloatArray
from calibrant.metrics import evaluate
from calibrant.ood import OodRule
from calibrant.results import Evaluation
from calibrant.study.candidates.candidate import candidates_of
from calibrant.study.candidates.devices import refuse_torchrun
from calibrant.study.candidates.train_all import Outcome, train_all
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.judge import choose, judge
from calibrant.study.packed_figures import packed_figures
from calibrant.study.promises import asked_of, bundle_points, certify, decided_by_later
from calibrant.study.reference import gradient_boosting
from calibrant.study.report.page import write_study_html
from calibrant.study.result import PointResult, StudyResult
from calibrant.study.rows.file_names import names_only, sources_of
from calibrant.study.rows.read import read_study_rows
from calibrant.study.rows.rows import StudyRows
from calibrant.study.scope import describe_rule, fit_rule
from calibrant.study.settings.config import StudyConfig
from calibrant.study.settings.config_file import config_text, write_config
from calibrant.study.study_folder import (
    BUNDLE,
    CANDIDATE_FOLDERS,
    check_place,
    drafted,
    folder_of,
    make_room,
    put,
    write_json,
)
from calibrant.thresholds import OperatingPoint

if TYPE_CHECKING:
    from calibrant.study.truth import Fresh

__all__ = ["run_study", "study_in"]

_DRAWN_WITH = ("plotly", "jinja2")
"""Packages that only the report needs."""


def run_study(
    config: StudyConfig,
    out: str | Path,
    *,
    progress: Callable[[str], None] | None = None,
    fresh: Fresh | None = None,
) -> StudyResult:
    """Run a study and leave in `out` its bundle, its report and all that led to them.

    Rows are read and divided; every candidate is trained on the train rows and steered by the steer
    rows; averages of networks that were asked for (ensembles, MC dropout) are candidates too; the
    choice rows, which nobody followed, choose one of them (log loss after temperature scaling); all
    are shown on the test rows and on held-out logs; a calibrator is chosen and the promises are
    certified on the calibrate rows; the promises are checked on the test rows; the bundle is
    packed.

    Candidates that were trained before with the same settings and files are taken as they are, so a
    study that was killed goes on where it was, and one that only asks for another promise takes
    seconds. What an earlier study left in `out`, its settings and splits too, stays whole until the
    new one is complete; a file of such a name that no study wrote is refused before anything is
    trained. While a run is at work in `out`, a second one is refused. Where a package is missing
    that the report is drawn with, a note says so, and all else is there.

    Parameters
    ----------
    config : the settings
    out : a folder; made if it is not there
    progress : gets one-line messages
    fresh : rows of a world whose posterior is known, to judge the study by

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.data import return_reasons
    >>> from calibrant.study import StudyConfig, run_study
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = return_reasons.draw(600, source="logs").write(place / "logs.csv")
    >>> _ = return_reasons.draw(300, source="golden").write(place / "golden.csv")
    >>> config = StudyConfig(data=str(place / "logs.csv"), golden=str(place / "golden.csv"),
    ...     text="message", label="reason", candidates=("ce",), overlap="drop",
    ...     model_options={"embedding": 8, "hidden": 8, "layers": 1}, training={"epochs": 2})
    >>> result = run_study(config, place / "run")
    >>> sorted(p.name for p in (place / "run").iterdir())
    ['bundle', 'candidates', 'report.html', 'result.json', 'splits.json', 'study.toml']
    """
    refuse_torchrun()
    folder = folder_of(out)
    with exclusive_folder(folder):
        return study_in(folder, config, progress=progress, fresh=fresh)


def study_in(
    folder: Path,
    config: StudyConfig,
    *,
    progress: Callable[[str], None] | None = None,
    fresh: Fresh | None = None,
) -> StudyResult:
    """Run a study in a folder that is held (see `alone_in`); the parameters are `run_study`'s."""
    tell, started = progress or (lambda message: None), time.perf_counter()
    config_text(config)  # a setting that cannot be saved is told before anything is trained
    check_place(folder)
    rows = read_study_rows(config)
    asked = asked_of(config.hold, rows.classes)
    _check_actions(config, rows)
    make_room(folder)

    candidates = candidates_of(config, rows.files, rows.splits)
    outcomes = train_all(rows, config, candidates, folder / CANDIDATE_FOLDERS, tell)
    _refuse_none(outcomes)
    tell("judging the candidates")
    judged = judge(rows, candidates, outcomes)
    chosen, why = choose(judged)
    best = outcomes[chosen]
    assert isinstance(best, TrainedCandidate)  # only what was trained is chosen
    if rows.kind == "table":
        judged.append(gradient_boosting(rows, config))

    tell("calibrating and certifying")
    logits = dict(best.logits)
    calibrator = _fitted_calibrator(config, rows, logits["calibrate"])
    rule = fit_rule(logits, config.ood)
    points = certify(
        rows, asked, logits, rule,
        confidence=config.confidence, largest_weight=config.largest_weight,
    )  # fmt: skip
    fitted = calibrator.chosen_ if isinstance(calibrator, AutoCalibrator) else calibrator
    result = StudyResult(
        title=config.title,
        kind=rows.kind,
        classes=rows.classes,
        focus=_focus(points, rows),
        splits=rows.sizes(),
        candidates=tuple(judged),
        chosen=chosen,
        why=why,
        method=fitted.method,
        choice=calibrator.comparison_ if isinstance(calibrator, AutoCalibrator) else None,
        calibrated=_calibrated(rows, calibrator, logits["test"]),
        points=points,
        out_of_scope=describe_rule(rule, rows, logits),
        actions={str(name): action for name, action in config.actions.items()},
        notes=(*rows.notes, *_notes(config, points), *_warnings(outcomes)),
        config=config.to_dict(),
    )
    result = names_only(result, config, folder)
    return _put(result, config, folder, rows, outcomes, calibrator, rule, fresh, started, tell)


def _put(
    result: StudyResult,
    config: StudyConfig,
    folder: Path,
    rows: StudyRows,
    outcomes: Sequence[Outcome],
    calibrator: Calibrator,
    rule: OodRule | None,
    fresh: Fresh | None,
    started: float,
    tell: Callable[[str], None],
) -> StudyResult:
    """Pack the bundle, judge it by fresh rows where there are some, and write all files."""
    best = outcomes[result.chosen]
    assert isinstance(best, TrainedCandidate)
    scorer, part = best.scorer(), rows["calibrate"]
    largest = result.config.get("largest_weight")
    calib = CalibRows(best.logits["calibrate"], part.codes, part.weights, largest)

    def packed(place: Path, files: dict[str, Path]) -> Bundle:
        return pack(
            place,
            scorer=scorer,
            calibrator=calibrator,
            points=bundle_points(result.points),
            actions=result.actions,
            ood=rule,
            metrics=packed_figures(result),
            sources=list(sources_of(config).items()),
            provenance=_provenance(result),
            files=files,
            calib=calib,
            force=True,
        )

    # Nothing of an earlier study is replaced before all of the new one is made.
    with drafted(folder) as draft:
        tell("packing the bundle")
        bundle = packed(draft / BUNDLE, {})
        if fresh is not None:
            from calibrant.study.truth import judged_by_truth

            tell(f"checking the bundle on {len(fresh.texts):,} fresh rows")
            result = judged_by_truth(result, rows, bundle, outcomes, fresh)
        result = replace(result, seconds=time.perf_counter() - started)
        tell("writing the report")
        result, report = _reported(result, draft / "report.html")
        write_json(result.to_dict(), draft / "result.json")
        write_json(rows.in_files().to_dict(), draft / "splits.json")
        write_config(config, draft / "study.toml")
        packed(folder / BUNDLE, report)
        put(draft, folder, ("study.toml", "splits.json", "result.json", *report))
    return result


def _reported(result: StudyResult, path: Path) -> tuple[StudyResult, dict[str, Path]]:
    """Write the report; where what draws it is missing, add a note that says so instead."""
    missing = [name for name in _DRAWN_WITH if find_spec(name) is None]
    if not missing:
        page = write_study_html(result, path, source=result.config["data"], name="--out")
        return result, {path.name: page}
    are, there = ("is", "it is") if len(missing) == 1 else ("are", "they are")
    note = f"{path.name} was not written, for {' and '.join(missing)} {are} not here: run the same "
    note += f"command where {there}; nothing is trained again."
    return replace(result, notes=(*result.notes, note)), {}


def _check_actions(config: StudyConfig, rows: StudyRows) -> None:
    known = [str(name) for name in rows.classes]
    for name in config.actions:
        if str(name) not in known:
            listed = ", ".join(f"'{one}'" for one in known[:8])
            raise InputError(
                f"there is an action for '{name}', which is not among the classes {listed}: name "
                "one of them."
            )


def _refuse_none(outcomes: Sequence[Outcome]) -> None:
    if all(isinstance(each, str) for each in outcomes):
        raise TrainingError(f"no candidate could be trained; of the first: {outcomes[0]}")


def _fitted_calibrator(config: StudyConfig, rows: StudyRows, logits: FloatArray) -> Calibrator:
    codes, weights = rows["calibrate"].scored
    made: Calibrator = (
        AutoCalibrator() if config.calibrator == "auto" else find_method(config.calibrator)()
    )
    own = logits[rows["calibrate"].inside]
    return made.fit(own, rows.labels(codes), weights, classes=rows.classes)


def _calibrated(rows: StudyRows, calibrator: Calibrator, logits: FloatArray) -> Evaluation:
    codes, weights = rows["test"].scored
    probs = calibrator.predict_proba(logits[rows["test"].inside])
    return evaluate(codes, probs, weights=weights).with_classes(rows.classes)


def _focus(points: Sequence[PointResult], rows: StudyRows) -> Any:
    """Return the class of the first promise; without one the rarest class."""
    named = [each.result.of for each in points if each.result.of is not None]
    if named:
        return named[0]
    counts = rows.sizes()["train"]["classes"]
    return min(rows.classes, key=lambda name: counts[str(name)])


def _notes(config: StudyConfig, points: Sequence[PointResult]) -> list[str]:
    """Return what a reader must know about the promises."""
    notes = []
    acting = [p.result.of for p in points if p.decides and isinstance(p.result, OperatingPoint)]
    if len(set(acting)) > 1:
        notes.append(
            "Several classes decide: a row that more than one would act on goes to the most "
            "probable of them, so what is done in the name of a class need not be all the rows "
            "that its promise is about."
        )
    notes += decided_by_later(points)
    if config.group is not None and points:
        notes.append(
            f"Rows of one '{config.group}' may be alike, but the promises count each of them as "
            "drawn by itself: with few large groups they are less sure than they say."
        )
    if config.golden is None and config.kind != "table" and points:
        notes.append(
            f"Without a golden set the promises are about {config.kind}s that the model was not "
            f"trained on, each counted once: equal {config.kind}s stand in one split."
        )
    return notes


def _warnings(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what training warned of, once each."""
    told: dict[str, None] = {}
    for each in outcomes:
        if isinstance(each, TrainedCandidate):
            told.update(dict.fromkeys(each.facts["warnings"]))
    return list(told)


def _provenance(result: StudyResult) -> dict[str, Any]:
    """Return the settings and the splits."""
    told = dict(result.config)
    splits = {
        name: {"source": part["source"], "rows": part["rows"]}
        for name, part in result.splits.items()
    }
    return {"config": told, "splits": splits, "confidence_together": told["confidence"]}
