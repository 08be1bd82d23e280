"""On real data the perceptron is as accurate as scikit-learn's, over several seeds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Perceptron as SklearnPerceptron
from sklearn.preprocessing import StandardScaler

from margrove import Perceptron

pytestmark = pytest.mark.real_data


@pytest.mark.parametrize("name", ["pendigits", "satimage", "a9a"])
def test_accuracy(real_data, name) -> None:
    X, y, X_test, y_test = real_data.load_split(name, dtype="float64")
    scaler = StandardScaler(with_mean=not hasattr(X, "tocsr")).fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)

    def scores(cls):
        return [cls(random_state=s).fit(X, y).score(X_test, y_test) for s in range(6)]

    ours, theirs = scores(Perceptron), scores(SklearnPerceptron)
    # The last iterate is noisy; three standard errors of the difference of means.
    error = np.sqrt((np.var(ours, ddof=1) + np.var(theirs, ddof=1)) / 6)
    assert np.mean(ours) > np.mean(theirs) - 3 * error - 0.002
