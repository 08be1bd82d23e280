"""Solvers know arrays, not estimators: each states its problem above its code."""
