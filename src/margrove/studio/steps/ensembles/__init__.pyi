from . import adaboost as adaboost
from . import gradient_boosting as gradient_boosting
from . import member_steps as member_steps
