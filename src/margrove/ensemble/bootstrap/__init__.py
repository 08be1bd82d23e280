"""The bootstrap: resamples of rows, statistics on them, and the error of a learner."""
