from .bottom_up import child_sums as child_sums
from .cost_complexity import cost_complexity_path as cost_complexity_path
from .cost_complexity import last_within as last_within
from .cost_complexity import losses_along as losses_along
from .cost_complexity import prune_by_cost_complexity as prune_by_cost_complexity
from .held_out_losses import validation_losses as validation_losses
from .pruning import cross_validated_alpha as cross_validated_alpha
from .pruning import prune as prune
