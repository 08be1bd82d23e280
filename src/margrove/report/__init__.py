"""Reports in one file, rendered from what `margrove.facts` says about a model."""
