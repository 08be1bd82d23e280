from . import adaboost_bound as adaboost_bound
from . import adaboost_by_hand as adaboost_by_hand
from . import bagging_and_forests as bagging_and_forests
from . import bootstrap_of_a_median as bootstrap_of_a_median
