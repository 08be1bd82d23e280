"""AdaBoost: rounds that give misclassified rows more weight."""
