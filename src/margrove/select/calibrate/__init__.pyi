from .calibration import Calibrated as Calibrated
from .calibration import calibrate as calibrate
from .reliability import Reliability as Reliability
from .reliability import reliability as reliability
from .reliability import reliability_of as reliability_of
from .reliability_figures import ReliabilityCurve as ReliabilityCurve
from .reliability_figures import wilson_interval as wilson_interval
