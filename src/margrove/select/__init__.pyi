from .refusals import ComparisonTimeoutError as ComparisonTimeoutError
from .refusals import InvalidRequestError as InvalidRequestError
