from .rounds import ExactRounds as ExactRounds
from .rounds import Grower as Grower
from .rounds import TreeOfItsOwn as TreeOfItsOwn
from .trees import ExactTrees as ExactTrees
