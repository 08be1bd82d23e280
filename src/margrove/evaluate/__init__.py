"""Judging models: comparisons with statistics, blends of models, calibration."""
