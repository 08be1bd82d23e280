"""Perceptrons, in the primal and with a kernel.

early_stopping      when a learner that need not converge should stop
kernel_perceptron   the perceptron in dual form
perceptron          the perceptron: stochastic subgradient steps on the perceptron loss
perceptron_steps    the loops of the perceptron
row_order           in which order rows are presented
separation          how well hyperplanes separate the data
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
