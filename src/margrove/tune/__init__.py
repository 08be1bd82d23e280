"""Tuning: regularisation paths, grids and cross-validation that share their work."""
