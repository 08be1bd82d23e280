"""Bagging: estimators of any kind, fitted to samples of the rows and columns."""
