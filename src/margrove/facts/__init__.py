"""Facts about a fitted model, as plain values.

`describe` is the only place that reads the internals of an estimator. Plots, reports, the command
line and web pages render what it returns: frozen dataclasses of numbers, strings and read-only
arrays, which `as_dict` turns into types that JSON has. Rows are always rows of the X of `fit`.

`strongest_features` names the largest weights of any linear model. The data behind pictures are:

- of trees: `sketch_tree`, `tree_regions`, `gain_curves`, `pruning_errors`;
- of forests: `out_of_bag_curve`, `ranked_importances`, `proximity_plane`, `interval_coverage`;
- of AdaBoost: `boosting_errors`, `margin_distributions`, `boosting_sketches`; `stump_rules`
  describes boosted stumps in words;
- of gradient boosting: `loss_curve`, `gradient_stages`, and `round_facts` for single rounds;
- of the predictions of any model: `confusion`, `roc_curves`, `precision_recall_curves`,
  `margins_of`, `residual_facts`, `worst_mistakes`, `partial_dependence_facts`.

classification_scores   scores that any classifier gives to its classes, and labels as codes
dependence              partial dependence of any model
describing              `describe`: everything that is known about a fitted model
machine_values          facts about margin machines, as frozen dataclasses
mistakes                rows that a model predicts wrongly, and by how much
models/                 how `describe` reads each family of models
plain_values            values of facts: read-only arrays, texts, types that JSON has
prediction_values       facts about predictions: confusion, curves, margins, residuals, mistakes
predictions             predictions of any model under scikit-learn's API compared with the truth
proofs                  from a certificate to facts
stumps                  boosted stumps as rules, in words
values                  facts that all estimators have, and those of trees
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
