from .dependence import partial_dependence as partial_dependence
from .importances import PermutationImportances as PermutationImportances
from .importances import permutation_importances as permutation_importances
from .shap import shap_values as shap_values
