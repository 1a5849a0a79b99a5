"""One file a version; a released one is never changed."""

__all__: list[str] = []
