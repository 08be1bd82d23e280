"""Estimators: Perceptron and KernelPerceptron.

perceptron          Perceptron
kernel_perceptron   KernelPerceptron, the perceptron in the feature space of a kernel
mistake_driven      the base class of the two perceptrons
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
