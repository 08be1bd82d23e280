"""A fitted tree as text, Python, SQL, JSON, DOT, or a tree of scikit-learn's.

exports         a fitted tree for people and for other programs
python_source   a fitted tree as Python source that needs no library
sklearn_tree    a binary tree in scikit-learn's clothes: `tree_`, and scikit-learn's own classes
sql             a fitted tree as an expression of standard SQL, in which NULL is missing
tree_json       a fitted tree as plain values and as JSON, and back to arrays
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
