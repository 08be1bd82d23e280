"""Lessons about the perceptron and support vector machines."""
