"""A fitted tree as text, Python, SQL, JSON, DOT, or a tree of scikit-learn's."""
