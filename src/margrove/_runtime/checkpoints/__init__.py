"""Checkpoints: fits that were interrupted are resumed in another session.

block.py          the `with` block `checkpoint`
keeper.py         restores processes, saves their states between slices, delays Ctrl-C
records.py        what a file contains about a process, and whether it is the same process
process_states.py checks and copies the states of processes
fingerprints.py   hashes of data by their contents
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
