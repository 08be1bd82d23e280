"""Linear support vector machines: LinearSVC, LinearSVR, their paths and certificates."""
