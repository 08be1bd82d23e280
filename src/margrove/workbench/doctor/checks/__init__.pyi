from .column_copies import COPY_CHECKS as COPY_CHECKS
from .columns import COLUMN_CHECKS as COLUMN_CHECKS
from .leaks import LEAK_CHECKS as LEAK_CHECKS
from .rows import ROW_CHECKS as ROW_CHECKS
from .targets import TARGET_CHECKS as TARGET_CHECKS
