"""Solvers, which know arrays and not estimators; each states its problem above its code.

dual/         solvers of the dual problems of kernel machines
linear/       solvers of linear machines
perceptron/   perceptrons, in the primal and with a kernel
"""
