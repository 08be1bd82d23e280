"""The bootstrap: resamples of rows, statistics on them, and the error of a learner.

arguments     what users hand to the bootstrap
draws         what is in each resample: rows
error         the error of a learner on rows it has not seen
evaluation    the user's statistic, evaluated on resamples
fits          learners fitted to bootstrap samples
intervals     from the values of a statistic on resamples to its moments and to confidence
              intervals
losses        losses of predictions, row by row and over all pairs of a target and a prediction
random_bits   random bits without a state
resampling    bootstrap samples as multiplicities: how often each row was drawn
statistic     the bootstrap: how a statistic would vary
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
