"""Facts about a fitted model, as plain values.

`describe` is the one place that looks into an estimator. Plots, reports, the command line and web
pages render what it returns: frozen dataclasses of numbers, strings and read-only arrays, which
`as_dict` turns into what JSON can hold. Rows are always rows of the X that `fit` got.
`strongest_features` names the largest weights of any linear model; `sketch_tree`, `tree_regions`,
`gain_curves` and `pruning_errors` are the data behind the pictures of trees, `out_of_bag_curve`,
`ranked_importances`, `proximity_plane` and `interval_coverage` behind those of forests,
`boosting_errors`, `margin_distributions` and `boosting_sketches` behind those of AdaBoost,
`loss_curve` and `gradient_stages` behind those of gradient boosting, of which `round_facts` tells
what a round did. `stump_rules` puts boosted stumps into words. `confusion`, `roc_curves`,
`precision_recall_curves`, `margins_of`, `residual_facts`, `worst_mistakes` and
`partial_dependence_facts` are about the predictions of any model. Modules named `lecture_*` are the
data behind the figures of the lectures.

classification_scores   scores that any classifier gives to its classes, and labels as codes
dependence              partial dependence of any model
describing              `describe`: everything that is known about a fitted model
machine_values          facts about margin machines, as frozen dataclasses
mistakes                rows that a model gets wrong, and by how much
models/                 how `describe` reads each family of models
outlines                what any fitted estimator under scikit-learn's API has: task, classes,
                        features
plain_values            any value as a plain one: a read-only array
prediction_values       facts about predictions: confusion, curves, margins, residuals, mistakes
predictions             predictions of any model under scikit-learn's API compared with the truth
proofs                  from a certificate to facts
stumps                  boosted stumps as rules of thumb, in words
values                  facts as frozen dataclasses: what all estimators have, and what a tree has
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
