"""The steps of a study: train candidates, compare, calibrate, certify, pack."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bundle import Bundle, CalibRows, pack
from calibrant.bundle.packing import add_files
from calibrant.calibrators import AutoCalibrator, Calibrator
from calibrant.calibrators.base.registry import find_method
from calibrant.errors import InputError, TrainingError
from calibrant.files.lock import exclusive_folder
from calibrant.fitting.loss_text import is_proper
from calibrant.inputs import FloatArray
from calibrant.metrics import evaluate
from calibrant.ood import OodRule
from calibrant.results import Evaluation
from calibrant.study.candidates.candidate import StudyCandidate, short_name
from calibrant.study.candidates.devices import refuse_torchrun
from calibrant.study.candidates.processes import refuse_reimported_script
from calibrant.study.candidates.race import TrainedStudy, train_study
from calibrant.study.candidates.train_all import Outcome
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.choose import compare_candidates
from calibrant.study.judge import (
    evaluate_candidates,
    explain_choice,
    measure_gain,
    measure_skill,
    train_gradient_boosting,
)
from calibrant.study.promises import (
    bundle_points,
    certify,
    describe_rule,
    fit_rule,
    note_fallback_points,
    parse_promises,
    place_thresholds,
)
from calibrant.study.report.page import write_study_html
from calibrant.study.result import PointResult, StudyResult, packed_figures
from calibrant.study.rows.read import read_study_rows
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig
from calibrant.study.settings.config_file import config_text, write_config
from calibrant.study.settings.models import FAMILIES, note_left_out
from calibrant.study.study_folder import (
    BUNDLE,
    CANDIDATE_FOLDERS,
    check_output_folder,
    draft_folder,
    input_files,
    make_candidates_folder,
    output_folder,
    publish_outputs,
    strip_paths,
    write_json,
)
from calibrant.thresholds import OperatingPoint

if TYPE_CHECKING:
    from calibrant.study.truth import FreshRows


_REPORT_PACKAGES = ("plotly", "jinja2")
"""Packages that only the report needs."""


@dataclass(frozen=True)
class _FittedParts:
    """What the bundle is packed from: rows, candidates, calibrator and out-of-scope rule."""

    rows: StudyRows
    outcomes: Sequence[Outcome]
    calibrator: Calibrator
    rule: OodRule | None


def run_study(
    config: StudyConfig,
    out: str | Path,
    *,
    progress: Callable[[str], None] | None = None,
    fresh: FreshRows | None = None,
) -> StudyResult:
    """Run a study and write its bundle, report and intermediate results to `out`.

    Rows are read and divided into splits. Every candidate is trained on the train rows and steered
    by the steer rows: the models are raced with cross-entropy, and the other losses are trained on
    the winner; requested averages of networks (ensembles, MC dropout) and a weighted ensemble of
    what was trained are candidates too. Candidates are compared by log loss after temperature
    scaling on the choice rows, which no candidate was trained or steered on (`choose_among`), and
    all are evaluated on the test rows and on held-out logs. A calibrator is chosen and the promises
    are certified on the calibrate rows, and the promises are checked on the test rows. The bundle
    is packed last; that of a model that is not clearly better than the class shares is not packed
    unless `pack_anyway` is set, and nothing is promised with it.

    Candidates already trained with the same settings and files are reused, so an interrupted study
    resumes where it stopped, and one that only changes a promise takes seconds. The output of an
    earlier study in `out`, including its settings and splits, is replaced only once the new study
    is complete; a file with the same name that was not written by a study is an error, raised
    before training. Only one study at a time can run in `out`. If a package needed for the report
    is missing, the study adds a note and writes everything else.

    Parameters
    ----------
    config : the settings
    out : output folder; created if it does not exist
    progress : called with one-line messages
    fresh : rows with a known posterior, to judge the study by

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.data import return_reasons
    >>> from calibrant.study import StudyConfig, run_study
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = return_reasons.draw(600, source="logs").write(place / "logs.csv")
    >>> _ = return_reasons.draw(300, source="golden").write(place / "golden.csv")
    >>> config = StudyConfig(data=str(place / "logs.csv"), golden=str(place / "golden.csv"),
    ...     text="message", label="reason", candidates=("ce",), overlap="drop")
    >>> result = run_study(config, place / "run")
    >>> sorted(p.name for p in (place / "run").iterdir())
    ['bundle', 'candidates', 'report.html', 'result.json', 'splits.json', 'study.toml']
    """
    refuse_torchrun()
    refuse_reimported_script()
    folder = output_folder(out)
    with exclusive_folder(folder):
        return run_study_in(folder, config, progress=progress, fresh=fresh)


def run_study_in(
    folder: Path,
    config: StudyConfig,
    *,
    progress: Callable[[str], None] | None = None,
    fresh: FreshRows | None = None,
) -> StudyResult:
    """Run a study in a folder that `exclusive_folder` locked; parameters as in `run_study`."""
    notify, started = progress or (lambda message: None), time.perf_counter()
    config_text(config)  # fail on unsaveable settings before training
    check_output_folder(folder)
    rows = read_study_rows(config)
    requests = parse_promises(config.hold, rows.classes)
    _check_actions(config, rows)
    make_candidates_folder(folder)

    trained = train_study(rows, config, folder / CANDIDATE_FOLDERS, notify)
    _check_any_trained(trained.outcomes)
    notify("evaluating the candidates")
    best, choice = _choose_candidate(rows, config, trained)

    notify("calibrating and certifying")
    logits = dict(best.logits)
    calibrator = _fit_calibrator(config, rows, best.candidate, logits["calibrate"])
    skill = measure_skill(rows, calibrator, logits)
    packed = skill.learned or config.pack_anyway
    score = choose_scope_score(config, best.candidate, len(rows.classes))
    rule = fit_rule(logits, score)
    confidence, largest = config.confidence, config.largest_weight
    requests = requests if packed else ()
    points = certify(rows, requests, logits, rule, confidence=confidence, largest_weight=largest)
    fitted = calibrator.chosen_ if isinstance(calibrator, AutoCalibrator) else calibrator
    result = StudyResult(
        title=config.title,
        kind=rows.kind,
        classes=rows.classes,
        focus=_focus(points, rows),
        splits=rows.sizes(),
        method=fitted.method,
        choice=calibrator.comparison_ if isinstance(calibrator, AutoCalibrator) else None,
        calibrated=_evaluate_calibrated(rows, calibrator, logits["test"]),
        points=points,
        out_of_scope=describe_rule(rule, rows, logits),
        actions={str(name): action for name, action in config.actions.items()},
        notes=_collect_notes(config, rows, points, trained.outcomes),
        config=config.to_dict(),
        skill=skill,
        packed=packed,
        **choice,
    )
    result = strip_paths(result, config, folder)
    parts = _FittedParts(rows, trained.outcomes, calibrator, rule)
    return _write_outputs(
        folder, result, parts, config, fresh=fresh, started=started, notify=notify
    )


def _choose_candidate(
    rows: StudyRows, config: StudyConfig, trained: TrainedStudy
) -> tuple[TrainedCandidate, dict[str, Any]]:
    """Return the chosen candidate, and the fields of the result about the choice."""
    comparison = compare_candidates(rows, trained.candidates, trained.outcomes, trained.models)
    results = evaluate_candidates(rows, trained, comparison)
    best = trained.outcomes[comparison.chosen]
    assert isinstance(best, TrainedCandidate)  # failed candidates are never chosen
    choice = {
        "chosen": comparison.chosen,
        "why": explain_choice(results, comparison, len(rows[rows.compared_on])),
        "gain": measure_gain(rows, trained, results, comparison.chosen),
        "winner": short_name(trained.models[0]),
    }
    if rows.kind == "table" and "boosting" not in config.models:
        results.append(train_gradient_boosting(rows, config))
    return best, choice | {"candidates": tuple(results)}


def _write_outputs(
    folder: Path,
    result: StudyResult,
    parts: _FittedParts,
    config: StudyConfig,
    *,
    fresh: FreshRows | None,
    started: float,
    notify: Callable[[str], None],
) -> StudyResult:
    """Pack the bundle, check it on fresh rows if there are any, and write all files.

    Everything is written to a draft folder first: an earlier study is replaced only at the end.
    """
    with draft_folder(folder) as draft:
        bundle = None
        if result.packed:
            notify("packing the bundle")
            bundle = _pack_bundle(draft / BUNDLE, result, parts, config)
            result = replace(result, points=place_thresholds(result.points, bundle))
        if fresh is not None and bundle is not None:
            from calibrant.study.truth import judge_by_truth

            notify(f"checking the bundle on {len(fresh.texts):,} fresh rows")
            result = judge_by_truth(result, parts.rows, bundle, parts.outcomes, fresh)
        result = replace(result, seconds=time.perf_counter() - started)
        notify("writing the report")
        result, report = _write_report(result, draft / "report.html")
        if bundle is not None:
            add_files(draft / BUNDLE, report)
        write_json(result.to_dict(), draft / "result.json")
        write_json(parts.rows.to_file_positions().to_dict(), draft / "splits.json")
        write_config(config, draft / "study.toml")
        publish_outputs(draft, folder)
    return result


def _pack_bundle(
    path: Path, result: StudyResult, parts: _FittedParts, config: StudyConfig
) -> Bundle:
    """Pack the bundle of the chosen candidate, without the report."""
    best, rows = parts.outcomes[result.chosen], parts.rows["calibrate"]
    assert isinstance(best, TrainedCandidate)  # failed candidates are never chosen
    return pack(
        path,
        scorer=best.scorer(),
        calibrator=parts.calibrator,
        points=bundle_points(result.points),
        actions=result.actions,
        ood=parts.rule,
        metrics=packed_figures(result),
        sources=list(input_files(config).items()),
        provenance=_provenance(result),
        calib=CalibRows(best.logits["calibrate"], rows.codes, rows.weights, config.largest_weight),
    )


def _write_report(result: StudyResult, path: Path) -> tuple[StudyResult, dict[str, Path]]:
    """Write the report, or add a note if a package that it needs is missing.

    The paths of the written files are returned as well, by name.
    """
    missing = [name for name in _REPORT_PACKAGES if find_spec(name) is None]
    if not missing:
        page = write_study_html(result, path, source=result.config["data"], name="--out")
        return result, {path.name: page}
    verb, again = ("is", "it is") if len(missing) == 1 else ("are", "they are")
    note = (
        f"{path.name} was not written because {' and '.join(missing)} {verb} not installed: run "
        f"the same command where {again}; no candidate is trained again."
    )
    return replace(result, notes=(*result.notes, note)), {}


def choose_scope_score(config: StudyConfig, candidate: StudyCandidate, n_classes: int) -> str:
    """Return the score of the out-of-scope rule.

    Energy needs the logits of a network: those of a weighted ensemble are log-probabilities, with
    energy 0 in every row. Entropy flags the rows that a model is unsure of; of trees and n-grams
    that is asked for where out-of-scope rows are known, and never with two classes.
    """
    if config.ood != "auto":
        return config.ood
    models = [each.model for each in candidate.members or (candidate,)]
    deep = all(model not in FAMILIES for model in models)
    if deep:
        return "entropy" if candidate.way == "weighted" else "energy"
    expected = config.out_of_scope is not None and n_classes > 2
    return "entropy" if expected else "unreadable"


def _check_actions(config: StudyConfig, rows: StudyRows) -> None:
    known = [str(name) for name in rows.classes]
    for name in config.actions:
        if str(name) not in known:
            listed = ", ".join(f"'{class_name}'" for class_name in known[:8])
            raise InputError(
                f"an action is set for '{name}', which is not among the classes {listed}: name one "
                "of them."
            )


def _check_any_trained(outcomes: Sequence[Outcome]) -> None:
    if all(isinstance(outcome, str) for outcome in outcomes):
        raise TrainingError(f"no candidate could be trained; the first one failed: {outcomes[0]}")


def _fit_calibrator(
    config: StudyConfig, rows: StudyRows, candidate: StudyCandidate, logits: FloatArray
) -> Calibrator:
    codes, weights = rows["calibrate"].codes_and_weights
    proper = candidate.way == "weighted" or is_proper(candidate.loss)  # members are calibrated
    calibrator: Calibrator = (
        AutoCalibrator(uncalibrated=proper)
        if config.calibrator == "auto"
        else find_method(config.calibrator)()
    )
    in_scope = logits[rows["calibrate"].inside]
    return calibrator.fit(in_scope, rows.labels(codes), weights, classes=rows.classes)


def _evaluate_calibrated(rows: StudyRows, calibrator: Calibrator, logits: FloatArray) -> Evaluation:
    codes, weights = rows["test"].codes_and_weights
    probs = calibrator.predict_proba(logits[rows["test"].inside])
    return evaluate(codes, probs, weights=weights).with_classes(rows.classes)


def _focus(points: Sequence[PointResult], rows: StudyRows) -> Any:
    """Return the class of the first promise, or the rarest class if no promise names one."""
    promised = [point.result.of for point in points if point.result.of is not None]
    if promised:
        return promised[0]
    counts = rows.sizes()["train"]["classes"]
    return min(rows.classes, key=lambda name: counts[str(name)])


def _promise_notes(config: StudyConfig, points: Sequence[PointResult]) -> list[str]:
    """Return caveats about the promises."""
    notes = []
    acting = [p.result.of for p in points if p.decides and isinstance(p.result, OperatingPoint)]
    if len(set(acting)) > 1:
        notes.append(
            "Several classes decide: a row that more than one would act on goes to the most "
            "probable of them, so the rows acted on for a class may be fewer than its promise "
            "covers."
        )
    notes += note_fallback_points(points)
    if config.group is not None and points:
        notes.append(
            f"Rows of one '{config.group}' may be correlated, but the promises treat every row as "
            "an independent draw: with a few large groups their confidence is overstated."
        )
    if config.golden is None and config.kind != "table" and points:
        notes.append(
            f"Without a golden set the promises are about {config.kind}s that the model was not "
            f"trained on, each counted once: equal {config.kind}s are kept in one split."
        )
    return notes


def _collect_notes(
    config: StudyConfig,
    rows: StudyRows,
    points: Sequence[PointResult],
    outcomes: Sequence[Outcome],
) -> tuple[str, ...]:
    """Return all notes, with distinct training warnings; target leakage comes first."""
    from calibrant.fitting.target_leakage import LEAKAGE

    warnings = {
        _name_candidate(message, outcome.candidate.name): None
        for outcome in outcomes
        if isinstance(outcome, TrainedCandidate)
        for message in outcome.facts["warnings"]
    }
    notes = (*rows.notes, *note_left_out(config), *_promise_notes(config, points), *warnings)
    return tuple(sorted(notes, key=lambda note: not note.startswith(LEAKAGE)))


def _name_candidate(message: str, name: str) -> str:
    """Name the candidate in a warning that is about it alone."""
    from calibrant.fitting.steer_figures import NOTHING_LEARNED

    return f"{name}: {message}" if message.startswith(NOTHING_LEARNED) else message


def _provenance(result: StudyResult) -> dict[str, Any]:
    """Return the settings and the split sizes."""
    settings = dict(result.config)
    splits = {
        name: {"source": part["source"], "rows": part["rows"]}
        for name, part in result.splits.items()
    }
    return {"config": settings, "splits": splits, "confidence_together": settings["confidence"]}
