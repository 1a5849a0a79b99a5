"""Strength of the penalty of a linear layer, chosen on the steer rows."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.errors import InputError, TrainingError
from calibrant.fitting.epoch_record import EpochRecord
from calibrant.fitting.steer_figures import steer_figures
from calibrant.inputs import FloatArray, IntArray
from calibrant.losses import CrossEntropyLoss, as_loss
from calibrant.losses.names import LossLike
from calibrant.training.lbfgs import Minimum, Point
from calibrant.training.linear_basis import Features
from calibrant.training.linear_solver import LinearLayer, LinearProblem, is_sum_over_rows

PENALTIES = (1.0, 10.0, 100.0, 1000.0)
_TOLERANCE = 3e-3  # of `fit_linear`; a tenth of it took twice the time and was no better
_SHARE = 0.3
"""Share of the penalty's gradient that other losses than cross-entropy may leave.

Where cross-entropy has made the train rows sure, focal losses are flat: relative to weights of 0
their gradient is short long before the minimum, and the layer would stay that of cross-entropy.
"""

_ROUNDS = 8
"""Updates of a steered loss (AdaFocal) at each strength, at most."""

_PATIENCE = 2
"""Strengths, or updates at one strength, without improvement after which to stop."""


@dataclass(frozen=True)
class PathRecord(EpochRecord):
    """Metrics of one strength of the penalty, or of one update of a steered loss at it.

    Of `EpochRecord`, `epoch` counts the records and `learning_rate` is 0.

    Parameters
    ----------
    C : inverse strength of the penalty
    steps : steps of the solver
    """

    C: float = 1.0
    steps: int = 0


@dataclass(frozen=True, eq=False)
class LinearPath:
    """Linear layers along a path of penalties, and the best of them.

    Parameters
    ----------
    layer : the layer of the best record
    loss : its loss, with the state of the last update
    records : one for each strength, or for each update at it
    best : position of the record with the lowest refinement
    """

    layer: LinearLayer
    loss: nn.Module
    records: tuple[PathRecord, ...]
    best: int


def fit_linear_path(
    train: tuple[Features, IntArray],
    steer: tuple[Features, IntArray],
    n_classes: int,
    *,
    loss: LossLike = "ce",
    penalties: float | Sequence[float] = PENALTIES,
    log_shift: FloatArray | None = None,
) -> LinearPath:
    """Fit linear layers with weaker and weaker penalties, and choose one on the steer rows.

    Each fit starts from the last one, with another loss than cross-entropy from the minimum of
    cross-entropy with the same penalty. The layer with the lowest log loss of the steer rows after
    temperature scaling is chosen: how sure the model is, a calibrator can correct later. A loss
    that learns from the steer rows (AdaFocal) is updated and the layer fitted again, up to 8
    times for each strength.

    Parameters
    ----------
    train, steer : features and labels 0 .. K - 1, see `fit_linear`
    n_classes : K
    loss : see `calibrant.losses.as_loss`; it is copied
    penalties : inverse strengths C to try
    log_shift : (K,) shift of the logits if the train rows were resampled

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> features = draw.normal(size=(400, 3))
    >>> labels = (features[:, 0] + draw.normal(size=400) > 0).astype(np.int64)
    >>> rows = (features[:300], labels[:300]), (features[300:], labels[300:])
    >>> path = fit_linear_path(*rows, 2, loss="adafocal")
    >>> path.records[path.best].accuracy > 0.7
    True
    """
    strengths = check_penalties(penalties)
    counts = torch.bincount(torch.from_numpy(train[1]), minlength=n_classes)
    first = as_loss(loss, class_counts=counts)
    walk = _Walk(LinearProblem(*train, n_classes), steer, log_shift)
    waited = 0
    for strength in strengths:
        waited = 0 if walk.fit_at(strength, copy.deepcopy(first)) else waited + 1
        if waited == _PATIENCE and is_sum_over_rows(first):
            break  # other losses may learn nothing but with a weak penalty
    return walk.result()


def check_penalties(penalties: Any) -> list[float]:
    """Return inverse strengths in rising order; raise `InputError` for other values."""
    listed = [penalties] if isinstance(penalties, Real) else penalties
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise InputError(f"C must be a number above 0 or a list of them, got {penalties!r}.")
    for value in listed:
        number = float(value) if isinstance(value, Real) else math.nan
        if isinstance(value, bool) or not 0 < number < math.inf:
            raise InputError(f"C must hold numbers above 0, got {value!r}.")
    return sorted({float(value) for value in listed})


class _Walk:
    """A path of penalties: the records, and the best layer so far."""

    def __init__(
        self,
        problem: LinearProblem,
        steer: tuple[Features, IntArray],
        log_shift: FloatArray | None,
    ) -> None:
        self.problem, self.log_shift = problem, log_shift
        self.steer_features, self.steer_labels = steer
        self.records: list[PathRecord] = []
        self.point: Point | None = None
        self.origin: Point | None = None
        self.best: tuple[int, LinearLayer, nn.Module] | None = None

    def fit_at(self, strength: float, loss: nn.Module) -> bool:
        """Fit at one strength and return whether that improved the best refinement."""
        steered = bool(getattr(loss, "steered", False))
        improved, waited = False, 0
        self.point = self._start_at(strength, loss)
        for _ in range(_ROUNDS if steered else 1):
            better = self._fit_once(strength, loss)
            improved, waited = improved or better, 0 if better else waited + 1
            if waited == _PATIENCE:
                break
        return improved

    def _start_at(self, strength: float, loss: nn.Module) -> Point | None:
        """Return where to start: with cross-entropy the last minimum, else that of cross-entropy.

        A loss that is not convex would leave no bad minimum that it met with a stronger penalty,
        and one with jumps (MMCE, dual focal) cannot be followed far from there.
        """
        if type(loss) is CrossEntropyLoss:
            return self.point
        plain = CrossEntropyLoss()
        self.origin = self.problem.minimise(
            plain, C=strength, start=self.origin, tolerance=_TOLERANCE
        ).point
        return self.origin

    def result(self) -> LinearPath:
        """Return the best layer with all records."""
        assert self.best is not None
        best, layer, loss = self.best
        return LinearPath(layer, loss, tuple(self.records), best)

    def _fit_once(self, strength: float, loss: nn.Module) -> bool:
        """Fit, evaluate the steer rows and update the loss; return whether it is the best."""
        started = time.perf_counter()
        if callable(set_epoch := getattr(loss, "set_epoch", None)):
            set_epoch(len(self.records))
        plain = type(loss) is CrossEntropyLoss or not is_sum_over_rows(loss)
        minimum = self.problem.minimise(
            loss,
            C=strength,
            start=self.point,
            tolerance=_TOLERANCE,
            share=math.inf if plain else _SHARE,
        )
        self.point = minimum.point
        layer = self.problem.layer(minimum.point)
        logits = layer.logits(self.steer_features)
        if self.log_shift is not None:
            logits = logits - self.log_shift
        self.records.append(self._record(loss, logits, strength, minimum, started))
        if getattr(loss, "steered", False):
            updated: Any = loss
            updated.update(torch.from_numpy(logits), torch.from_numpy(self.steer_labels))
        last = len(self.records) - 1
        if self.best is not None and not (
            self.records[last].refinement < self.records[self.best[0]].refinement
        ):
            return False
        self.best = (last, layer, loss)
        return True

    def _record(
        self, loss: nn.Module, logits: FloatArray, strength: float, minimum: Minimum, started: float
    ) -> PathRecord:
        shift = loss_shift(loss)
        own = logits if shift is None else logits - shift
        if not np.isfinite(own).all():
            raise TrainingError(
                f"the logits of the steer rows are not finite at C={strength:g}: choose a smaller "
                "C."
            )
        figures = steer_figures(own, self.steer_labels)
        return PathRecord(
            epoch=len(self.records),
            loss=minimum.loss,
            learning_rate=0.0,
            seconds=time.perf_counter() - started,
            gammas=_gammas(loss),
            C=strength,
            steps=minimum.steps,
            **asdict(figures),
        )


def loss_shift(loss: nn.Module) -> FloatArray | None:
    """Return the shift (K,) of the logits caused by a loss, or None."""
    get_shift = getattr(loss, "log_shift", None)
    shift = get_shift() if callable(get_shift) else None
    return None if shift is None else np.asarray(shift.detach().cpu().double().numpy())


def _gammas(loss: nn.Module) -> tuple[float, float] | None:
    """Return the smallest and the largest gamma of a loss that has gammas."""
    for part in loss.modules():
        if isinstance(gammas := getattr(part, "gammas", None), Tensor):
            return float(gammas.min()), float(gammas.max())
    return None
