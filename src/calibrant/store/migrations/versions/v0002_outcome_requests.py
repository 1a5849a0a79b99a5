"""Rename the table `tellings` to `outcome_requests`, with its constraints and index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Copy the rows into a new table, because SQLite cannot rename constraints."""
    op.create_table(
        "outcome_requests",
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("request", name="pk_outcome_requests"),
        sa.CheckConstraint("length(request) <= 200", name="ck_outcome_requests_names_short"),
    )
    op.execute(
        "INSERT INTO outcome_requests (request, hash, at) SELECT request, hash, at FROM tellings"
    )
    op.drop_table("tellings")
    op.create_index("ix_outcome_requests_at", "outcome_requests", ["at"])
