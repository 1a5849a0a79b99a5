"""Stops and swaps under load: what was taken is answered, and every answer is by a whole bundle."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import httpx2
import numpy as np
from tests.guarantees.serving_databases import Postgres, Sqlite
from tests.guarantees.serving_load import Load
from tests.guarantees.serving_process import Process, make_bundle, wait_until
from tests.guarantees.serving_record import Found, compare

from calibrant.bundle import Bundle


def stop_under_load(
    database: Sqlite | Postgres, bundle: Path, folder: Path, *, seed: int, workers: int = 1
) -> Found:
    """Tell a service to stop while clients ask; return what they heard and what is on record."""
    with Process(bundle, database.url, folder, "--workers", str(workers)) as service:
        with Load(service.url, seed, clients=16, giving_up=1.0, doubled=0.0) as load:
            load.wait_for(100)
            assert service.stop() == 0, service.said[-2000:]
            load.abandon()
        wait_until(lambda: not service.group(), "the end of all processes")
    return compare(load, database)


def swap_under_load(
    database: Sqlite | Postgres, bundle: Bundle, folder: Path, *, seed: int
) -> tuple[Found, Load, Mapping[str, Bundle]]:
    """Swap the bundle under load: by request, by signal, and by nothing but its new files.

    At last a damaged one comes, which is refused. Returns all bundles that served, by their hash.
    """
    bundles = {bundle.manifest["sha256"]: bundle}
    with Process(bundle.path, database.url, folder) as service:
        tell = {0.5: _reload, 1.0: _signal, 4.0: lambda _: None}
        with Load(service.url, seed) as load:
            for heat, how in tell.items():
                load.wait_for(40)
                made = make_bundle(bundle.path, heat)
                name = made.manifest["sha256"]
                bundles[name] = made
                how(service)
                wait_until(lambda name=name: _serves(service) == name, "a swap")
            load.wait_for(40)
            _damage(bundle.path)
            wait_until(lambda: service.get("/v1/bundle").json()["refused"], "a refusal")
            load.wait_for(40)
            load.finish()
        load.ask_again()
        assert service.stop() == 0, service.said[-2000:]
    return compare(load, database), load, bundles


def misattributed(load: Load, bundles: Mapping[str, Bundle]) -> list[str]:
    """Return the requests whose answer is not what the bundle that it names decides."""
    found = []
    for asked in load.asked:
        for answer in asked.answers:
            own = bundles[answer["bundle"]["hash"]].decide(logits=np.array(asked.logits))
            given = answer["predictions"]
            probs = np.array([list(each["probabilities"].values()) for each in given])
            same = (
                [each["label"] for each in given] == own.label.tolist(),
                [each["decision"] for each in given] == own.decision.tolist(),
                np.allclose(probs, own.probabilities, rtol=1e-9, atol=0),
            )
            if not all(same):
                found.append(asked.key)
    return found


def _reload(service: Process) -> None:
    httpx2.post(f"{service.url}/v1/bundle/reload", timeout=30).raise_for_status()


def _signal(service: Process) -> None:
    os.kill(service.pid, signal.SIGHUP)


def _serves(service: Process) -> str:
    return service.get("/v1/bundle").json()["hash"]


def _damage(folder: Path) -> None:
    file = folder / "manifest.json"
    file.write_text(file.read_text(encoding="utf-8").replace("temperature", "temperature2"))
