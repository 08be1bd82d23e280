"""Forests on a cluster: each worker holds the whole table as codes, and grows some of the trees.

estimators      random forests and extremely randomised trees
cluster_table   the table of a fit: the order of its rows, and its codes on the workers
rank_codes      partitions as rank codes
grower          grows trees on the workers
task_pool       distributes tasks to workers, and repeats those of lost workers
worker_table    the table of a worker, and the tasks on it
"""
