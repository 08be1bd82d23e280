"""Pictures of models: boosting, forests, paths, tuning, comparisons."""
