"""The demo: a whole study on the built-in corpus, judged by messages whose posterior is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.data import return_reasons
from calibrant.files.lock import exclusive_folder
from calibrant.inputs import as_seed
from calibrant.study.candidates.devices import refuse_torchrun
from calibrant.study.result import StudyResult
from calibrant.study.settings.config import CANDIDATES, StudyConfig
from calibrant.study.study import study_in
from calibrant.study.study_folder import check_place, folder_of

__all__ = ["DEMO", "DemoSize", "run_demo"]

HOLD = ("item_defective: precision>=0.85", "item_defective: recall>=0.9")
"""The two promises of the return-reason paper: 85 % precision, or 90 % recall."""

NETWORK = (
    ("embedding", 64), ("hidden", 64), ("layers", 1),
    ("embedding_dropout", 0.0), ("dense_dropout", 0.0),
)  # fmt: skip


@dataclass(frozen=True)
class DemoSize:
    """How large a demo is.

    Parameters
    ----------
    logs : messages with the labels that agents clicked
    golden : messages with labels that can be trusted, drawn like the traffic
    fresh : messages that the finished bundle is checked on
    epochs : passes over the train rows
    network : of the BiLSTM, much smaller than the paper's (embedding 1024, hidden 512, 2 layers)
        and without dropout, so that over-fitting shows within minutes
    candidates : losses
    """

    logs: int = 16_000
    golden: int = 6_000
    fresh: int = 100_000
    epochs: int = 5
    network: tuple[tuple[str, float], ...] = NETWORK
    candidates: tuple[str, ...] = CANDIDATES


DEMO = DemoSize()
"""Small enough for three minutes on two cores."""


def run_demo(
    out: str | Path,
    *,
    seed: int = 0,
    size: DemoSize | None = None,
    progress: Callable[[str], None] | None = None,
) -> StudyResult:
    """Write logs and a golden set, run a study on them, and check its bundle on fresh messages."""
    refuse_torchrun()
    folder, seed = folder_of(out), as_seed(seed)
    with exclusive_folder(folder):
        check_place(folder)
        return _demo(folder, seed, DEMO if size is None else size, progress)


def _demo(
    place: Path, seed: int, size: DemoSize, progress: Callable[[str], None] | None
) -> StudyResult:
    parts: dict[str, Any] = {"out_of_scope": 0.03}
    logs = return_reasons.draw(size.logs, source="logs", seed=seed)
    golden = return_reasons.draw(size.golden, source="golden", seed=seed, **parts)
    # Other rows than the golden set's: seeds of one source give streams of their own.
    fresh = return_reasons.draw(size.fresh, source="golden", seed=seed + 1, **parts)
    config = StudyConfig(
        data=str(logs.write(place / "logs.csv")),
        golden=str(golden.write(place / "golden.csv")),
        text="message",
        label="reason",
        out_of_scope=return_reasons.OUT_OF_SCOPE,
        overlap="drop",
        candidates=size.candidates,
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
    return study_in(place, config, progress=progress, fresh=fresh)
