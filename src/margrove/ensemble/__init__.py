"""Ensembles: the bootstrap, bagging, random forests, AdaBoost and gradient boosting.

adaboost/    AdaBoost: rounds that give misclassified rows more weight
bagging/     Bagging: estimators of any kind, fitted to samples of the rows and columns
bootstrap/   the bootstrap: resamples of rows, statistics on them, and the error of a learner
forest/      random forests and extremely randomised trees, and what can be measured of them
gradient/    gradient boosting: classic, with exact splits, and by histograms
"""
