"""`calibrant serve` under load: throughput against two limits and three rivals, latency, memory.

The bundle is that of `calibrant demo` (see `text_bundle`), the database a file of SQLite, all
settings are the defaults. 64 clients on keep-alive connections send requests of one message each;
messages differ, every answer's status is checked, and every answer has to be in the database
afterwards. Clients and server share this machine's cores. The contenders are processes of their
own, all started before the first is timed; they take turns, and rates are medians of the turns.

The limits are an endpoint of the same framework that does nothing, under the same settings of
uvicorn, and the model alone on large batches, on all cores. A limit that is measured too low makes
its goal easy, so the model runs in the faster of two ways (see `Model`), and a service that comes
out faster than its own model is an error of measurement, not a success.

The rivals are MLflow's model server, from an environment of its own (`.venv-bench`, which
`make bench` makes), a handler that calls the model for each request and logs it, and the same
without a log. See `serving_rivals`. They compute on one core, as the service does on a machine of
two: with more, threads of torch wait for each other and slow them down to a fraction, and the
ratio would flatter the service.

Latencies are taken at 70 % of the throughput just measured, with arrivals of a Poisson process,
and count from the time at which a request was due. See `load_generator`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.harness import Disagreement, Size, agree, cores
from benchmarks.load_generator import ask_closed, ask_open
from benchmarks.outcome import Outcome, within
from benchmarks.serving_process import Server, free_port
from benchmarks.text_bundle import pack_texts

__all__ = ["measure"]

TRAINED = {"full": 2_000, "toy": 300}
MESSAGES = {"full": 20_000, "toy": 500}
ROUNDS = {"full": 5, "toy": 1}
SECONDS = 5.0  # of a turn at full size; slow ones and the ceiling take less
SHORTER = {"plain": 4.0, "unlogged": 3.0, "mlflow": 4.0, "bytes": 1.5}
COUNT = 128  # requests of a turn at toy size
LATENCY = {"full": (3, 10.0), "toy": (1, 1.0)}  # turns, and seconds of each
WARM = {"full": 500, "toy": 50}  # requests
MEMORY = {"full": (5_000, 20_000), "toy": (200, 400)}  # requests before the first look, and after
LOOKS = 4  # at the memory, on the way
PIECE = 2_000  # messages of a batch of the model alone
CLIENTS = 64
CONNECTIONS = 256  # of the open load; it never has to wait for one on a server that keeps up
SHARE, TIMES = 0.6, 3.0
LOAD, SPREAD = 0.7, 5.0
GROWTH = 5.0

ROOT = Path(__file__).parents[1]
PEER = ROOT / ".venv-bench"
PREDICT, INVOKE = "/v1/predict", "/invocations"
ONE_CORE = {**os.environ, "OMP_NUM_THREADS": "1"}
PACKAGES = ("fastapi", "uvicorn", "uvloop", "httptools", "sqlalchemy")


@dataclass
class Contender:
    """A server and how to ask it.

    Parameters
    ----------
    server : the process
    path, bodies : what requests are sent
    answered : how many requests were answered so far
    """

    server: Server
    path: str
    bodies: Path
    answered: int = 0

    def ask(self, **how: Any) -> dict[str, Any]:
        """Send load, `count` requests or for some `seconds`, at a `rate` or as fast as it goes."""
        send = ask_open if "rate" in how else ask_closed
        clients = CONNECTIONS if "rate" in how else CLIENTS
        result = send(self.server.port, self.path, self.bodies, clients=clients, **how)
        self.answered += result["asked"]
        return result

    def probabilities(self) -> dict[str, float]:
        """Return the answer to the first message."""
        body = json.loads(self.bodies.read_text(encoding="utf-8"))[0].encode()
        where = f"http://127.0.0.1:{self.server.port}{self.path}"
        request = Request(where, data=body, headers={"Content-Type": "application/json"})
        with urlopen(request) as answer:
            self.answered += 1
            probabilities: dict[str, float] = json.load(answer)["predictions"][0]["probabilities"]
            return probabilities


class Model:
    """The bundle in this process, without a server.

    Parameters
    ----------
    folder : the bundle
    """

    def __init__(self, folder: Path) -> None:
        from calibrant import load_bundle

        self.decide = load_bundle(folder, device="cpu").decide

    def together(self, texts: Sequence[str]) -> float:
        """Return rows a second where all cores work on one batch."""
        start = time.perf_counter()
        self.decide(texts)
        return len(texts) / (time.perf_counter() - start)

    def apart(self, texts: Sequence[str]) -> float:
        """Return rows a second where each core works on batches of its own."""
        from calibrant.cores import one_core_each

        pieces = [texts[start : start + PIECE] for start in range(0, len(texts), PIECE)]
        with one_core_each(), ThreadPoolExecutor(cores()) as pool:
            start = time.perf_counter()
            for _ in pool.map(self.decide, pieces):
                pass
            return len(texts) / (time.perf_counter() - start)


def measure(size: Size) -> list[Outcome]:
    """Start the servers, then measure memory, throughput and latency of the service."""
    if size == "full" and not _mlflow().exists():
        raise RuntimeError(
            f"MLflow's model server is measured from an environment of its own, and there is none "
            f"in {PEER.name}: make {PEER.name}/.mlflow makes it."
        )
    with tempfile.TemporaryDirectory(prefix="calibrant-bench-") as name, ExitStack() as open_ones:
        folder = Path(name)
        bundle = pack_texts(folder / "bundle", TRAINED[size])
        texts = _texts(folder, MESSAGES[size])
        service = Contender(_service(folder), PREDICT, folder / "bodies.json")
        open_ones.enter_context(service.server)
        resident = _resident(service, *MEMORY[size])
        others = _others(folder, size)
        for each in others.values():
            open_ones.enter_context(each.server)
        model = Model(bundle)
        _check_answers(model, texts[0], [service, *others.values()])
        rates = _turns({"service": service, **others}, model, texts, size)
        if size == "full":
            _check_limit(rates)
        latency = _latency(service, statistics.median(rates["service"]), size)
        _check_log(folder / "service.db", service.answered)
        if (folder / "plain.db").exists():
            _check_log(folder / "plain.db", others["plain"].answered)
    return _outcomes(rates, latency, resident)


def _outcomes(
    rates: Mapping[str, Sequence[float]],
    latency: Sequence[Mapping[str, Any]],
    resident: Mapping[int, int],
) -> list[Outcome]:
    middle = {name: statistics.median(turns) for name, turns in rates.items()}
    limit = min(middle["nothing"], _alone(middle))
    ours = middle["service"]
    details = _details(rates, middle, limit)
    load = "requests of one message from 64 clients, all on record"
    spreads = [one["latency_ms"]["p99"] / one["latency_ms"]["p50"] for one in latency]
    first, *_, last = resident.values()

    def times(goal: str, other: float, least: float) -> Outcome:
        return Outcome(goal, round(ours / other, 4), least, "times", "at least", details)

    outcomes = [
        times(
            f"{load}: {SHARE:.0%} of the lower of an endpoint that does nothing and the model "
            "alone, or more",
            limit,
            SHARE,
        )
    ]
    if "mlflow" in middle:
        goal = f"{load}: at least {TIMES:g} times MLflow's model server, which logs nothing"
        outcomes.append(times(goal, middle["mlflow"], TIMES))
    goal = f"{load}: at least {TIMES:g} times a handler that calls the model for each and logs it"
    outcomes.append(times(goal, middle["plain"], TIMES))
    goal = f"latency at {LOAD:.0%} of that throughput, Poisson arrivals: p99 under {SPREAD:g} p50"
    runs = {"runs": [_rounded(one) for one in latency]}
    outcomes.append(within(goal, statistics.median(spreads), SPREAD, "times", runs))
    counts = list(resident)
    goal = (
        f"resident memory {counts[-1] - counts[0]:,} requests after the first {counts[0]:,}: "
        f"within {GROWTH:g} %"
    )
    sizes = {"mib_after": {str(n): round(size / 2**20, 1) for n, size in resident.items()}}
    return [*outcomes, within(goal, 100 * abs(last / first - 1), GROWTH, "%", sizes)]


def _details(
    rates: Mapping[str, Sequence[float]], middle: Mapping[str, float], limit: float
) -> dict[str, Any]:
    details: dict[str, Any] = {
        "per_s": {name: round(rate, 1) for name, rate in middle.items()},
        "turns_per_s": {name: [round(one, 1) for one in turns] for name, turns in rates.items()},
        "lower_limit": "nothing" if limit == middle["nothing"] else "model",
        "clients": CLIENTS,
        "cores": cores(),
        "packages": {name: version(name) for name in PACKAGES},
    }
    if "mlflow" in rates:
        details["packages"]["mlflow"] = _mlflow_version()
    return details


def _rounded(run: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("per_s", "latency_ms", "sent_late_ms", "most_on_their_way")
    return {name: round(run[name], 1) if name == "per_s" else run[name] for name in fields}


def _alone(middle: Mapping[str, float]) -> float:
    """Return the rate of the model alone, in the faster of the ways to run it."""
    return max(rate for name, rate in middle.items() if name.startswith("model"))


def _turns(
    servers: Mapping[str, Contender], model: Model, texts: Sequence[str], size: Size
) -> dict[str, list[float]]:
    """Let the servers and the model take turns; every other round goes backwards."""
    for each in servers.values():
        each.ask(count=WARM[size])
    turns: dict[str, Callable[[], float]] = {
        **{name: partial(_measure_rate, name, each, size) for name, each in servers.items()},
        "model, one batch": partial(model.together, texts),
        "model, a batch each": partial(model.apart, texts),
    }
    for name in turns:
        if name.startswith("model"):
            turns[name]()  # warm
    rates: dict[str, list[float]] = {name: [] for name in turns}
    order = list(turns)
    for turn in range(ROUNDS[size]):
        for name in order if turn % 2 == 0 else reversed(order):
            rates[name].append(turns[name]())
    return rates


def _measure_rate(name: str, server: Contender, size: Size) -> float:
    how = {"seconds": SHORTER.get(name, SECONDS)} if size == "full" else {"count": COUNT}
    return float(server.ask(**how)["per_s"])


def _check_limit(rates: Mapping[str, Sequence[float]]) -> None:
    """Refuse rates that cannot be: every request of the service has passed through the model."""
    middle = {name: statistics.median(turns) for name, turns in rates.items()}
    if middle["service"] > _alone(middle):
        raise Disagreement(
            f"the service answers {middle['service']:,.0f} requests a second, but its model alone "
            f"was measured at {_alone(middle):,.0f}: something else used the cores; measure again."
        )


def _latency(service: Contender, throughput: float, size: Size) -> list[dict[str, Any]]:
    turns, seconds = LATENCY[size]
    rate = LOAD * throughput
    return [service.ask(seconds=seconds, rate=rate, seed=seed) for seed in range(turns)]


def _resident(service: Contender, before: int, after: int) -> dict[int, int]:
    """Return the resident memory after some numbers of requests to a server just started."""
    service.ask(count=before)
    sizes = {service.answered: service.server.resident()}
    for _ in range(LOOKS):
        service.ask(count=after // LOOKS)
        sizes[service.answered] = service.server.resident()
    return sizes


def _texts(folder: Path, n: int) -> list[str]:
    """Draw messages, and write them as the bodies of requests."""
    from calibrant.data.return_reasons import draw

    texts = list(draw(n, source="golden", seed=1).texts)
    for name, bodies in (
        ("bodies.json", [json.dumps({"inputs": [{"text": text}]}) for text in texts]),
        ("mlflow.json", [json.dumps({"inputs": [text]}) for text in texts]),
    ):
        (folder / name).write_text(json.dumps(bodies), encoding="utf-8")
    return texts


def _service(folder: Path) -> Server:
    port = free_port()
    words = ["serve", str(folder / "bundle"), "--db", str(folder / "service.db")]
    return Server([sys.executable, "-m", "calibrant", *words, "--port", str(port)], port)


def _others(folder: Path, size: Size) -> dict[str, Contender]:
    """Return the limit and the rivals; "bytes" shows how much load there can be at all."""
    bundle = ["--bundle", str(folder / "bundle")]
    words: dict[str, list[str]] = {
        "nothing": [],
        "plain": [*bundle, "--db", str(folder / "plain.db")],
    }
    if size == "full":
        words |= {"bytes": [], "unlogged": bundle}
    contenders = {}
    for name, more in words.items():
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.serving_rivals", name, "--port", str(port)]
        server = Server([*command, *more], port, ONE_CORE)
        contenders[name] = Contender(server, PREDICT, folder / "bodies.json")
    if size == "full":
        contenders["mlflow"] = Contender(_mlflow_server(folder), INVOKE, folder / "mlflow.json")
    return contenders


def _mlflow() -> Path:
    return PEER / "bin" / "mlflow"


def _mlflow_version() -> str:
    code = "from importlib.metadata import version; print(version('mlflow'))"
    done = subprocess.run(
        [PEER / "bin" / "python", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _mlflow_server(folder: Path) -> Server:
    """Write the bundle as a model of MLflow, and serve it without a printed line per request."""
    code, model = Path(__file__).with_name("serving_mlflow.py"), folder / "mlflow"
    subprocess.run(
        [PEER / "bin" / "python", code, folder / "bundle", model],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    port = free_port()
    words = ["models", "serve", "-m", str(model), "--env-manager", "local"]
    paths = os.pathsep.join((str(PEER / "bin"), os.environ["PATH"]))
    return Server(
        [str(_mlflow()), *words, "-h", "127.0.0.1", "-p", str(port)],
        port,
        {**ONE_CORE, "PATH": paths, "UVICORN_ACCESS_LOG": "0", "MLFLOW_DISABLE_TELEMETRY": "1"},
    )


def _check_answers(model: Model, text: str, servers: Sequence[Contender]) -> None:
    """Refuse to compare servers that answer differently."""
    own = model.decide([text]).to_rows()[0]["probabilities"]
    for each in servers:
        if "bytes" in each.server.command or "nothing" in each.server.command:
            continue
        answer = each.probabilities()
        for name, probability in own.items():
            agree(f"{each.path}, {name}", answer[name], probability, 1e-5)


def _check_log(file: Path, answered: int) -> None:
    """Refuse a throughput of answers that are not on record."""
    connection = sqlite3.connect(file)
    try:
        (rows,) = connection.execute("SELECT count(*) FROM predictions").fetchone()
    finally:
        connection.close()
    agree(f"rows of {file.name}", rows, answered, 0)
