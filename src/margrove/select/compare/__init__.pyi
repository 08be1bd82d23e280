from .comparison import compare as compare
from .contestants import task_of_numbers as task_of_numbers
from .contestants import task_of_targets as task_of_targets
from .result import Comparison as Comparison
