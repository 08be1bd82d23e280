"""Groves: decision trees on one compiled engine, from binning to pruning and reading.

criteria        the criteria of trees: what makes a node impure, by name
decision_tree   what the two decision trees share: parameters, growing, reading
estimators      DecisionTreeClassifier, DecisionTreeRegressor
explain/        what trees make of their features: SHAP values, partial dependence, importances
export/         a fitted tree as text, Python, SQL, JSON, DOT, or a tree of scikit-learn's
grow/           growing a tree: nodes are searched for their best split
growth_limits   what limits the growth of a tree
prune/          Pruning: which nodes of a grown tree become leaves
read/           a fitted tree for people: its nodes, rules, regions and reasons
serve/          grown trees as arrays, and rows on their way through them
table/          what trees are grown from
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
