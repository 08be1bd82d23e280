"""Groves: decision trees on one compiled engine, from binning to pruning and reading.

criteria        the registry of criteria: how the impurity of a node is measured
decision_tree   base class of the two decision trees: parameters, growing, reading
estimators      DecisionTreeClassifier, DecisionTreeRegressor
explain/        how trees use their features: SHAP values, partial dependence, importances
export/         a fitted tree as text, Python, SQL, JSON, DOT, or a tree of scikit-learn
grow/           growing a tree: nodes are searched for their best split
growth_limits   what limits the growth of a tree
prune/          pruning: which nodes of a grown tree become leaves
read/           a fitted tree for people: its nodes, rules, regions and explanations
serve/          grown trees as arrays, and how rows find their leaves
table/          what trees are grown from
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
