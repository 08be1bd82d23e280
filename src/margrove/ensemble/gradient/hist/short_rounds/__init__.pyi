from .coded_losses import code_of_loss as code_of_loss
from .few_rows import is_worth_lists as is_worth_lists
from .rounds_at_once import RoundsAtOnce as RoundsAtOnce
from .rounds_at_once import cost_of_round as cost_of_round
