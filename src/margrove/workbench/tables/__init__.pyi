from .table_models import table_model as table_model
from .table_models import types_of_model as types_of_model
from .tasks import Task as Task
from .tasks import target_values as target_values
from .tasks import task_of_table as task_of_table
