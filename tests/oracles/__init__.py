"""Slow and obviously right twins of what the library does fast."""
