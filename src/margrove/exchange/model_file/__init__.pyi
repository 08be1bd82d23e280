from .checks import class_at as class_at
from .files import inspect_file as inspect_file
from .files import load as load
from .files import load_with_about as load_with_about
from .files import save as save
from .values import LEFT_OUT as LEFT_OUT
from .values import model_of as model_of
from .values import values_of as values_of
