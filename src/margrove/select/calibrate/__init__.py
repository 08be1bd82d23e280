"""Probabilities that mean what they say: reliability and calibrate."""
