from . import pruning as pruning
from . import splits as splits
