"""Checks of what a network is built from."""

from __future__ import annotations

from calibrant.errors import InputError

__all__ = ["check_counts", "check_dropout"]


def check_counts(*, least: int = 1, **counts: int) -> None:
    """Refuse sizes that are not whole numbers of at least `least`."""
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < least:
            raise InputError(f"{name} must be a whole number of at least {least}, got {count!r}.")


def check_dropout(**shares: float) -> None:
    """Refuse shares that are not in [0, 1)."""
    for name, share in shares.items():
        if not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise InputError(f"{name} must be at least 0 and below 1, got {share!r}.")
