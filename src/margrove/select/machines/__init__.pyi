from .grid_cells import Cells as Cells
from .grid_search import GridSearchCV as GridSearchCV
from .linear_cv import LinearSVCCV as LinearSVCCV
from .machine_paths import FoldPaths as FoldPaths
from .svm_cv import SVCCV as SVCCV
from .svm_cv import SVRCV as SVRCV
from .svm_paths import svm_path as svm_path
