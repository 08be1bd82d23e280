from .step_modes import STEPS as STEPS
from .step_modes import StepMode as StepMode
from .step_modes import step_of as step_of
from .step_modes import steps_of as steps_of
from .traces import MOST_STEPS as MOST_STEPS
