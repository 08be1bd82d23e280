"""Pictures of predictions and of their quality."""
