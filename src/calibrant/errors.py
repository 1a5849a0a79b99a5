"""Every error Calibrant raises on purpose; each message is one sentence with its remedy."""

from __future__ import annotations

__all__ = [
    "BundleError",
    "CalibrantError",
    "InputError",
    "MissingExtra",
    "NotFitted",
    "SplitMisuse",
    "StoreError",
    "TargetUnreachable",
]


class CalibrantError(Exception):
    """Base of all errors that a user can cause and mend."""

    kind = "error"


class InputError(CalibrantError, ValueError):
    """What came in breaks a rule: a value, a shape, a column, a file."""

    kind = "input"


class NotFitted(CalibrantError):
    """Something was used before it learned anything."""

    kind = "not_fitted"


class TargetUnreachable(CalibrantError):
    """No threshold keeps the promise that was asked for."""

    kind = "target_unreachable"


class SplitMisuse(CalibrantError):
    """Rows meant for one job (train, steer, calibrate, test) were used for another."""

    kind = "split_misuse"


class MissingExtra(CalibrantError, ImportError):
    """An optional dependency is not installed."""

    kind = "missing_extra"

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the optional extra '{extra}': pip install 'calibrant[{extra}]'."
        )


class BundleError(CalibrantError):
    """A bundle is damaged, too new, or names something that is not here."""

    kind = "bundle"


class StoreError(CalibrantError):
    """The store of predictions could not be read or written."""

    kind = "store"
