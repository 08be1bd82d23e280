"""A fitted tree as text, Python, SQL, JSON, DOT, or a tree of scikit-learn.

exports         text and Graphviz source; the other formats are imported here
python_source   Python source that needs no library
sklearn_tree    the arrays of scikit-learn's `tree_`, and its class `Tree`
sql             an expression of standard SQL, in which NULL is missing
tree_json       plain values and JSON, and back to arrays
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
