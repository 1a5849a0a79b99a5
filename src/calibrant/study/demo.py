"""The demo: a study on the built-in corpus, judged by messages with a known posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.data import return_reasons
from calibrant.files.lock import exclusive_folder
from calibrant.inputs import as_seed
from calibrant.study.candidates.devices import refuse_torchrun
from calibrant.study.candidates.processes import refuse_reimported_script
from calibrant.study.result import StudyResult
from calibrant.study.settings.config import CANDIDATES, StudyConfig
from calibrant.study.study import run_study_in
from calibrant.study.study_folder import check_output_folder, output_folder

HOLD = ("item_defective: precision>=0.85", "item_defective: recall>=0.9")
"""The two promises of the return-reason paper: 85 % precision, or 90 % recall."""

NETWORK = (
    ("embedding", 64), ("hidden", 64), ("layers", 1),
    ("embedding_dropout", 0.0), ("dense_dropout", 0.0),
)  # fmt: skip


@dataclass(frozen=True)
class DemoSize:
    """Size of a demo.

    Parameters
    ----------
    logs : number of messages labelled by agents
    golden : number of messages with trusted labels, drawn like the traffic
    fresh : number of messages that the finished bundle is checked on
    model : models to race
    epochs : passes of the BiLSTM over the train rows
    network : options of the BiLSTM, much smaller than the paper's (embedding 1024, hidden 512, 2
        layers) and without dropout, so that overfitting shows within minutes
    candidates : losses
    """

    logs: int = 16_000
    golden: int = 6_000
    fresh: int = 100_000
    model: str = "auto,bilstm"
    epochs: int = 5
    network: tuple[tuple[str, float], ...] = NETWORK
    candidates: tuple[str, ...] = CANDIDATES


DEMO = DemoSize()
"""Takes about three minutes on two cores."""


def run_demo(
    out: str | Path,
    *,
    seed: int = 0,
    size: DemoSize | None = None,
    progress: Callable[[str], None] | None = None,
) -> StudyResult:
    """Write logs and a golden set, run a study on them, and check its bundle on fresh messages."""
    refuse_torchrun()
    refuse_reimported_script()
    folder, seed = output_folder(out), as_seed(seed)
    with exclusive_folder(folder):
        check_output_folder(folder)
        return _run_demo_in(folder, seed, DEMO if size is None else size, progress)


def _run_demo_in(
    folder: Path, seed: int, size: DemoSize, progress: Callable[[str], None] | None
) -> StudyResult:
    parts: dict[str, Any] = {"out_of_scope": 0.03}
    logs = return_reasons.draw(size.logs, source="logs", seed=seed)
    golden = return_reasons.draw(size.golden, source="golden", seed=seed, **parts)
    # Different rows from the golden set: each seed of a source gives an independent stream.
    fresh = return_reasons.draw(size.fresh, source="golden", seed=seed + 1, **parts)
    config = StudyConfig(
        data=str(logs.write(folder / "logs.csv")),
        golden=str(golden.write(folder / "golden.csv")),
        text="message",
        label="reason",
        out_of_scope=return_reasons.OUT_OF_SCOPE,
        overlap="drop",
        candidates=size.candidates,
        model=size.model,
        model_options=dict(size.network),
        training={
            "epochs": size.epochs,
            "max_length": 64,
            "learning_rate": 6e-3,
            "schedule": "cosine",
            "patience": None,
        },
        hold=HOLD,
        actions=return_reasons.ACTIONS,
        seed=seed,
        title="Why do customers send things back?",
    )
    return run_study_in(folder, config, progress=progress, fresh=fresh)
