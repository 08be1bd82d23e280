from .automatic import autotune as autotune
from .tuning import Tuning as Tuning
from .tuning import in_words as in_words
