"""Model files, and conversion from and to scikit-learn.

model_file/     models in files: archives of plain values, and a table of what they may contain
scikit_learn/   conversion of fitted models from and to scikit-learn
"""
