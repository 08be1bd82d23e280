from .patching import load_ipython_extension as load_ipython_extension
from .patching import patch_sklearn as patch_sklearn
from .patching import patched as patched
from .patching import unload_ipython_extension as unload_ipython_extension
from .patching import unpatch_sklearn as unpatch_sklearn
from .registry import from_sklearn as from_sklearn
from .registry import to_sklearn as to_sklearn
from .replacements import fit_counts as fit_counts
