"""The sections of a report, a file each, in the order in which they are read.

boosting       Boosting: errors and their bound round by round
data           the data: columns, the target, and what the doctor has found
dependence     what the model says as single columns change
forests        forests and bags: their size, the out-of-bag error, and what they depend on
judged         how good the model is on rows
leaderboard    how models compare: scores with intervals, times, and what the differences mean
machines       margin machines: support vectors by kind, margins, weights, and the proof
model          the chosen model: what its family has to show, and its parameters
reproduction   how to do it again, in Python: code to copy, versions and the seed
summary        the summary: what a reader should know who reads nothing else
trees          a decision tree: its drawing, its rules, and what it depends on
tuning         what tuning has tried: a map of C and gamma, or scores against what was varied
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
