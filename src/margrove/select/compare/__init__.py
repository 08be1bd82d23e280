"""compare: models on the same folds, with statistics that know that folds overlap, and blends."""
