"""Result of an automatic choice: the candidates and the chosen method."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """One method in the comparison; figures are cross-validated.

    Parameters
    ----------
    method : name of the method
    score : mean over all rows of the score used to choose
    gain : decrease of the score compared with no calibration
    gain_error : standard error of the gain
    nll, brier, ece_em : figures of the out-of-fold probabilities; None if infinite
    why_not : reason for its exclusion, or None
    """

    method: str
    score: float | None = None
    gain: float | None = None
    gain_error: float | None = None
    nll: float | None = None
    brier: float | None = None
    ece_em: float | None = None
    why_not: str | None = None


@dataclass(frozen=True)
class Choice:
    """The comparison behind an `AutoCalibrator`, from the simplest to the most complex method.

    Parameters
    ----------
    chosen : name of the chosen method
    why : the reason, in one sentence
    score : 'nll' or 'brier'
    n : number of rows used to choose
    folds, repeats : number of folds and of splits
    candidates : one entry per method
    """

    chosen: str
    why: str
    score: str
    n: int
    folds: int
    repeats: int
    candidates: tuple[Candidate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**asdict(self), "candidates": [asdict(c) for c in self.candidates]}

    def __str__(self) -> str:
        lines = [
            f"{'method':<18} {self.score:>9} {'gain':>10} {'± s.e.':>9} {'brier':>8} {'ece_em':>8}"
        ]
        for c in self.candidates:
            mark = " <- chosen" if c.method == self.chosen else ""
            if c.score is None:
                lines.append(f"{c.method:<18} left out: {c.why_not}")
                continue
            lines.append(
                f"{c.method:<18} {_cell(c.score, 9, 5)} {_cell(c.gain, 10, 5, sign=True)} "
                f"{_cell(c.gain_error, 9, 5)} {_cell(c.brier, 8, 4)} {_cell(c.ece_em, 8, 4)}{mark}"
            )
        how = f"{self.n:,} rows, {self.folds} folds, repeated {self.repeats} times"
        return "\n".join([*lines, f"{self.why} ({how}.)"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _cell(value: float | None, width: int, digits: int, *, sign: bool = False) -> str:
    if value is None:
        return " " * width
    return f"{value:>{'+' if sign else ''}{width}.{digits}f}"
