"""Linear machines on a cluster: sums over the rows of all workers, the same solutions.

estimators       LinearSVC, LinearSVR
perceptron       Perceptron
online           learners that visit the partitions in turn
fit              a fit, from summaries of rows to the certificate
row_summaries    what workers tell of their rows
plan             what the client tells all workers
newton           Newton's method with the L2 penalty
l1_newton        proximal Newton steps with the L1 penalty
line_search      line search and conjugate gradients, from sums of all workers
certificate      how far from the optimum the solution can be at most
worker_program   the worker's side: its rows, tile by tile
row_sums         sums over the rows of one tile
problem_rows     rows as a problem: X, and the loss of each row
machine_rows     one machine over these rows: its losses, values, dual variables
"""
