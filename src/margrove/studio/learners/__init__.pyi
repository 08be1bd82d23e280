from .choices import kernels_with as kernels_with
from .registry import LEARNERS as LEARNERS
from .registry import Offer as Offer
from .registry import Task as Task
