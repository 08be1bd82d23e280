"""What trees make of their features: SHAP values, partial dependence, importances.

dependence                   partial dependence: what trees say if all rows had the same values of
                             one feature, or of two
importances                  how much a fitted tree depends on each feature, measured on data
partial_dependence_kernels   compiled loops of partial dependence
shap                         SHAP values: what each feature of a row adds to the answer of trees
shap_kernels                 compiled loops of SHAP values
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
