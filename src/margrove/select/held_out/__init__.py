"""Rows held out: folds, estimators fitted to the rest, and their scores."""
