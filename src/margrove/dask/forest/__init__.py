"""Forests on a cluster: each worker holds the whole table as codes, and grows some of the trees.

estimators      random forests and extremely randomised trees
cluster_table   the table of a fit: the order of its rows, and where its codes lie
rank_codes      partitions as rank codes
grower          grows trees on the workers
task_pool       which worker does which task, and who does it again when a worker is lost
worker_table    what a worker holds, and the tasks that it does
"""
