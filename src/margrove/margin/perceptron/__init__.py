"""Estimators: Perceptron and KernelPerceptron.

kernel_perceptron   KernelPerceptron, the perceptron in the space of a kernel
mistake_driven      what the two perceptrons share
perceptron          perceptron
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
