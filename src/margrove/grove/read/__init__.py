"""A fitted tree for people: its nodes, rules, regions and explanations.

conditions     the conditions of the branches of a tree, with the names of columns and labels
reasons        why a fitted tree predicts what it does for a row
tree_reading   a fitted tree as value objects: its nodes, its rules, its regions
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
