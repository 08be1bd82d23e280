"""The sections of a report, one file each, in their order on the page.

summary        the most important results
data           columns, the target, and the findings of the doctor
leaderboard    the compared models: scores with intervals, times, tests
tuning         the settings that were tried: a map of C and gamma, or a curve
model          the model and its parameters, by one of these:
machines       margin machines: support vectors, margins, weights, the certificate
trees          a decision tree: drawing, rules, importances
forests        forests and bagging: size, out-of-bag error, importances
boosting       boosting: errors, losses, margins, importances
judged         how good the model is on rows: confusion, curves, calibration, mistakes
dependence     how the predictions change with single columns
reproduction   how to reproduce the model: code, versions, seed
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
