"""The part of the page of guarantees that is about the service: nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docs.tables import dense, table

__all__ = ["serving_part"]

Row = Mapping[str, Any]

_INTRO = """
## Nothing lost, nothing twice

`calibrant serve` answers when a prediction is on record, not before. This is checked from outside:
a real process, real clients in threads that ask without a pause, and `kill -9` at random moments.
Clients send a request again under the same `Idempotency-Key` where no answer came; some give up
instead, and some requests are sent by two clients at a time. Afterwards the database is read
without Calibrant's own code and compared with the responses that the clients received:

- every acknowledged prediction is there, once, with the label, the probabilities and the decision
  of the answer (*lost*, *twice*, *different*);
- of every request all rows are there or none, also where nobody heard of it (*halves*);
- labels and outcomes that were acknowledged are there once, too.

*Unheard* are requests that were on record when the kill swallowed their answer: sent again, they
got the stored one. *In doubt* are requests whose client gave up; beside them, how many of these are
on record.

What is not checked is a machine that loses power: SQLite waits for the disk with every commit
(`synchronous = FULL`) and PostgreSQL does so by default, but a disk may lie.

"""

_OUTAGES = """
### The database away

Under load the database is taken away and given back. Meanwhile a request that cannot go on record
is answered by 503 with `Retry-After`, within a bounded time; `/healthz` says 200 and `/readyz` 503
with the reason. Given back, the service is ready by itself before anything is asked of it.

"""

_STOPS = """
### Stops and swaps

SIGTERM under load: the process ends with 0, and a request that got no answer was never read, so
that nothing of it is on record. A newer bundle takes over, and a damaged one is refused, without
one request that fails; each answer is what the bundle that it names decides.

"""

_WRONG = """
### Services that are wrong on purpose

The same clients and the same comparison, with a fault built in: a check that cannot fail proves
nothing.

"""


def serving_part(record: Row | None) -> str:
    """Show what was counted under kills, outages, stops and swaps."""
    if not record:
        return ""
    kills = record["kills"]
    total = sum(row["kills"] for row in kills)
    heard = sum(row["acknowledged"] for row in kills)
    return "".join(
        [
            _INTRO,
            f"Measured {record['date']} on {record['machine']}: {total:,} kills, {heard:,} "
            f"acknowledged requests, {_faults(kills)}.\n\n",
            dense(table(
                ("database", "processes", "killed", "kills", "acknowledged", "predictions",
                 "sent again", "unheard", "in doubt", "lost", "twice", "halves", "different"),
                ((r["database"], str(r["workers"]), r["killed"], *_counts(r, "kills",
                  "acknowledged", "rows", "retried", "unheard"),
                  f"{r['in_doubt']:,} ({r['in_doubt_on_record']:,})",
                  *_counts(r, "lost", "twice", "halves", "different")) for r in kills),
            )),
            _OUTAGES,
            table(
                ("database", "what happened", "refused", "acknowledged", "sent again", "lost",
                 "twice", "halves"),
                ((r["database"], r["trouble"], *_counts(r, "refused", "acknowledged", "retried",
                  "lost", "twice", "halves")) for r in record["outages"]),
            ),
            _STOPS,
            table(
                ("database", "processes", "stops", "acknowledged", "without an answer",
                 "of these on record", "lost", "twice"),
                ((r["database"], str(r["workers"]), *_counts(r, "stops", "acknowledged",
                  "in_doubt", "in_doubt_on_record", "lost", "twice")) for r in record["stops"]),
            ),
            "\n",
            table(
                ("database", "swaps", "acknowledged", "failed", "by another bundle than named",
                 "lost", "twice"),
                ((r["database"], *_counts(r, "swaps", "acknowledged", "failed", "misattributed",
                  "lost", "twice")) for r in record["swaps"]),
            ),
            _WRONG,
            table(
                ("the service", "kills", "lost", "twice", "halves", "caught"),
                ((w["way"], *_counts(w, "kills", "lost", "twice", "halves"),
                  "**no**" if w["kept"] else "yes") for w in record["wrong_ways"]),
            ),
        ]
    )  # fmt: skip


def _counts(row: Row, *names: str) -> list[str]:
    """Return figures; what should be 0 and is not stands out."""
    faults = (
        () if "way" in row else ("lost", "twice", "halves", "different", "failed", "misattributed")
    )
    return [f"**{row[n]:,}**" if n in faults and row[n] else f"{row[n]:,}" for n in names]


def _faults(rows: Sequence[Row]) -> str:
    kinds = ("lost", "twice", "halves", "different", "strangers", "faults")
    count = sum(row[kind] for row in rows for kind in kinds)
    return "nothing lost, nothing twice, nothing in halves" if not count else f"**{count} faults**"
