"""The studio: the real algorithms, step by step, in the browser."""
