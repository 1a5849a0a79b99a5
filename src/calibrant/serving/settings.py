"""Settings of the service: bundle, database, address and limits."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args

from calibrant.client.address import is_loopback
from calibrant.errors import InputError

InputPolicy = Literal["keep", "redacted", "hash"]
"""Stored form of an input: in full, with e-mail addresses and numbers redacted, or as a hash."""


@dataclass(frozen=True)
class Settings:
    """Settings of a service; each has a flag of `calibrant serve`.

    Parameters
    ----------
    bundle : folder of the bundle, as a path or str; watched for a newer bundle
    db : URL of the database
    host, port : address to listen on
    workers : number of processes
    inputs : stored form of an input: "keep", "redacted" or "hash"
    need_key : whether every request requires a key
    max_body : maximum bytes of a request body
    max_inputs : maximum inputs per request
    max_text : maximum characters of a text
    max_queue : maximum rows in the queue; further requests get 503
    max_batch : maximum rows per model call
    max_wait : seconds that a row waits for others to form a batch
    timeout : seconds after which a waiting row gets 503
    grace : seconds that a stopping service still accepts requests while `/readyz` returns 503
    drain : seconds for requests in progress after that
    device : device of the model

    Examples
    --------
    >>> settings = Settings("bundle", max_batch=32)
    >>> Settings.from_json(settings.to_json()) == settings
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
        """Convert the bundle to a path, and validate the values before anything is opened."""
        object.__setattr__(self, "bundle", Path(self.bundle))
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
                "a request of that size would never fit."
            )

    @property
    def keys_needed(self) -> bool:
        """Whether requests require a key: always, unless the service is on loopback."""
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
        """Return the settings as JSON, for worker processes."""
        return json.dumps(asdict(self) | {"bundle": str(self.bundle)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the result of `to_json`."""
        saved: dict[str, Any] = json.loads(text)
        known = {field.name for field in fields(cls)}
        return cls(
            **{k: v for k, v in saved.items() if k in known} | {"bundle": Path(saved["bundle"])}
        )
