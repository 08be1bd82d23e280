"""Margin machines: perceptrons and support vector machines, their kernels and losses."""
