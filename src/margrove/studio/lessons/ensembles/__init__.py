"""Lessons about the bootstrap, bagging, forests and boosting."""
