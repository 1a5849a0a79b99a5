"""`calibrant serve`: a bundle behind an HTTP interface."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import flush, print_json, say
from calibrant.cli.store_options import DEFAULT_DB, Db
from calibrant.errors import MissingExtra

if TYPE_CHECKING:
    from calibrant.serving.service import Service

__all__ = ["serve"]

NAME = "serve"
EXAMPLE = "calibrant serve runs/demo/bundle --port 8000, after calibrant demo"


def serve(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="A folder that train, demo or pack wrote.")
    ],
    db: Db = DEFAULT_DB,
    host: Annotated[
        str,
        typer.Option("--host", help="The address to serve on; beyond loopback keys are needed."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option("--workers", help="Processes that serve.")] = 1,
    inputs: Annotated[
        str,
        typer.Option(
            "--inputs", metavar="keep|redacted|hash", help="What is kept of an input on record."
        ),
    ] = "keep",
    need_key: Annotated[
        bool, typer.Option("--need-key", help="Ask for a key on loopback too.")
    ] = False,
    max_batch: Annotated[
        int, typer.Option("--max-batch", help="Rows that are scored at a time.")
    ] = 128,
    max_queue: Annotated[
        int, typer.Option("--max-queue", help="Rows that may wait; beyond it the answer is 503.")
    ] = 4096,
    max_inputs: Annotated[int, typer.Option("--max-inputs", help="Inputs of one request.")] = 1000,
    max_text: Annotated[int, typer.Option("--max-text", help="Characters of one text.")] = 20_000,
    max_body: Annotated[int, typer.Option("--max-body", help="Bytes of one request.")] = 1_048_576,
    max_wait: Annotated[
        float, typer.Option("--max-wait", help="Seconds that a row waits for a fuller batch.")
    ] = 0.001,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds that a row may wait before it is given up.")
    ] = 10.0,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", help="Seconds between SIGTERM and the end of listening; /readyz is 503 then."
        ),
    ] = 0.0,
    drain: Annotated[
        float, typer.Option("--drain", help="Seconds to answer what is under way at the end.")
    ] = 30.0,
    device: Annotated[
        str, typer.Option("--device", help="Where the model runs: auto, cpu or cuda.")
    ] = "auto",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Serve BUNDLE over HTTP; every prediction is on record before it is answered.

    The folder is watched: a newer bundle takes over while requests run, a damaged one is refused.

    Ctrl-C or SIGTERM stops it when all requests under way are answered.
    """
    try:
        from calibrant.serving.run import serve as run
        from calibrant.serving.settings import Settings
    except ImportError:
        raise MissingExtra("calibrant serve", "serve") from None

    settings = Settings(
        bundle=bundle,
        db=db,
        host=host,
        port=port,
        workers=workers,
        inputs=inputs,  # type: ignore[arg-type]  # checked by Settings
        need_key=need_key,
        max_batch=max_batch,
        max_queue=max_queue,
        max_inputs=max_inputs,
        max_text=max_text,
        max_body=max_body,
        max_wait=max_wait,
        timeout=timeout,
        grace=grace,
        drain=drain,
        device=device,
    )

    def on_start(service: Service, address: str) -> None:
        _tell(service, address, json=json)
        flush()  # others may wait for the address

    run(settings, on_start=on_start)


def _tell(service: Service, address: str, *, json: bool) -> None:
    served, settings = service.slot.current, service.settings
    if json:
        print_json(
            {
                "schema": 1,
                "url": address,
                "bundle": {"id": served.id, "hash": served.hash, "path": str(settings.bundle)},
                "db": service.store.url,
                "keys_needed": settings.keys_needed,
                "workers": settings.workers,
            }
        )
        return
    say(f"Serving bundle {served.id} ({served.name}) on {address}, described at {address}/docs.")
    say(f"For people: {address}/console")
    say(f"Predictions go on record in {service.store.url}. {_about_keys(service)}")
    say("Ctrl-C stops it.")


def _about_keys(service: Service) -> str:
    if not service.settings.keys_needed:
        return "No key is needed here."
    if any(key.revoked is None for key in service.store.keys.all()):
        return "Every request needs a key."
    return (
        "Every request needs a key, and there is none: make one with calibrant keys add --name "
        "NAME --role predict, and the same --db."
    )
