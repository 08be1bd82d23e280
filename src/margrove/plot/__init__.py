"""Pictures of fitted models, drawn from what `margrove.facts` says about them.

    decision_boundary   regions, boundary, margins and support vectors over two features

Matplotlib is imported when something is drawn; `pip install "margrove[plot]"` brings it.
"""

from margrove.plot.decision_boundary import decision_boundary

__all__ = ["decision_boundary"]
