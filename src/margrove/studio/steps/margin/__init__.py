"""Steps of the perceptron and of the solvers of support vector machines."""
