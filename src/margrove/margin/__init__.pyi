from . import kernels as kernels
from . import losses as losses
from .decisions import dense_coefficients as dense_coefficients
from .losses import LOSSES as LOSSES
