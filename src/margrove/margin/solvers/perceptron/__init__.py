"""Perceptrons, in the primal and with a kernel."""
