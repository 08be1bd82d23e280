from . import hull as hull
from . import perceptron as perceptron
from . import smo as smo
from . import subgradient as subgradient
