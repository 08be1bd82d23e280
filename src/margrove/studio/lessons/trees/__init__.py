"""Lessons about decision trees."""
