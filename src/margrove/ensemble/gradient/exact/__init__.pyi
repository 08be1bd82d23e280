from .rounds import ExactRounds as ExactRounds
from .rounds import Grower as Grower
from .rounds import RefittedTree as RefittedTree
from .trees import ExactTrees as ExactTrees
