"""Trees of classic gradient boosting, with exact splits."""
