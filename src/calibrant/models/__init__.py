"""Networks that turn encoded rows into logits: one file each."""

__all__: list[str] = []
