"""The bootstrap: resamples of rows, statistics on them, and the error of a learner.

arguments    checks of the arguments and the data that users pass
draws        the rows or weights of each resample
error        `bootstrap_error`: the error of a learner on rows it has not seen
evaluation   the user's statistic, evaluated on resamples
fits         learners fitted to bootstrap samples
intervals    moments and confidence intervals from the values of a statistic on resamples
losses       losses of predictions, by row and over all pairs of a target and a prediction
resampling   random bits, and bootstrap samples as multiplicities: how often each row was drawn
statistic    `bootstrap`: the standard error, bias and confidence interval of a statistic
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
