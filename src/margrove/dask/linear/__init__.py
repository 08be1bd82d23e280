"""Linear machines on a cluster: the same solutions, from sums over the rows of all workers.

estimators       LinearSVC, LinearSVR
perceptron       Perceptron
online           learners that process the partitions one after the other
fit              a fit, from summaries of rows to the certificate
row_summaries    summaries of the rows of each worker
plan             the settings that the client sends to all workers
newton           Newton's method with the L2 penalty
l1_newton        proximal Newton steps with the L1 penalty
line_search      line search and conjugate gradients, from sums of all workers
certificate      how far the solution is from the optimum at most
worker_program   the worker's side: its rows, tile by tile
row_sums         sums over the rows of one tile
problem_rows     rows as a problem: X, and the loss of each row
machine_rows     one machine over these rows: its losses, values, dual variables
"""
