"""One file per version; released ones are never changed."""

__all__: list[str] = []
