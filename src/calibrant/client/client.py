"""A client of the service: ask for predictions, tell outcomes, and lose or double nothing."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from calibrant.client.address import checked_url, given_key, open_key_note
from calibrant.client.answers import (
    Answer,
    Erased,
    OddAnswer,
    Recorded,
    ServedBundle,
    StoredPrediction,
)
from calibrant.client.inputs import (
    as_inputs,
    as_outcomes,
    checked_idempotency_key,
    encoded,
)
from calibrant.client.transport import Transport
from calibrant.errors import InputError, ServiceError

__all__ = ["Client"]

Made = TypeVar("Made")

_FORGETTING = 600.0
"""Seconds for a unit to be erased, where the timeout is not longer anyway."""


class Client:
    """Asks a service that `calibrant serve` runs; threads may share it.

    A request that was lost on the way is sent again with the same idempotency key, so that it is
    on record once. The longest a call takes is about (retries + 1) timeouts and the waits between,
    at most 68 seconds each; `forget` has more time.

    What the service refuses raises `InputError` with its sentence; a service that stays away or
    answers nonsense raises `ServiceError`.

    Parameters
    ----------
    url : address of the service
    key : as `calibrant keys add` printed it; by default that of CALIBRANT_KEY, where it is set
    timeout : seconds for one attempt; the service itself gives up a request after 10
    retries : how many times a request is sent again

    Examples
    --------
    >>> with Client("http://127.0.0.1:9", key="cal_secret") as client:
    ...     print(client, client.ready())
    Client('http://127.0.0.1:9') False
    """

    def __init__(
        self, url: str, key: str | None = None, *, timeout: float = 30.0, retries: int = 4
    ) -> None:
        if not isinstance(timeout, int | float) or not 0 < timeout <= 3600:
            raise InputError(f"timeout must be above 0 and at most 3600 s, got {timeout!r}.")
        if not isinstance(retries, int) or not 0 <= retries <= 100:
            raise InputError(f"retries must be a whole number from 0 to 100, got {retries!r}.")
        self.url = checked_url(url)
        key = given_key(key)
        note = open_key_note(self.url, key)
        if note is not None:
            warnings.warn(note, UserWarning, stacklevel=2)
        self._transport = Transport(self.url, key, timeout=float(timeout), retries=retries)

    def predict(
        self,
        *,
        texts: Sequence[str] | None = None,
        rows: Sequence[Mapping[str, Any]] | None = None,
        logits: Any = None,
        unit: str | None = None,
        use_case: str | None = None,
        branch: str | None = None,
        point: int | None = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Ask what to do about one or many inputs; exactly one of texts, rows and logits is given.

        Parameters
        ----------
        texts : a list of texts
        rows : rows of a table, each a dictionary; None or NaN where a value is missing
        logits : for a bundle without a model: for each row a list in the order of the classes, or
            a dictionary from classes to logits; an array (n, K) will do
        unit : whom the inputs are about; all that is on record of a unit can be erased
        use_case, branch : what the predictions are used for, and the branch of an experiment
        point : position of the operating point that decides; by default the first of each class
        idempotency_key : names the request: asked again with the same name, the service gives its
            stored answer; by default a new name for each call
        """
        inputs = as_inputs(texts, rows, logits)
        more = {"unit": unit, "use_case": use_case, "branch": branch, "point": _whole(point)}
        body = {"inputs": inputs, **{k: v for k, v in more.items() if v is not None}}
        found = self._post("/v1/predict", body, idempotency_key)
        return self._read(lambda content: Answer.of(content, len(inputs)), found)

    def outcomes(
        self, outcomes: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Recorded:
        """Tell what became of predictions: the true class, an outcome, or both.

        Parameters
        ----------
        outcomes : dictionaries with `prediction` (an id), `label` and its `source`, or `outcome`
            and its `value` and `text`; a prediction that is not on record refuses all of them, and
            so does a label that is no class of its bundle, unless `other` is True beside it
        idempotency_key : see `predict`
        """
        found = self._post("/v1/outcomes", {"outcomes": as_outcomes(outcomes)}, idempotency_key)
        return self._read(Recorded.of, found)

    def prediction(self, id: str) -> StoredPrediction:
        """Return a prediction in full, with the labels and outcomes that came since.

        Parameters
        ----------
        id : as `predict` returned it
        """
        found = self._transport.call("GET", f"/v1/predictions/{_step(id, 'id')}")
        return self._read(StoredPrediction.of, found)

    def bundle(self) -> ServedBundle:
        """Return which bundle serves, what it reads and what it promises."""
        return self._read(ServedBundle.of, self._transport.call("GET", "/v1/bundle"))

    def ready(self) -> bool:
        """Tell whether the service is there and takes requests; asked once."""
        return self._transport.status("/readyz") == 200

    def reload(self) -> ServedBundle:
        """Let the service load its bundle again now; needs a key of the role admin.

        Where the folder is refused, the old bundle stays and the sentence says why.
        """
        return self._read(ServedBundle.of, self._transport.call("POST", "/v1/bundle/reload"))

    def forget(self, unit: str) -> Erased:
        """Erase all that is on record of a unit; needs a key of the role admin.

        SQLite then writes its file anew, so one attempt may take ten minutes. Where the first
        answer was lost and the request sent again, the counts may be 0: all was erased by then.

        Parameters
        ----------
        unit : as `predict` was given it
        """
        _step(unit, "unit")  # refuses what cannot be sent
        # In the body, for addresses end up in the logs of proxies.
        found = self._transport.call(
            "POST", "/v1/units/erase", content=encoded({"unit": unit}), timeout=_FORGETTING
        )
        return self._read(Erased.of, found)

    def close(self) -> None:
        """Give up the connections; calls that still wait end with an error."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def _post(self, path: str, body: Mapping[str, Any], idempotency_key: str | None) -> Any:
        """Send a body under a name that stays the same in every attempt."""
        name = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        headers = {"Idempotency-Key": checked_idempotency_key(name)}
        return self._transport.call("POST", path, content=encoded(body), headers=headers)

    def _read(self, of: Callable[[Any], Made], content: Any) -> Made:
        try:
            return of(content)
        except OddAnswer as error:
            raise ServiceError(
                f"{self.url} answered as no calibrant service does ({error}): check the address, "
                "and that both sides have the same version of calibrant."
            ) from None


def _step(name: str, what: str) -> str:
    """Return a name as one step of a path, whatever it holds."""
    if not isinstance(name, str) or not name:
        raise InputError(f"{what} must be a text that is not empty, got {name!r}.")
    try:
        # Steps of dots alone would be taken for folders.
        return quote(name, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        raise InputError(f"{what} holds half a character, which cannot be sent.") from None


def _whole(point: Any) -> Any:
    """Turn a whole number of numpy into a plain one."""
    return point.tolist() if hasattr(point, "tolist") else point
