"""The order of the tutorials: that of the lectures."""

from __future__ import annotations

__all__ = ["TUTORIALS", "TutorialOrder"]

TUTORIALS = (
    "perceptron",
    "maximal_margin",
    "soft_margin",
    "kernel_trick",
    "smo_step_by_step",
    "decision_trees",
    "impurity_and_gain",
    "overfitting_and_pruning",
    "the_bootstrap",
    "bagging_and_forests",
    "adaboost",
    "gradient_boosting",
    "tuning_c_and_gamma",
    "comparing_models",
)


class TutorialOrder:
    """A sort key of sphinx-gallery, which makes one for a folder and calls it with file names."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file_name: str) -> int:
        return TUTORIALS.index(file_name.removesuffix(".py"))

    def __repr__(self) -> str:  # part of what sphinx keeps to see whether settings changed
        return "TutorialOrder"
