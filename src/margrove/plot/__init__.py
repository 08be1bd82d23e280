"""Pictures of fitted models, drawn from what `margrove.facts` says about them."""
