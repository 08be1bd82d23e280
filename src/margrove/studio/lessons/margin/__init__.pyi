from . import kernels_and_gamma as kernels_and_gamma
from . import margin_and_hulls as margin_and_hulls
from . import perceptron_mistakes as perceptron_mistakes
from . import slack_and_price as slack_and_price
from . import smo_in_boxes as smo_in_boxes
