"""What a service is started with: the bundle, the database, the address and the limits."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args

from calibrant.client.address import is_loopback
from calibrant.errors import InputError

__all__ = ["InputPolicy", "Settings"]

InputPolicy = Literal["keep", "redacted", "hash"]
"""What is kept of an input: all of it, without e-mail addresses and numbers, or its hash only."""


@dataclass(frozen=True)
class Settings:
    """Settings of a service; each has a flag of `calibrant serve`.

    Parameters
    ----------
    bundle : the folder that is served, and looked at for a newer one
    db : address of the database
    host, port : where requests come in
    workers : processes that serve
    inputs : what is kept of an input, see `InputPolicy`
    need_key : whether every request needs a key
    max_body : bytes of a request
    max_inputs : inputs of a request
    max_text : characters of a text
    max_queue : rows that may wait; beyond it requests are told to come again
    max_batch : rows that the model scores at a time
    max_wait : seconds that a row waits for others to be scored with
    timeout : seconds after which a row that still waits is given up
    grace : seconds that a service that was told to stop still takes requests, while `/readyz` says
        that it is stopping
    drain : seconds that it then gives to requests under way
    device : where the model runs

    Examples
    --------
    >>> made = Settings(Path("bundle"), max_batch=32)
    >>> Settings.from_json(made.to_json()) == made
    True
    """

    bundle: Path
    db: str = "sqlite:///calibrant.db"
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    inputs: InputPolicy = "keep"
    need_key: bool = False
    max_body: int = 1_048_576
    max_inputs: int = 1_000
    max_text: int = 20_000
    max_queue: int = 4_096
    max_batch: int = 128
    max_wait: float = 0.001
    timeout: float = 10.0
    grace: float = 0.0
    drain: float = 30.0
    device: str = "auto"

    def __post_init__(self) -> None:
        """Refuse what no service can run with, before anything is opened."""
        if self.inputs not in get_args(InputPolicy):
            raise InputError(f"inputs must be keep, redacted or hash, got {self.inputs!r}.")
        if not 0 <= self.port <= 65_535:
            raise InputError(f"port must be from 0 to 65535, got {self.port}.")
        for name in ("workers", "max_body", "max_inputs", "max_text", "max_queue", "max_batch"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}.")
        self._check_seconds()
        if self.max_inputs > self.max_queue:
            raise InputError(
                f"max_inputs ({self.max_inputs}) must not be above max_queue ({self.max_queue}): "
                "a request of that size could never be taken."
            )

    @property
    def keys_needed(self) -> bool:
        """Whether requests need a key: always where others can reach the service."""
        return self.need_key or not is_loopback(self.host)

    def _check_seconds(self) -> None:
        for name in ("timeout", "drain"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be above 0 seconds, got {getattr(self, name)}.")
        if not 0 <= self.grace <= 3600:
            raise InputError(f"grace must be from 0 to 3600 seconds, got {self.grace}.")
        if not 0 <= self.max_wait <= 1:
            raise InputError(f"max_wait must be from 0 to 1 second, got {self.max_wait}.")

    def to_json(self) -> str:
        """Return the settings as text, for the processes that serve."""
        return json.dumps(asdict(self) | {"bundle": str(self.bundle)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild from `to_json`."""
        saved: dict[str, Any] = json.loads(text)
        known = {field.name for field in fields(cls)}
        return cls(
            **{k: v for k, v in saved.items() if k in known} | {"bundle": Path(saved["bundle"])}
        )
