"""Solvers know arrays, not estimators: each states its problem above its code.

dual/         solvers of the dual problems of kernel machines
linear/       solvers of linear machines
perceptron/   Perceptrons, in the primal and with a kernel
"""
