"""Initial tables: predictions, labels, outcomes, keys, events, erasures, settings."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

_Part = sa.schema.SchemaItem


def upgrade() -> None:
    """Create all tables in an empty database."""
    op.create_table(
        "bundles",
        *(_text("hash"), _text("name"), _json("classes"), _json("manifest"), _moment("at")),
        _primary_key("bundles", "hash"),
        _short("bundles", "hash"),
    )
    _create_predictions()
    _create_labels()
    op.create_table(
        "outcomes",
        *_of_a_prediction("outcomes", "name"),
        *(_number("value", null=True), _text("text", null=True)),
    )
    op.create_index("ix_outcomes_prediction_at", "outcomes", ["prediction", "at"])
    op.create_index("ix_outcomes_name_at", "outcomes", ["name", "at"])
    op.create_table(
        "tellings",
        *(_text("request"), _text("hash"), _moment("at")),
        _primary_key("tellings", "request"),
        _short("tellings", "request"),
    )
    op.create_index("ix_tellings_at", "tellings", ["at"])
    _create_tallies()
    _create_events()
    _create_keys()
    op.create_table(
        "erasures",
        *(_text("id"), _moment("at"), _text("unit_hash", null=True), _moment("before", null=True)),
        *(_whole("predictions"), _whole("labels"), _whole("outcomes")),
        _primary_key("erasures", "id"),
    )
    op.create_table(
        "ended_visits",
        *(_text("id"), _moment("expires")),
        _primary_key("ended_visits", "id"),
        _short("ended_visits", "id"),
    )
    op.create_table("settings", _text("name"), _text("value"), _primary_key("settings", "name"))


def _create_predictions() -> None:
    op.create_table(
        "predictions",
        *(_text("id"), _moment("at"), _text("bundle"), _text("request"), _whole("position")),
        *(_text("request_hash"), _text("unit", null=True), _text("use_case", null=True)),
        *(_text("branch", null=True), _text("key", null=True), _json("input", null=True)),
        *(_text("input_hash"), _json("logits"), _json("probs"), _text("label"), _number("score")),
        *(_text("decision", null=True), _text("acted_as", null=True), _text("action", null=True)),
        *(_whole("operating_point", null=True), sa.Column("out_of_scope", sa.Boolean)),
        *(_number("latency_ms"), _whole("asked_point", null=True)),
        _primary_key("predictions", "id"),
        sa.ForeignKeyConstraint(["bundle"], ["bundles.hash"], name="fk_predictions_bundle"),
        sa.UniqueConstraint("request", "position", name="uq_predictions_request_position"),
        sa.CheckConstraint("score >= 0 AND score <= 1", name="ck_predictions_score_is_probability"),
        sa.CheckConstraint(
            "decision IN ('act', 'clear', 'abstain', 'out_of_scope')",
            name="ck_predictions_decision_known",
        ),
        _short("predictions", "id", "request", "unit", "use_case", "label"),
    )
    for columns in (
        ["at", "score", "label", "decision", "use_case"],
        ["unit", "at"],
        ["use_case", "at", "score", "label", "decision"],
        ["label", "at", "score", "decision", "use_case"],
        ["decision", "at", "score", "label", "use_case"],
        ["score"],
    ):
        op.create_index(f"ix_predictions_{'_'.join(columns)}", "predictions", columns)


def _create_labels() -> None:
    op.create_table(
        "labels",
        *_of_a_prediction("labels", "label"),
        *(_text("source", null=True), _moment("acted_at", null=True)),
        *(_text("acted_as", null=True), _text("bundle", null=True)),
    )
    for columns in (["prediction", "at"], ["at"], ["acted_at"], ["bundle", "acted_at"]):
        op.create_index(f"ix_labels_{'_'.join(columns)}", "labels", columns)


def _create_tallies() -> None:
    op.create_table(
        "tallies",
        *(_text("kind"), _moment("hour"), _text("bundle"), _text("name"), _whole("n")),
        sa.Column("billionths", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("kind", "hour", "bundle", "name", name="pk_tallies"),
        sa.ForeignKeyConstraint(["bundle"], ["bundles.hash"], name="fk_tallies_bundle"),
        _short("tallies", "name"),
        sqlite_with_rowid=False,
    )


def _create_events() -> None:
    op.create_table(
        "events",
        *(_whole("number"), _text("id"), _moment("at"), _text("kind"), _text("key", null=True)),
        *(_text("subject"), _text("before", null=True), _text("after", null=True)),
        _json("details"),
        _primary_key("events", "number"),
        sa.UniqueConstraint("id", name="uq_events_id"),
        _short("events", "id", "kind", "subject"),
    )
    for column in ("kind", "subject"):
        op.create_index(f"ix_events_{column}_number", "events", [column, "number"])


def _create_keys() -> None:
    op.create_table(
        "keys",
        *(_text("id"), _text("name"), _text("role"), _text("secret_hash")),
        *(_number("rate", null=True), _moment("created")),
        *(_moment("last_used", null=True), _moment("revoked", null=True)),
        _primary_key("keys", "id"),
        sa.CheckConstraint("role IN ('predict', 'label', 'admin')", name="ck_keys_role_known"),
        _short("keys", "id"),
    )


def _of_a_prediction(table: str, column: str) -> list[_Part]:
    """Return the common columns of labels and outcomes."""
    return [
        *(_text("id"), _moment("at"), _text("prediction"), _text(column), _text("key", null=True)),
        _primary_key(table, "id"),
        sa.ForeignKeyConstraint(
            ["prediction"], ["predictions.id"], name=f"fk_{table}_prediction", ondelete="CASCADE"
        ),
        _short(table, "id", column),
    ]


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=null)


def _whole(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=null)


def _number(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double, nullable=null)


def _moment(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null)


def _json(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON().with_variant(JSONB(), "postgresql"), nullable=null)


def _primary_key(table: str, column: str) -> _Part:
    return sa.PrimaryKeyConstraint(column, name=f"pk_{table}")


def _short(table: str, *columns: str) -> _Part:
    rule = " AND ".join(f"length({column}) <= 200" for column in columns)
    return sa.CheckConstraint(rule, name=f"ck_{table}_names_short")
