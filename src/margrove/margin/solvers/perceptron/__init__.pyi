from .epochs import EarlyStopping as EarlyStopping
from .epochs import shuffle as shuffle
from .kernel_perceptron import DualRule as DualRule
from .kernel_perceptron import KernelPerceptronProcess as KernelPerceptronProcess
from .perceptron import LinearState as LinearState
from .perceptron import PerceptronProcess as PerceptronProcess
from .perceptron import Rule as Rule
from .separation import measure_separation as measure_separation
