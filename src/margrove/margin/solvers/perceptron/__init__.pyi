from .early_stopping import Patience as Patience
from .kernel_perceptron import DualRule as DualRule
from .kernel_perceptron import KernelPerceptronProcess as KernelPerceptronProcess
from .perceptron import LinearState as LinearState
from .perceptron import PerceptronProcess as PerceptronProcess
from .perceptron import Rule as Rule
from .row_order import shuffle as shuffle
from .separation import measure_separation as measure_separation
