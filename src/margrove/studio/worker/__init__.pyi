from .lru_cache import LruCache as LruCache
from .lru_cache import key_of as key_of
from .request_queue import QueuedRequest as QueuedRequest
from .worker_main import WorkerSettings as WorkerSettings
from .worker_supervisor import Limits as Limits
from .worker_supervisor import WorkerSupervisor as WorkerSupervisor
from .worker_supervisor import worker_memory as worker_memory
