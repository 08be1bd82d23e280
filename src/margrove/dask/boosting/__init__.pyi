from .warmup import grow_a_tree as grow_a_tree
