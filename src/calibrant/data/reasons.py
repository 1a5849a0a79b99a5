"""The five return reasons of the built-in corpus and example scores."""

from __future__ import annotations

REASONS = (
    "item_defective",
    "missing_parts",
    "quality_not_adequate",
    "customer_preference",
    "others",
)
