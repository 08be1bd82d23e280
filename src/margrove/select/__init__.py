"""Choosing and judging models: paths, grids, cross-validation, autotune, compare, calibrate."""
