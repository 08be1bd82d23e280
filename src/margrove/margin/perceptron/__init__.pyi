from .kernel_perceptron import KernelPerceptron as KernelPerceptron
from .mistake_driven import MistakeDriven as MistakeDriven
from .mistake_driven import separation_attributes as separation_attributes
from .perceptron import Perceptron as Perceptron
