"""Margin machines: perceptrons and support vector machines, their kernels and losses.

decisions     decision values from fitted attributes, with checks
kernels/      kernel functions, their Gram matrices, kernel expansions and explicit feature maps
linear/       linear support vector machines: LinearSVC, LinearSVR
losses        the losses of the lectures in one table: value and (sub)gradient
perceptron/   Perceptron and KernelPerceptron
solvers/      solvers, which know arrays and not estimators; each states its problem above its code
svm/          support vector machines with a kernel: SVC, NuSVC, SVR, NuSVR, OneClassSVM
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
