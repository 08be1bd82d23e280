"""Gradient boosting: classic, with exact splits, and by histograms."""
