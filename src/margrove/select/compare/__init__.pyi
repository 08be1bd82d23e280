from .compared_models import task_of_numbers as task_of_numbers
from .compared_models import task_of_targets as task_of_targets
from .comparison import compare as compare
from .result import Comparison as Comparison
