"""Steps of ensembles: members of bagging and forests, rounds of boosting.

adaboost            AdaBoost, round by round: errors, weights of members and of points, and the
                    bound
boosted_models      boosted models after fewer rounds
gradient_boosting   gradient boosting, round by round
member_steps        bagging and forests, member by member: the vote of the first 1, 2, 3,
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
