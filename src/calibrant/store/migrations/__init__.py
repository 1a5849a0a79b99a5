"""Alembic migrations of the store."""

__all__: list[str] = []
