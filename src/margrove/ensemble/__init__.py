"""Ensembles: the bootstrap, bagging, random forests, AdaBoost and gradient boosting."""
