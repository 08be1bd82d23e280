"""Models in files: an archive of plain values, and a table of what may be in it.

about                    what is kept beside a model: a few plain values, such as the name of the
                         target
bagging_kinds            bagged ensembles in model files
boosting_kinds           boosted models in model files
checks                   what a value of a model file may be
files                    models in files: `save`, `load`, and `inspect_file`, which looks without
                         loading
kinds                    what a model file may hold
loss_parts               losses of gradient boosting in model files
margin_kinds             margin machines in model files
registered_kinds         learners that somebody has registered, in model files
search_kinds             searches over C and gamma in model files
sklearn_ensemble_kinds   models of scikit-learn that are made of other models
sklearn_kinds            estimators of scikit-learn that may travel with a machine of ours in a
                         model file
table_kinds              preparations of raw tables in model files
tree_kinds               trees and forests in model files
values                   models as plain values and back: the step between estimators and archives
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
