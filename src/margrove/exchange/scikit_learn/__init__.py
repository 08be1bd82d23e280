"""Fitted models both ways between scikit-learn and margrove.

from_sklearn   a fitted estimator of scikit-learn's, as one of ours
to_sklearn     the way back; each estimator has it as a method
"""

from margrove.exchange.scikit_learn.registry import from_sklearn, to_sklearn

__all__ = ["from_sklearn", "to_sklearn"]
