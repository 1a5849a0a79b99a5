"""HTTP client: predictions and outcomes, with retries that record nothing twice."""

from __future__ import annotations

import json
import math
import re
import uuid
import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from calibrant.client.address import check_url, plaintext_key_warning, resolve_key
from calibrant.client.answers import (
    Answer,
    ErasedCounts,
    InvalidResponse,
    Parsed,
    RecordedCounts,
    ServedBundle,
    StoredPrediction,
    parse_response,
)
from calibrant.client.transport import Transport
from calibrant.errors import InputError, ServiceError

_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_OUTCOME_KEYS = ("prediction", "label", "other", "source", "outcome", "value", "text")


def encode_inputs(texts: Any, rows: Any, logits: Any) -> list[dict[str, Any]]:
    """Return the inputs of a request from exactly one of the three arguments."""
    arguments = {"texts": texts, "rows": rows, "logits": logits}
    names = [name for name, values in arguments.items() if values is not None]
    if len(names) != 1:
        got = " and ".join(names) or "none of them"
        raise InputError(f"give exactly one of texts, rows and logits, got {got}.")
    name = names[0]
    values = _to_list(arguments[name], name)
    convert = {"texts": _text, "rows": _row, "logits": _logits}[name]
    key = {"texts": "text", "rows": "row", "logits": "logits"}[name]
    return [{key: convert(value, f"{name}[{i}]")} for i, value in enumerate(values)]


def encode_outcomes(outcomes: Any) -> list[dict[str, Any]]:
    """Return labels and outcomes as JSON objects, without empty fields."""
    converted = []
    for i, each in enumerate(_to_list(outcomes, "outcomes")):
        where = f"outcomes[{i}]"
        if not isinstance(each, Mapping):
            raise InputError(
                f"{where} must be a dictionary with 'prediction' and 'label' or 'outcome', got "
                f"{type(each).__name__}."
            )
        unknown = [key for key in each if key not in _OUTCOME_KEYS]
        if unknown:
            raise InputError(
                f"{where} has unknown key {unknown[0]!r}: remove it; known keys are "
                f"{', '.join(_OUTCOME_KEYS)}."
            )
        values = {key: _cell(value, f"{where}[{key!r}]") for key, value in each.items()}
        entry = {key: value for key, value in values.items() if value is not None}
        if "prediction" not in entry or not entry.keys() & {"label", "outcome"}:
            raise InputError(f"{where} needs 'prediction', and 'label', 'outcome' or both.")
        converted.append(entry)
    return converted


def check_idempotency_key(key: Any) -> str:
    """Return an idempotency key; refuse one that is not a valid header value."""
    if not isinstance(key, str) or not _IDEMPOTENCY_KEY.fullmatch(key):
        raise InputError(
            f"idempotency_key must be 1 to 128 visible ASCII characters, got {str(key)[:40]!r}."
        )
    return key


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Encode a body as UTF-8 JSON; equal content gives equal bytes."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"a text contains an unpaired surrogate ({error.object[error.start]!r}) and cannot be "
            "sent: decode it with the right encoding."
        ) from None


def _to_list(values: Any, name: str) -> list[Any]:
    """Convert a sequence to a list; errors say how to convert other types."""
    if isinstance(values, str):
        raise InputError(f"{name} must be a list, got a string: write [{values[:40]!r}].")
    if isinstance(values, Mapping):
        raise InputError(f"{name} must be a list, got a dictionary: write [{{...}}].")
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        raise InputError(
            f"{name} must be a list of dictionaries, got a {type(values).__name__}: write "
            "table.to_dict('records')."
        )
    if hasattr(values, "to_pylist"):
        values = values.to_pylist()
    elif hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, bytes):
        raise InputError(f"{name} must be a list, got {type(values).__name__}.")
    if not len(values):
        raise InputError(f"{name} is empty: pass at least one.")
    return list(values)


def _text(value: Any, where: str) -> str:
    value = _to_python(value)
    if not isinstance(value, str):
        raise InputError(
            f"{where} must be a string, got {type(value).__name__}: use '' if it is missing."
        )
    return value


def _row(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be a dictionary of columns, got {type(value).__name__}.")
    for name in value:
        if not isinstance(name, str):
            raise InputError(f"{where} has the column {name!r}: column names must be strings.")
    return {name: _cell(cell, f"{where}[{name!r}]") for name, cell in value.items()}


def _logits(value: Any, where: str) -> list[float] | dict[str, float]:
    value = _to_python(value)
    if isinstance(value, Mapping):
        return {str(name): _number(z, f"{where}[{name!r}]") for name, z in value.items()}
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InputError(
            f"{where} must be a list with one logit per class, or a dictionary from class to "
            f"logit, got {type(value).__name__}."
        )
    return [_number(z, f"{where}[{k}]") for k, z in enumerate(value)]


def _number(value: Any, where: str) -> float:
    value = _to_python(value)
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where} must be a finite number, got {repr(value)[:40]}.")
    return number


def _cell(value: Any, where: str) -> str | bool | int | float | None:
    """Convert a table cell; NaN means missing and becomes None."""
    value = _to_python(value)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise InputError(f"{where} is {value}: only finite numbers can be sent.")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(
        f"{where} must be a string, number, bool or None, got {type(value).__name__}: convert it."
    )


def _to_python(value: Any) -> Any:
    """Convert a numpy scalar or array to Python objects."""
    return value.tolist() if hasattr(value, "tolist") else value


_ERASE_TIMEOUT = 600.0  # Minimum timeout in seconds for erasing a unit


