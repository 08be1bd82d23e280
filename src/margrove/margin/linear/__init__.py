"""Linear support vector machines: LinearSVC, LinearSVR, their paths and certificates.

linear_svc       LinearSVC
linear_svr       LinearSVR
linear_machine   the base class of LinearSVC and LinearSVR
row_facts        what a fit must know about all rows to make the problem of some of them
member_rows      what each of several machines runs, whose rows are parts of a table
problems         the problem of linear machines, primal and dual, and builders for each loss
path             regularisation paths of linear machines
certificates     proofs of how good a fitted linear machine is, margrove's or scikit-learn's
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
