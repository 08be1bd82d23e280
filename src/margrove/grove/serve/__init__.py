"""Grown trees as arrays, and rows on their way through them."""
