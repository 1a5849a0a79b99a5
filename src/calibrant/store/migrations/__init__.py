"""How the tables of the store came about, version by version; Alembic applies them."""

__all__: list[str] = []
