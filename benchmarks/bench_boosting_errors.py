"""Losses of histogram boosting on rows held out, beside its peers in their own defaults."""

from __future__ import annotations

import lightgbm
import sklearn.ensemble
import xgboost

import margrove
from paired_losses import Contestant, comparison

OURS = Contestant(
    "margrove",
    lambda: margrove.HistGradientBoostingClassifier(n_jobs=1, random_state=0),
    lambda: margrove.HistGradientBoostingRegressor(n_jobs=1, random_state=0),
)
WITHOUT_STOPPING = Contestant(
    "margrove, early_stopping=False",
    lambda: margrove.HistGradientBoostingClassifier(n_jobs=1, early_stopping=False),
    lambda: margrove.HistGradientBoostingRegressor(n_jobs=1, early_stopping=False),
)
PEERS = [
    Contestant(
        "scikit-learn",
        lambda: sklearn.ensemble.HistGradientBoostingClassifier(random_state=0),
        lambda: sklearn.ensemble.HistGradientBoostingRegressor(random_state=0),
    ),
    Contestant(
        "LightGBM",
        lambda: lightgbm.LGBMClassifier(n_jobs=1, verbose=-1),
        lambda: lightgbm.LGBMRegressor(n_jobs=1, verbose=-1),
    ),
    Contestant(
        "XGBoost",
        lambda: xgboost.XGBClassifier(n_jobs=1, enable_categorical=True),
        lambda: xgboost.XGBRegressor(n_jobs=1, enable_categorical=True),
    ),
]


def report() -> str:
    given = {"with_labels": True, "with_probabilities": True}
    return "\n".join(comparison(OURS, [*PEERS, WITHOUT_STOPPING], **given))
