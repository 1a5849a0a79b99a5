"""What the service is measured against, each a server of its own: `python -m` this, then a name.

- bytes: an asyncio protocol that answers any bytes with the same ones; it shows what the load
  generator can ask for at most.
- nothing: an endpoint of FastAPI that takes a request and answers {}.
- plain: an endpoint as one writes it first: FastAPI parses the body, the model scores it on a
  thread of the pool, and a row goes into SQLite (WAL, each commit on the disk) before the answer.
- unlogged: the same without the row.
"""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fastapi import FastAPI, Request
from pydantic import BaseModel

if TYPE_CHECKING:
    from sqlalchemy import Engine, Table

__all__ = ["main"]

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class Input(BaseModel):
    """One message."""

    text: str


class RequestBody(BaseModel):
    """The body of a request."""

    inputs: list[Input]


class _Bytes(asyncio.Protocol):
    """Answer whatever comes; a request of the load generator comes in one piece."""

    def connection_made(self, transport: Any) -> None:
        self.write = transport.write

    def data_received(self, data: bytes) -> None:
        self.write(ANSWER)


def nothing() -> FastAPI:
    """Make the application that does nothing."""
    app = FastAPI()

    @app.post("/v1/predict")
    async def predict(request: Request) -> dict[str, str]:
        return {}

    return app


def plain(folder: Path, file: Path | None) -> FastAPI:
    """Make the application that calls the model for each request."""
    from sqlalchemy import insert

    from calibrant import load_bundle

    bundle = load_bundle(folder, device="cpu")
    log = None if file is None else _log(file)
    app = FastAPI()

    @app.post("/v1/predict")
    def predict(body: RequestBody) -> dict[str, Any]:
        at, texts = datetime.now(UTC), [one.text for one in body.inputs]
        predictions = [{"id": str(uuid4()), **row} for row in bundle.decide(texts).to_rows()]
        if log is not None:
            engine, table = log
            rows = [
                {"at": at, "text": text, **row}
                for text, row in zip(texts, predictions, strict=True)
            ]
            with engine.begin() as connection:
                connection.execute(insert(table), rows)
        return {"predictions": predictions}

    return app


def _log(file: Path) -> tuple[Engine, Table]:
    from sqlalchemy import (
        JSON,
        Boolean,
        Column,
        DateTime,
        Integer,
        MetaData,
        String,
        Table,
        create_engine,
        event,
    )

    engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": 60})

    @event.listens_for(engine, "connect")
    def _set(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    columns = {
        "at": DateTime,
        "text": String,
        "label": String,
        "probabilities": JSON,
        "decision": String,
        "acted_as": String,
        "action": String,
        "operating_point": Integer,
        "out_of_scope": Boolean,
    }
    table = Table(
        "predictions",
        MetaData(),
        Column("id", String, primary_key=True),
        *(Column(name, kind) for name, kind in columns.items()),
    )
    table.metadata.create_all(engine)
    return engine, table


async def _serve_bytes(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Bytes, "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    """Serve one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rival", choices=("bytes", "nothing", "plain", "unlogged"))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--db", type=Path)
    options = parser.parse_args()
    if options.rival == "bytes":
        import uvloop

        uvloop.run(_serve_bytes(options.port))
        return
    import uvicorn

    app = nothing() if options.rival == "nothing" else plain(options.bundle, options.db)
    uvicorn.run(  # as calibrant.serving.run does
        app,
        host="127.0.0.1",
        port=options.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=2048,
        lifespan="on",
    )


if __name__ == "__main__":
    main()
