"""What can be wrong with columns, labels, rows and targets.

column_copies   columns that say the same
columns         what can be wrong with columns, whatever is to be predicted
labels          what can be wrong with columns of labels
leaks           columns that tell the target by themselves
rows            what can be wrong with rows: copies, contradictions, rows without any value
targets         what can be wrong with a target
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
