from .calibration import reliability_diagram as reliability_diagram
