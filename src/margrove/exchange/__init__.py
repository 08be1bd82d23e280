"""Model files, and conversion from and to scikit-learn.

model_file/     models in files: an archive of plain values, and a table of what may be in it
scikit_learn/   fitted models both ways between scikit-learn and margrove
"""
