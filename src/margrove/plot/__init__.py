"""Pictures of fitted models, drawn from what `margrove.facts` says about them.

    decision_boundary   regions, boundary, margins and support vectors over two features
    coefficients        the features with the largest weights of a linear model

Matplotlib is imported when something is drawn; `pip install "margrove[plot]"` brings it.
"""

from margrove.plot.coefficients import coefficients
from margrove.plot.decision_boundary import decision_boundary

__all__ = ["coefficients", "decision_boundary"]
