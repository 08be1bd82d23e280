"""Solvers of perceptrons, in the primal and with a kernel.

perceptron          the perceptron: stochastic subgradient steps on the perceptron loss
perceptron_steps    the compiled loops of the perceptron
kernel_perceptron   the perceptron in dual form
epochs              the order of rows in an epoch, and early stopping
separation          how well hyperplanes separate the data
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
