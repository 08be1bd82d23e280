"""autotune: one call that chooses the main parameters of an estimator.

automatic         autotune, and the tuner of each learner
task              TuningTask: the estimator, its folds and its scores, as a tuner gets them
scores            scores of fitted models on held-out rows, also after each round of boosting
tuning            Tuning: what was tried and chosen; the rules of choosing
trees             decision trees: ccp_alpha, by cross-validation
forests           forests and bagging: n_estimators and max_features, by out-of-bag rows
boosting          boosting: the number of rounds, from cross-validated curves
margin_machines   perceptrons, linear machines and support vector machines
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
