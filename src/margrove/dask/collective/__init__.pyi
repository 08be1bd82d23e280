from .reductions import reduced as reduced
from .worker_group import HEARTBEAT_TIMEOUT as HEARTBEAT_TIMEOUT
from .worker_group import WorkerGroup as WorkerGroup
