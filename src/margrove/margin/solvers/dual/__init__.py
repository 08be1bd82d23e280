"""Solvers of the dual problems of kernel machines."""
