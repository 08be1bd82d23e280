from .comparisons import compared_models as compared_models
from .paths import svm_path as svm_path
from .tuning import tuning_curve as tuning_curve
