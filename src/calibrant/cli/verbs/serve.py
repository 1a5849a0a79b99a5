"""`calibrant serve`: serve a bundle over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import echo, flush, print_json
from calibrant.cli.store_options import DEFAULT_DB, Db
from calibrant.errors import MissingExtra

if TYPE_CHECKING:
    from calibrant.serving.service import Service

NAME = "serve"
EXAMPLE = "calibrant serve runs/demo/bundle --port 8000, after calibrant demo"


def serve_command(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="Bundle written by train, demo or pack.")
    ],
    db: Db = DEFAULT_DB,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to bind; API keys are required unless it is loopback."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port; 0 picks a free one.")] = 8000,
    workers: Annotated[int, typer.Option("--workers", help="Number of worker processes.")] = 1,
    inputs: Annotated[
        str,
        typer.Option("--inputs", metavar="keep|redacted|hash", help="How inputs are stored."),
    ] = "keep",
    need_key: Annotated[
        bool, typer.Option("--need-key", help="Require an API key on loopback too.")
    ] = False,
    max_batch: Annotated[
        int, typer.Option("--max-batch", help="Maximum batch size in rows.")
    ] = 128,
    max_queue: Annotated[
        int, typer.Option("--max-queue", help="Maximum queued rows; beyond it requests get 503.")
    ] = 4096,
    max_inputs: Annotated[
        int, typer.Option("--max-inputs", help="Maximum inputs per request.")
    ] = 1000,
    max_text: Annotated[
        int, typer.Option("--max-text", help="Maximum characters per text.")
    ] = 20_000,
    max_body: Annotated[
        int, typer.Option("--max-body", help="Maximum request size in bytes.")
    ] = 1_048_576,
    max_wait: Annotated[
        float, typer.Option("--max-wait", help="Maximum wait for a fuller batch, in seconds.")
    ] = 0.001,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Timeout for a queued row, in seconds.")
    ] = 10.0,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", help="Seconds after SIGTERM before the socket closes; /readyz returns 503."
        ),
    ] = 0.0,
    drain: Annotated[
        float, typer.Option("--drain", help="Shutdown timeout for in-flight requests, in seconds.")
    ] = 30.0,
    device: Annotated[str, typer.Option("--device", help="Device: auto, cpu or cuda.")] = "auto",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Serve BUNDLE over HTTP and record every prediction before responding.

    A newer bundle in the folder is loaded without downtime; a damaged one is refused.

    Ctrl-C or SIGTERM shuts down after in-flight requests are answered.
    """
    try:
        from calibrant.serving.run import serve as run_server
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

    def announce(service: Service, address: str) -> None:
        _print_result(service, address, json=json)
        flush()  # a parent process may wait for the address

    run_server(settings, on_start=announce)


def _print_result(service: Service, address: str, *, json: bool) -> None:
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
    echo(f"Serving bundle {served.id} ({served.name}) on {address}, described at {address}/docs.")
    echo(f"For people: {address}/console")
    echo(f"Predictions go on record in {service.store.url}. {_about_keys(service)}")
    echo("Ctrl-C stops it.")


def _about_keys(service: Service) -> str:
    if not service.settings.keys_needed:
        return "No key is needed here."
    if any(key.revoked is None for key in service.store.keys.all()):
        return "Every request needs a key."
    return (
        "Every request needs a key, and there is none: make one with calibrant keys add --name "
        "NAME --role predict, and the same --db."
    )
