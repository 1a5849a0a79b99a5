"""Encoders: tables, texts and images as numbers, learned from the train rows alone."""
