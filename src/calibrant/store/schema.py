"""Tables of the store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine

from calibrant.errors import StoreError
from calibrant.store.records import DECISIONS, ROLES

LONGEST_NAME = 200
"""Maximum characters of an indexed text: a PostgreSQL index entry has 2,704 bytes, a character up
to four, and an entry may have two such texts."""


def utc(moment: datetime) -> datetime:
    """Convert a time to UTC; it must have a time zone."""
    if moment.tzinfo is None:
        raise StoreError(f"the time {moment.isoformat()} has no time zone: use datetime.now(UTC).")
    return moment.astimezone(UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """Time with a time zone, stored and returned in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC; SQLite stores text without a zone."""
        if value is None:
            return None
        return utc(value).replace(tzinfo=None) if dialect.name == "sqlite" else utc(value)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Attach UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Numbers(TypeDecorator[list[float]]):
    """List of floats as JSON, also if JSON returns an integer, such as 1e22."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the JSON type of the database."""
        return dialect.type_descriptor(_json())

    def process_result_value(self, value: Any, dialect: Dialect) -> list[float] | None:
        """Convert to floats."""
        return None if value is None else [float(number) for number in value]


def _json() -> Any:
    return JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def _short(*columns: str) -> CheckConstraint:
    """Limit the length of indexed columns."""
    rule = " AND ".join(f"length({column}) <= {LONGEST_NAME}" for column in columns)
    return CheckConstraint(rule, name="names_short")


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

bundles = Table(
    "bundles",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("classes", _json(), nullable=False),
    Column("manifest", _json(), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    _short("hash"),
)

predictions = Table(
    "predictions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("bundle", ForeignKey(bundles.c.hash), nullable=False),
    Column("request", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("request_hash", Text, nullable=False),
    Column("unit", Text),
    Column("use_case", Text),
    Column("branch", Text),
    Column("key", Text),
    Column("input", _json()),
    Column("input_hash", Text, nullable=False),
    Column("logits", Numbers, nullable=False),
    Column("probs", Numbers, nullable=False),
    Column("label", Text, nullable=False),
    Column("score", Double, nullable=False),
    Column("decision", Text),
    Column("acted_as", Text),
    Column("action", Text),
    Column("operating_point", Integer),
    Column("out_of_scope", Boolean),
    Column("latency_ms", Double, nullable=False),
    Column("asked_point", Integer),
    # Claims a request: the writer of its first row writes all of them.
    UniqueConstraint("request", "position"),
    CheckConstraint("score >= 0 AND score <= 1", name="score_is_probability"),  # refuses NaN
    _one_of("decision", DECISIONS),
    _short("id", "request", "unit", "use_case", "label"),
    # Pages are ordered newest first. The filter columns are included, so that rows are filtered
    # in the index.
    Index(None, "at", "score", "label", "decision", "use_case"),
    Index(None, "unit", "at"),
    Index(None, "use_case", "at", "score", "label", "decision"),
    Index(None, "label", "at", "score", "decision", "use_case"),
    Index(None, "decision", "at", "score", "label", "use_case"),
    Index(None, "score"),
)


def _prediction() -> Column[Any]:
    return Column("prediction", ForeignKey(predictions.c.id, ondelete="CASCADE"), nullable=False)


labels = Table(
    "labels",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    _prediction(),
    Column("label", Text, nullable=False),
    Column("source", Text),
    Column("key", Text),
    # Copied from a prediction that acted, else NULL: an audit reads labels only.
    Column("acted_at", UtcDateTime),
    Column("acted_as", Text),
    Column("bundle", Text),
    _short("id", "label"),
    Index(None, "prediction", "at"),
    Index(None, "at"),
    Index(None, "acted_at"),
    Index(None, "bundle", "acted_at"),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    _prediction(),
    Column("name", Text, nullable=False),
    Column("value", Double),
    Column("text", Text),
    Column("key", Text),
    _short("id", "name"),
    Index(None, "prediction", "at"),
    Index(None, "name", "at"),
)

# Requests that reported labels and outcomes, as keyed hashes without units or predictions.
outcome_requests = Table(
    "outcome_requests",
    metadata,
    Column("request", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    _short("request"),
    Index(None, "at"),
)

# Counts of predictions, exact at every commit: a page reads hours instead of rows. Each prediction
# is counted once per kind (see store/tallying.py), never by unit.
tallies = Table(
    "tallies",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("hour", UtcDateTime, primary_key=True),
    Column("bundle", ForeignKey(bundles.c.hash), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("n", Integer, nullable=False),
    # Sum of probabilities, as an integer so that subtraction is exact.
    Column("billionths", BigInteger, nullable=False),
    _short("name"),
    sqlite_with_rowid=False,
)

# Changes made in the console; append-only.
events = Table(
    "events",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", Text, nullable=False),
    Column("key", Text),
    Column("subject", Text, nullable=False),
    Column("before", Text),
    Column("after", Text),
    Column("details", _json(), nullable=False),
    _short("id", "kind", "subject"),
    Index(None, "kind", "number"),
    Index(None, "subject", "number"),
)

keys = Table(
    "keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("secret_hash", Text, nullable=False),
    Column("rate", Double),
    Column("created", UtcDateTime, nullable=False),
    Column("last_used", UtcDateTime),
    Column("revoked", UtcDateTime),
    _one_of("role", ROLES),
    _short("id"),
)

# Console sessions ended by logout, until they expire.
ended_visits = Table(
    "ended_visits",
    metadata,
    Column("id", Text, primary_key=True),
    Column("expires", UtcDateTime, nullable=False),
    _short("id"),
)

erasures = Table(
    "erasures",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("unit_hash", Text),  # keyed hash of the forgotten unit
    Column("before", UtcDateTime),  # or the end of the pruned time range
    Column("predictions", Integer, nullable=False),
    Column("labels", Integer, nullable=False),
    Column("outcomes", Integer, nullable=False),
)

settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
