"""Estimators: Perceptron and KernelPerceptron."""
