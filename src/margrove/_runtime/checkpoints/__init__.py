"""Checkpoints: fits that are cut short go on in another session, where they stopped.

block.py          the `with` block
keeper.py         the states of the processes in a block: restored, taken between slices, written
records.py        what a file holds of a process, and whether it is the same process
fingerprints.py   data by their contents
interrupts.py     Ctrl-C, held back until a slice is over
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
