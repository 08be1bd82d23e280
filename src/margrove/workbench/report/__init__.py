"""Reports in one file, rendered from what `margrove.facts` says about a model.

`margrove.report(model, X, y)` makes one.
"""

from __future__ import annotations

from margrove.workbench.report.reporting import Report, report

__all__ = ["Report", "report"]
