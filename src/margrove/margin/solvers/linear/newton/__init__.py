"""Newton's method for linear machines, with the L2 or the L1 penalty, from sums over rows.

newton_process        Newton steps over some machines, with the L2 penalty
small_problems        Newton steps of small dense problems, in one compiled call
newton_steps          Newton steps of one machine: what needs no rows
newton_machines       many machines by Newton's method, and what to do if it fails
joint_machines        all machines of a problem whose rows are on several members
row_tiles             the rows of a problem in tiles, in memory or in files
machine_rows          the values and dual variables of all rows, of several machines
row_passes            passes over the rows of a tile: dual variables, their sums, violations
line_search           exact line searches of several machines
normal_equations      the matrices X'DX, which follow the rows with curvature
conjugate_gradients   Newton steps with many features, without these matrices
l1_newton             proximal Newton steps for the L1 penalty with few features
l1_rows               the values and dual variables of all rows, for the L1 penalty
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
