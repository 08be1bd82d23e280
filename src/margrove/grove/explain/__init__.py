"""What trees make of their features: SHAP values, partial dependence, importances."""
