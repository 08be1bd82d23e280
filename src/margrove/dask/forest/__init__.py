"""Forests on a cluster: each worker holds the whole table as codes, and grows some of the trees.

estimators     random forests and extremely randomised trees
rows           the rows of a fit: their order, and their codes on the workers
rank_codes     partitions as rank codes
grower         grows trees on the workers
tree_tasks     the tasks of a fit that are under way
worker_table   the table of a worker, and the tasks on it
"""
