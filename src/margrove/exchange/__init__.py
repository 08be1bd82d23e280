"""Model files, and conversion from and to scikit-learn."""
