from .estimates import CostEstimate as CostEstimate
from .estimates import cost_table as cost_table
from .probes import estimates_for as estimates_for
