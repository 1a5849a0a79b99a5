"""The five reasons for which customers return something, in the built-in corpus and its scores."""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS = (
    "item_defective",
    "missing_parts",
    "quality_not_adequate",
    "customer_preference",
    "others",
)
