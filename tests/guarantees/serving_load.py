"""Real clients of a service, and their memory of what it answered.

A client sends one request after the other, each under a name of its own, and sends it again where
no answer came, as clients should. Some give up then: whatever became of their request, it must be
on record as a whole or not at all. Some requests are sent by two clients at a time.
"""

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx2
from tests.guarantees.serving_process import PATIENCE, wait_until

from calibrant.client.client import Client
from calibrant.errors import CalibrantError

LIMIT = 45.0
"""Seconds within which every request must be answered, by a refusal at least."""

_SIZES = (1, 1, 1, 1, 2, 5, 40)
_PAUSE = 0.05
_TOO_MANY = 1_000
"""Faults after which nothing more is waited for."""


@dataclass(eq=False)
class Asked:
    """A request and all that came of it.

    Parameters
    ----------
    key : its name
    logits : its inputs
    patient : whether it is sent again when no answer came
    own : whether Calibrant's own client sends it
    answers : what was acknowledged, once for each time it was sent
    broken : attempts that were cut off, so that nobody knows what became of them
    refused : attempts that were answered by 503
    """

    key: str
    logits: list[list[float]]
    patient: bool = True
    own: bool = False
    answers: list[dict[str, Any]] = field(default_factory=list)
    broken: int = 0
    refused: int = 0

    @property
    def body(self) -> dict[str, Any]:
        return {"inputs": [{"logits": row} for row in self.logits], "unit": self.key[:8]}


@dataclass(eq=False)
class Told:
    """An outcome that was told of a prediction, and whether that was acknowledged."""

    key: str
    prediction: str
    acknowledged: bool = False


