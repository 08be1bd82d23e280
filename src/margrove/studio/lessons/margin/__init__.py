"""Lessons about the perceptron and support vector machines.

kernels_and_gamma     Kernels, and how far a point's influence goes
margin_and_hulls      why the middle: the margin, and the hulls of the classes
perceptron_mistakes   the perceptron and its mistakes
slack_and_price       Slack, and what it costs
smo_in_boxes          SMO: two dual variables at a time
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
