"""Pictures of how models came about: boosting, forests, paths, tuning, comparisons."""
