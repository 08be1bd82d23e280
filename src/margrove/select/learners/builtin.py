"""margrove's own learners, in the order of all lists."""

from __future__ import annotations

from margrove.select.learners.learner import Learner, Place, TaskEstimator

__all__ = ["BUILTIN_LEARNERS"]

_ALL: frozenset[Place] = frozenset({"comparisons", "commands", "estimates"})
_BY_NAME_ONLY: frozenset[Place] = frozenset()


def _for(estimator: str, title: str, summary: str) -> TaskEstimator:
    return TaskEstimator(estimator=estimator, title=title, summary=summary)


_MARGIN = (
    Learner(
        name="perceptron",
        title="averaged perceptron",
        family="margin",
        classification=_for(
            "Perceptron",
            "Perceptron",
            "Moves its line after every mistake, and stops when there are none.",
        ),
        settings={"average": True},
        tuning="epochs",
    ),
    Learner(
        name="kernel-perceptron",
        title="perceptron with a Gaussian kernel",
        family="margin",
        classification=_for(
            "KernelPerceptron",
            "Kernel perceptron",
            "The perceptron in the feature space of a kernel.",
        ),
        tuning="epochs",
        cost="kernel",
        places=_BY_NAME_ONLY,
    ),
    Learner(
        name="linear-svm",
        title="linear support vector machine",
        family="margin",
        classification=_for(
            "LinearSVC",
            "Linear support vector machine",
            "The line with the widest margin, some slack allowed.",
        ),
        regression=_for(
            "LinearSVR",
            "Linear support vector regression",
            "A line; errors within a tube are free.",
        ),
        tuning="linear",
    ),
    Learner(
        name="svm",
        title="support vector machine with a Gaussian kernel",
        family="margin",
        classification=_for(
            "SVC",
            "Support vector machine",
            "The widest margin in the feature space of a kernel.",
        ),
        regression=_for(
            "SVR",
            "Support vector regression",
            "The flattest function in the feature space of a kernel, within a tube.",
        ),
        tuning="kernel",
        cost="kernel",
    ),
    Learner(
        name="nu-svm",
        title="nu support vector machine with a Gaussian kernel",
        family="margin",
        classification=_for(
            "NuSVC",
            "nu support vector machine",
            "The support vector machine with a share nu instead of C.",
        ),
        regression=_for(
            "NuSVR",
            "nu support vector regression",
            "The tube becomes as narrow as a share of the points allows.",
        ),
        tuning="kernel",
        cost="kernel",
        places=_BY_NAME_ONLY,
    ),
)

_GROVE = (
    Learner(
        name="tree",
        title="one decision tree of at most 64 leaves",
        family="tree",
        classification=_for(
            "DecisionTreeClassifier", "Decision tree", "Asks one question after the other."
        ),
        regression=_for("DecisionTreeRegressor", "Regression tree", "A constant in each leaf."),
        table_settings={"max_leaf_nodes": 64},
        tuning="pruning",
    ),
    Learner(
        name="bagging",
        title="bagged trees",
        family="ensemble",
        classification=_for(
            "BaggingClassifier",
            "Bagged trees",
            "Trees that have seen different draws of the points.",
        ),
        regression=_for(
            "BaggingRegressor",
            "Bagged regression trees",
            "The mean of trees that have seen different draws.",
        ),
        tuning="forest",
        cost="members",
        places=frozenset({"commands"}),
    ),
    Learner(
        name="forest",
        title="random forest",
        family="ensemble",
        classification=_for(
            "RandomForestClassifier",
            "Random forest",
            "Bagged trees whose splits consider few features.",
        ),
        regression=_for(
            "RandomForestRegressor",
            "Random forest of numbers",
            "The mean of trees, with an interval around it.",
        ),
        table_settings={"oob_score": True},
        tuning="forest",
        cost="members",
    ),
    Learner(
        name="extra-trees",
        title="extremely randomised trees",
        family="ensemble",
        classification=_for(
            "ExtraTreesClassifier", "Extra trees", "A forest with thresholds drawn at random."
        ),
        regression=_for(
            "ExtraTreesRegressor",
            "Extra regression trees",
            "The mean of trees with thresholds drawn at random.",
        ),
        tuning="forest",
        cost="members",
        places=_ALL - {"comparisons"},
    ),
    Learner(
        name="adaboost",
        title="boosted stumps",
        family="ensemble",
        classification=_for(
            "AdaBoostClassifier",
            "AdaBoost",
            "Weak learners, each trained on the mistakes of those before.",
        ),
        regression=_for(
            "AdaBoostRegressor",
            "AdaBoost of numbers",
            "Trees, each trained more on the points with large errors.",
        ),
        tuning="rounds",
        cost="rounds",
    ),
    Learner(
        name="boosting",
        title="gradient boosting",
        family="ensemble",
        classification=_for(
            "HistGradientBoostingClassifier",
            "Histogram boosting",
            "Gradient boosting that is fast for many points.",
        ),
        regression=_for(
            "HistGradientBoostingRegressor",
            "Histogram boosting of numbers",
            "Gradient boosting that is fast for many points.",
        ),
        tuning="rounds",
        cost="rounds",
    ),
    Learner(
        name="classic-boosting",
        title="gradient boosting with exact thresholds",
        family="ensemble",
        classification=_for(
            "GradientBoostingClassifier",
            "Gradient boosting",
            "Adds trees where the loss is steepest.",
        ),
        regression=_for(
            "GradientBoostingRegressor",
            "Gradient boosting of numbers",
            "Each tree is fitted to the residuals.",
        ),
        tuning="rounds",
        cost="rounds",
        places=frozenset({"estimates"}),
    ),
)

BUILTIN_LEARNERS = (*_MARGIN, *_GROVE)
