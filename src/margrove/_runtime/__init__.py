"""How compiled code runs, and how long work is watched, stopped and kept.

jit             the one decorator of compiled loops, and the cache of their machine code
source_stamps   which source files the machine code of a kernel depends on
instructions    instructions of processors that Numba does not offer
prefetch        asking for memory before it is needed
threads         tiles of work on several threads, and BLAS on one
team            several threads inside one compiled loop
record_arrays   structured arrays: `nodes.gain[i]` in Python and in kernels
matrix_tiles    products of matrices whose entries do not depend on how they were cut
process_tasks   tasks for other processes, here or on a cluster
slices          how iterative learners run: progress, time limits, Ctrl-C, callbacks
process_states  what is taken from a running process, and put back into another one
checkpoints     fits that go on in another session
memory          how much memory there is
estimator       what all estimators share: checks of parameters, fitted state in one step
warmup          compiles every kernel
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
