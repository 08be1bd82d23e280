from .errors import ComparisonTimeoutError as ComparisonTimeoutError
from .errors import InvalidRequestError as InvalidRequestError
