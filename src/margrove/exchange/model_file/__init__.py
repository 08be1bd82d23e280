"""Models in files: archives of plain values, and a table of what they may contain.

about                    notes beside a model: a few plain values, such as the name of the target
bagging_kinds            bagged ensembles in model files
boosting_kinds           boosted models in model files
checks                   checks of single values in model files
files                    `save`, `load`, and `inspect_file`, which reads a file without loading it
kinds                    what a model file may contain
loss_parts               losses of gradient boosting in model files
margin_kinds             margin machines in model files
registered_kinds         learners that the user has registered, in model files
search_kinds             searches over C and gamma in model files
sklearn_ensemble_kinds   voting, stacking and calibration of scikit-learn in model files
sklearn_kinds            preprocessing and pipelines of scikit-learn in model files
table_kinds              preparations of raw tables in model files
tree_kinds               trees and forests in model files
values                   estimators as plain values, and back
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
