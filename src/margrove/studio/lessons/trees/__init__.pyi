from . import impurity as impurity
from . import overfitting_and_pruning as overfitting_and_pruning
from . import restaurant as restaurant
from . import tennis as tennis
