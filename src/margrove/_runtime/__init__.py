"""How compiled code runs, and how fits are watched, stopped and resumed.

jit             the decorator of compiled loops, and the cache of their machine code
shipped_kernels machine code that is part of the installed package
source_stamps   which source files the machine code of a kernel depends on
instructions    processor instructions that Numba does not offer: atomics, prefetching
threads         how many threads to use, and single-threaded BLAS
waiting         how threads of compiled code sleep and are woken
pool            the threads of the library, and tiles that are Python functions
regions         compiled work that is cut into tiles for the pool
collective      sums over rows that are on several machines
record_arrays   structured arrays: `nodes.gain[i]` in Python and in kernels
matrix_tiles    matrix products whose entries do not depend on how the work is divided
thread_tasks    calls of Python functions, such as fits of any estimator, on these threads
process_tasks   tasks for other processes, on this machine or on a cluster
slices          runs iterative learners: progress, time limits, Ctrl-C, callbacks
checkpoints     fits that can be resumed in another session
memory          how much memory is available
estimator       the base class of estimators: parameter checks, commit of fitted attributes
warmup          compiles every kernel
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