class Client:
    """Client of a service started by `calibrant serve`; threads may share it.

    A lost request is sent again with the same idempotency key, so that it is recorded once. A call
    takes at most about (retries + 1) timeouts plus the waits between them, at most 68 seconds each;
    `forget` may take longer.

    A request that the service refuses raises `InputError` with the service's message; a service
    that is unavailable or sends an invalid response raises `ServiceError`.

    Parameters
    ----------
    url : URL of the service
    key : API key printed by `calibrant keys add`; default: CALIBRANT_KEY, if set
    timeout : seconds per attempt; by default the service itself gives up after 10
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
            raise InputError(f"retries must be an integer from 0 to 100, got {retries!r}.")
        self.url = check_url(url)
        key = resolve_key(key)
        note = plaintext_key_warning(self.url, key)
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
        reasons: int = 0,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Predict and decide for one or many inputs; give exactly one of texts, rows and logits.

        Parameters
        ----------
        texts : list of texts
        rows : table rows, one dictionary each; None or NaN for a missing value
        logits : for a bundle without a model: per row a list in the order of the classes or a
            dictionary from class to logit, or an array of shape (n, K)
        unit : the person or object the inputs are about; a unit's records can be erased
        use_case, branch : what the predictions are used for, and the branch of an experiment
        point : index of the operating point that decides; default: the first of each class
        reasons : largest number of reasons of each prediction; a model that gives none is an error
        idempotency_key : identifies the request: if it is repeated, the service returns the stored
            answer; default: a new key for each call
        """
        inputs = encode_inputs(texts, rows, logits)
        more = {"unit": unit, "use_case": use_case, "branch": branch, "point": _to_int(point)}
        body = {"inputs": inputs, **{k: v for k, v in more.items() if v is not None}}
        if reasons != 0:  # older services do not know the field
            body["reasons"] = _to_int(reasons)
        answer = self._parse(Answer, self._post("/v1/predict", body, idempotency_key))
        if len(answer.predictions) != len(inputs):
            raise self._invalid(f"{len(answer.predictions)} predictions for {len(inputs)} inputs")
        return answer

    def outcomes(
        self, outcomes: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> RecordedCounts:
        """Record the true class of predictions, an outcome, or both.

        Parameters
        ----------
        outcomes : dictionaries with `prediction` (an id), `label` and its `source`, or `outcome`
            and its `value` and `text`; nothing is recorded if one prediction is unknown, or one
            label is not a class of its bundle and `other` is not True
        idempotency_key : see `predict`
        """
        body = {"outcomes": encode_outcomes(outcomes)}
        return self._parse(RecordedCounts, self._post("/v1/outcomes", body, idempotency_key))

    def prediction(self, id: str) -> StoredPrediction:
        """Return a stored prediction with its labels and outcomes.

        Parameters
        ----------
        id : the id that `predict` returned
        """
        content = self._transport.call("GET", f"/v1/predictions/{_quote_segment(id, 'id')}")
        return self._parse(StoredPrediction, content)

    def bundle(self) -> ServedBundle:
        """Return the served bundle: its inputs, classes and guarantees."""
        return self._parse(ServedBundle, self._transport.call("GET", "/v1/bundle"))

    def ready(self) -> bool:
        """Return whether the service accepts requests; does not retry."""
        return self._transport.status("/readyz") == 200

    def reload(self) -> ServedBundle:
        """Reload the service's bundle; needs a key with role admin.

        If the folder is refused, the old bundle stays and the error says why.
        """
        return self._parse(ServedBundle, self._transport.call("POST", "/v1/bundle/reload"))

    def forget(self, unit: str) -> ErasedCounts:
        """Erase all records of a unit; needs a key with role admin.

        SQLite then rewrites its file, so one attempt may take ten minutes. If a lost request was
        sent again, the counts may be 0, because the first attempt erased everything.

        Parameters
        ----------
        unit : the unit that was passed to `predict`
        """
        _quote_segment(unit, "unit")  # refuses values that cannot be sent
        # In the body, because proxies log URLs.
        content = self._transport.call(
            "POST", "/v1/units/erase", content=encode_body({"unit": unit}), timeout=_ERASE_TIMEOUT
        )
        return self._parse(ErasedCounts, content)

    def close(self) -> None:
        """Close the connections; pending calls raise an error."""
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
        """Send a body with the same idempotency key in every attempt."""
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        headers = {"Idempotency-Key": check_idempotency_key(key)}
        return self._transport.call("POST", path, content=encode_body(body), headers=headers)

    def _parse(self, kind: type[Parsed], content: Any) -> Parsed:
        try:
            return parse_response(kind, content)
        except InvalidResponse as error:
            raise self._invalid(str(error)) from None

    def _invalid(self, what: str) -> ServiceError:
        return ServiceError(
            f"{self.url} sent an invalid response ({what}): check that the address is that of "
            "a calibrant service, and that both sides have the same version of calibrant."
        )


def _quote_segment(name: str, what: str) -> str:
    """Percent-encode a name as one segment of a URL path."""
    if not isinstance(name, str) or not name:
        raise InputError(f"{what} must be a non-empty string, got {name!r}.")
    try:
        # "." and ".." would be resolved as folders.
        return quote(name, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        raise InputError(f"{what} contains an unpaired surrogate and cannot be sent.") from None


def _to_int(point: Any) -> Any:
    """Convert a numpy integer to int."""
    return point.tolist() if hasattr(point, "tolist") else point
