"""How trees use their features: SHAP values, partial dependence, importances.

dependence                   partial dependence: predictions if all rows had the same value of one
                             feature, or of two
importances                  permutation importances
partial_dependence_kernels   compiled loops of partial dependence
shap                         SHAP values: what each feature of a row adds to the prediction
shap_kernels                 compiled loops of SHAP values
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
