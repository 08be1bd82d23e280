"""Data sets of the lectures, small generators, and the sets that come with scikit-learn.

All return a scikit-learn `Bunch`; `return_X_y=True` gives a pair, `as_frame=True` (or "pandas",
"polars", "pyarrow") a dataframe.

breiman      synthetic sets of Breiman's papers on bagging, boosting and forests
bunches      data sets as a Bunch, a pair, or dataframes of any library
bundled      the small real sets that come with scikit-learn
generators   small generated sets with known properties
lectures     the tables of the lectures
"""

from margrove.datasets.breiman import (
    make_ringnorm,
    make_threenorm,
    make_twonorm,
    make_waveform,
)
from margrove.datasets.bundled import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from margrove.datasets.generators import (
    make_circles,
    make_gaussians,
    make_moons,
    make_separable_clouds,
    make_xor,
)
from margrove.datasets.lectures import (
    load_boosting_points,
    load_iris_ratios,
    load_play_tennis,
    load_restaurant,
)

__all__ = [
    "DATASETS",
    "load_boosting_points",
    "load_breast_cancer",
    "load_diabetes",
    "load_digits",
    "load_iris",
    "load_iris_ratios",
    "load_play_tennis",
    "load_restaurant",
    "load_wine",
    "make_circles",
    "make_gaussians",
    "make_moons",
    "make_ringnorm",
    "make_separable_clouds",
    "make_threenorm",
    "make_twonorm",
    "make_waveform",
    "make_xor",
]

DATASETS = {
    "play_tennis": load_play_tennis,
    "restaurant": load_restaurant,
    "boosting_points": load_boosting_points,
    "iris_ratios": load_iris_ratios,
    "xor": make_xor,
    "separable_clouds": make_separable_clouds,
    "circles": make_circles,
    "moons": make_moons,
    "gaussians": make_gaussians,
    "waveform": make_waveform,
    "twonorm": make_twonorm,
    "threenorm": make_threenorm,
    "ringnorm": make_ringnorm,
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}
