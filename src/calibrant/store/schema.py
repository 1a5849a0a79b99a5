"""The tables of the store."""

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

__all__ = [
    "LONGEST_NAME",
    "Numbers",
    "UtcDateTime",
    "bundles",
    "ended_visits",
    "erasures",
    "events",
    "keys",
    "labels",
    "metadata",
    "outcomes",
    "predictions",
    "settings",
    "tallies",
    "tellings",
    "utc",
]

LONGEST_NAME = 200
"""Characters that a text in an index may have: PostgreSQL's indexes hold 2,704 bytes an entry, a
character takes up to four, and an entry may have two such texts."""


def utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a time zone is refused.

    Examples
    --------
    >>> utc(datetime.fromisoformat("2026-01-31T12:00+02:00")).isoformat()
    '2026-01-31T10:00:00+00:00'
    """
    if moment.tzinfo is None:
        raise StoreError(f"the time {moment.isoformat()} has no time zone: use datetime.now(UTC).")
    return moment.astimezone(UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment: needs a time zone, is kept and comes back in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Turn a moment into UTC; SQLite keeps it as text without a zone."""
        if value is None:
            return None
        return utc(value).replace(tzinfo=None) if dialect.name == "sqlite" else utc(value)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Say that it is UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Numbers(TypeDecorator[list[float]]):
    """A list of numbers as JSON; floats also where JSON gives a whole number back, like 1e22."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose how the database keeps JSON."""
        return dialect.type_descriptor(_json())

    def process_result_value(self, value: Any, dialect: Dialect) -> list[float] | None:
        """Make all of them floats."""
        return None if value is None else [float(number) for number in value]


def _json() -> Any:
    return JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def _short(*columns: str) -> CheckConstraint:
    """Keep what is in an index short enough for every database."""
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
    # What claims a request: whoever writes its first row writes all of them.
    UniqueConstraint("request", "position"),
    CheckConstraint("score >= 0 AND score <= 1", name="score_is_probability"),  # NaN is none
    _one_of("decision", DECISIONS),
    _short("id", "request", "unit", "use_case", "label"),
    # Newest first is the order of every page. What pages filter by rides along: then rows that
    # are left out cost a look into the index only, however many they are.
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
    # Of the prediction, where it acted, and NULL elsewhere: an audit reads nothing but labels.
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

# Requests that told labels and outcomes. Both are keyed hashes: of whom they told is not here.
tellings = Table(
    "tellings",
    metadata,
    Column("request", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    _short("request"),
    Index(None, "at"),
)

# Counts of predictions, right at every commit: a page reads hours instead of rows. Each prediction
# is in one row of every kind that it has a name for (see store/tallying.py); none names a unit.
tallies = Table(
    "tallies",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("hour", UtcDateTime, primary_key=True),
    Column("bundle", ForeignKey(bundles.c.hash), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("n", Integer, nullable=False),
    # Sum of probabilities. Whole numbers: what was added in any order can be taken back exactly.
    Column("billionths", BigInteger, nullable=False),
    _short("name"),
    sqlite_with_rowid=False,
)

# What people changed through the console. Rows are added, and never changed or deleted.
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

# Visits to the console that were ended by hand, until they would have ended by themselves.
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
    Column("unit_hash", Text),  # keyed hash of the unit that was forgotten
    Column("before", UtcDateTime),  # or the moment before which all was pruned
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
