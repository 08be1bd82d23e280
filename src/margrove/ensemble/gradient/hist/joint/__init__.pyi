from . import rows as rows
from . import splits as splits
from .tables import joint_bins_and_table as joint_bins_and_table
from .trees import JointTrees as JointTrees