class Load:
    """Clients that ask without a pause until they are told to finish.

    Parameters
    ----------
    url : of the service
    seed : of sizes, contents and who gives up
    clients : how many ask at the same time
    giving_up : share of requests that are not sent again
    doubled : share of requests that two clients send
    own : how many of the clients are Calibrant's own
    """

    def __init__(
        self, url: str, seed: int, *, clients: int = 8, giving_up: float = 0.15,
        doubled: float = 0.1, own: int = 0,
    ) -> None:  # fmt: skip
        self.url, self.asked, self.told = url, [], []
        self.faults: list[str] = []
        self.refusals: set[str] = set()
        self._random, self._giving_up, self._doubled = random.Random(seed), giving_up, doubled
        self._lock, self._ending = threading.Lock(), threading.Event()
        self._going = threading.Event()
        self._abandoned = False
        self._going.set()
        self._again: list[Asked] = []
        self._acknowledged = 0
        self._name = f"{seed}-{self._random.randrange(16**6):06x}"
        kinds = [self._ask_by_client] * own + [self._ask] * (clients - own)
        self._clients = [threading.Thread(target=each, daemon=True) for each in kinds]

    @property
    def acknowledged(self) -> int:
        """How many answers with predictions came, those that came again among them."""
        return self._acknowledged

    def wait_for(self, more: int) -> None:
        """Wait until so many more requests are acknowledged."""
        goal = self._acknowledged + more
        self._wait(lambda: self._acknowledged >= goal, f"{more} more answers")

    def wait_for_refusals(self, more: int) -> None:
        """Wait until so many more requests are answered by 503."""
        goal = self.refused + more
        self._wait(lambda: self.refused >= goal, f"{more} more refusals")

    def _wait(self, enough: Callable[[], bool], what: str) -> None:
        wait_until(lambda: enough() or len(self.faults) > _TOO_MANY, what)
        assert enough(), f"no {what}: {self.faults[:3]}"

    @property
    def refused(self) -> int:
        """How many answers were 503."""
        with self._lock:
            return sum(each.refused for each in self.asked)

    def pause(self) -> None:
        """Send nothing until it goes on; what is under way is still answered."""
        self._going.clear()

    def go_on(self) -> None:
        """End the pause."""
        self._going.set()

    def abandon(self) -> None:
        """Send nothing any more, whatever became of it: the service is gone for good."""
        self._abandoned = True
        self.finish()

    def finish(self) -> None:
        """Begin nothing new, and wait until what was begun is answered."""
        self._ending.set()
        for client in self._clients:
            client.join(PATIENCE)
        assert not any(client.is_alive() for client in self._clients), "a client hangs"

    def ask_again(self, most: int = 30) -> None:
        """Send some of what was acknowledged once more: the answers must be the same."""
        there = [each for each in self.asked if each.answers and not each.own]
        with httpx2.Client(base_url=self.url, timeout=LIMIT, trust_env=False) as http:
            for each in self._random.sample(there, min(most, len(there))):
                self._until_answered(http, each)
                if not each.answers[-1]["repeated"]:
                    self._fault(f"{each.key} was not known any more")
                first = each.answers[-1]["predictions"][0]
                found = http.get(f"/v1/predictions/{first['id']}").json()
                if found.get("probabilities") != first["probabilities"]:
                    self._fault(f"{each.key} cannot be read: {found}")

    def __enter__(self) -> "Load":
        for client in self._clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._going.set()
        for client in self._clients:
            client.join(PATIENCE)

    def _ask(self) -> None:
        limits = httpx2.Limits(keepalive_expiry=2.0)
        with httpx2.Client(
            base_url=self.url, timeout=LIMIT, limits=limits, trust_env=False
        ) as http:
            while not self._ending.is_set():
                asked = self._next()
                if self._until_answered(http, asked) and asked.key.endswith("7"):
                    self._tell(http, asked)

    def _ask_by_client(self) -> None:
        """Ask as users of the Python client do: it sends requests again by itself."""
        with Client(self.url, timeout=LIMIT, retries=30) as client:
            while not self._ending.is_set():
                asked = self._next(own=True)
                try:
                    answer = client.predict(logits=asked.logits, idempotency_key=asked.key)
                except CalibrantError as error:
                    self._fault(f"{asked.key}: {error}")
                    return
                with self._lock:
                    asked.answers.append(asdict(answer))
                    self._acknowledged += 1

    def _next(self, *, own: bool = False) -> Asked:
        with self._lock:
            if self._again and not own:
                return self._again.pop()
            draw = self._random
            rows = draw.choice(_SIZES)
            logits = [[round(draw.gauss(0, 3), 4) for _ in range(3)] for _ in range(rows)]
            patient = own or draw.random() >= self._giving_up
            asked = Asked(f"{self._name}-{len(self.asked)}", logits, patient, own)
            self.asked.append(asked)
            if patient and not own and draw.random() < self._doubled:
                self._again.append(asked)
            return asked

    def _until_answered(self, http: httpx2.Client, asked: Asked) -> bool:
        """Send a request until it is acknowledged or given up."""
        content, until = json.dumps(asked.body).encode(), time.monotonic() + PATIENCE
        while time.monotonic() < until and not self._abandoned:
            self._going.wait()
            answer = self._post(http, "/v1/predict", content, asked)
            if answer is not None and answer.status_code == 200:
                with self._lock:
                    asked.answers.append(answer.json())
                    self._acknowledged += 1
                return True
            if answer is not None and answer.status_code != 503:
                self._fault(f"{asked.key}: {answer.status_code} {answer.text[:300]}")
                return False
            if not asked.patient and (asked.broken or asked.refused):
                return False
            time.sleep(_PAUSE)
        if not self._abandoned:
            self._fault(f"{asked.key} was never answered")
        return False

    def _tell(self, http: httpx2.Client, asked: Asked) -> None:
        """Tell the outcome of a prediction until it is acknowledged."""
        told = Told(f"told-{asked.key}", asked.answers[0]["predictions"][0]["id"])
        with self._lock:
            if any(each.key == told.key for each in self.told[-50:]):
                return  # the other of two clients does it
            self.told.append(told)
        one = {"prediction": told.prediction, "label": "parts", "outcome": "refund", "value": 1.5}
        content, until = json.dumps({"outcomes": [one]}).encode(), time.monotonic() + PATIENCE
        while time.monotonic() < until and not self._abandoned:
            self._going.wait()
            answer = self._post(http, "/v1/outcomes", content, told)
            if answer is not None and answer.status_code == 200:
                told.acknowledged = True
                return
            if answer is not None and answer.status_code != 503:
                self._fault(f"{told.key}: {answer.status_code} {answer.text[:300]}")
                return
            time.sleep(_PAUSE)
        if not self._abandoned:
            self._fault(f"{told.key} was never answered")

    def _post(
        self, http: httpx2.Client, path: str, content: bytes, of: Asked | Told
    ) -> httpx2.Response | None:
        """Send a request once; None where no answer came."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": of.key}
        try:
            answer = http.post(path, content=content, headers=headers)
        except httpx2.ConnectError:
            return None  # nothing was sent
        except httpx2.TimeoutException:
            self._fault(f"{of.key} was not answered within {LIMIT:g} s")
            return None
        except httpx2.HTTPError:
            with self._lock:
                if isinstance(of, Asked):
                    of.broken += 1
            return None
        if answer.status_code == 503:
            self._refused(answer, of)
        return answer

    def _refused(self, answer: httpx2.Response, of: Asked | Told) -> None:
        if not answer.headers.get("retry-after", "").isdecimal():
            self._fault(f"503 without Retry-After: {answer.text[:300]}")
        if answer.headers["content-type"] != "application/problem+json":
            self._fault(f"503 that is no problem: {answer.text[:300]}")
        with self._lock:
            self.refusals.add(answer.json()["detail"])
            if isinstance(of, Asked):
                of.refused += 1

    def _fault(self, what: str) -> None:
        self.faults.append(what)
