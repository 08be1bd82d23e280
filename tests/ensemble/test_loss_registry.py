"""A loss is one file: a registered loss is available everywhere."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import margrove
from margrove.cli.options import complete_parameter
from margrove.ensemble.gradient import losses
from margrove.ensemble.gradient.losses import (
    GRADIENT_LOSSES,
    LOSS_CLASSES,
    gradient_loss_of,
    is_registered,
    loss_names,
    loss_table,
    parameters_of,
    registered_loss,
)
from margrove.exceptions import ModelFileError, UnsavableModelError
from margrove.select.autotune import boosting as tuned_boosting
from margrove.studio.learners.choices import gradient_losses
from margrove.workbench.workflow import make_learner

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.1 * RNG.normal(size=300)

ONE_FILE = '''
import math
from dataclasses import dataclass

import numpy as np

from margrove.ensemble.gradient.losses import GradientLoss, registered_loss


@registered_loss
@dataclass(frozen=True)
class LogCosh(GradientLoss):
    """log(cosh(s (raw - y))) / s"""

    sharpness: float = 1.0

    name = "log_cosh"
    summary = "numbers; predicts something between means and medians"
    scoring = "neg_mean_absolute_error"

    def start(self, y, weight):
        return np.array([np.median(y)])

    @staticmethod
    def row_loss(y, raw, sharpness):
        return math.log(math.cosh(sharpness * (raw - y))) / sharpness

    @staticmethod
    def row_derivatives(y, raw, sharpness):
        slope = math.tanh(sharpness * (raw - y))
        return slope, sharpness * (1.0 - slope**2)
'''

EACH = pytest.mark.parametrize(
    "model",
    [
        margrove.HistGradientBoostingRegressor(max_iter=5, random_state=0),
        margrove.GradientBoostingRegressor(n_estimators=5, random_state=0),
    ],
    ids=["histograms", "classic"],
)


@pytest.fixture
def log_cosh(tmp_path, monkeypatch):
    (tmp_path / "log_cosh_file.py").write_text(ONE_FILE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("log_cosh_file")
    yield module.LogCosh
    GRADIENT_LOSSES.pop("log_cosh", None)
    LOSS_CLASSES.remove(module.LogCosh)
    del sys.modules["log_cosh_file"]


@EACH
def test_both_boostings_fit_it_by_name(model, log_cosh) -> None:
    found = model.set_params(loss="log_cosh").fit(X, Y)
    assert found.history_.training_loss[-1] < found.history_.training_loss[0]
    assert isinstance(found._loss, log_cosh)


@EACH
def test_it_is_saved_by_its_name_and_parameters(model, log_cosh, tmp_path) -> None:
    path = tmp_path / "model.margrove"
    model.set_params(loss=log_cosh(sharpness=2.0)).fit(X, Y)
    margrove.save(model, path)
    again = margrove.load(path)
    assert again._loss == log_cosh(sharpness=2.0) == again.loss
    assert np.array_equal(again.predict(X), model.predict(X))
    assert b"tanh" not in path.read_bytes()
    GRADIENT_LOSSES["log_cosh"] = losses.SquaredError()
    with pytest.raises(ModelFileError, match="Another loss 'log_cosh' is registered here"):
        margrove.load(path)


def test_a_process_without_it_says_what_is_missing(log_cosh, tmp_path) -> None:
    path = tmp_path / "model.margrove"
    model = margrove.HistGradientBoostingRegressor(loss="log_cosh", max_iter=2).fit(X, Y)
    margrove.save(model, path)
    command = f"import margrove; margrove.load({str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "ModelFileError" in done.stderr
    assert "the loss 'log_cosh', which is not registered here" in done.stderr
    assert "margrove.register_gradient_loss('log_cosh', ...)" in done.stderr


def test_functions_are_saved_by_their_name_as_well(tmp_path) -> None:
    path = tmp_path / "model.margrove"
    functions = (
        lambda y, raw: (y - raw) ** 2,
        lambda y, raw: 2.0 * (raw - y),
        lambda y, raw: 2.0,
    )
    own = margrove.register_gradient_loss("own_square", *functions, summary="numbers")
    try:
        model = margrove.HistGradientBoostingRegressor(loss="own_square", max_iter=2).fit(X, Y)
        margrove.save(model, path)
        assert margrove.load(path)._loss is own
        assert '| `"own_square"` |  | numbers |' in loss_table()
        stranger = margrove.GradientLoss.of_functions(*functions[::-1], name="own_square")
        assert not is_registered(stranger)
        model.set_params(loss=stranger)
        with pytest.raises(UnsavableModelError, match="register_gradient_loss"):
            margrove.save(model, path)
    finally:
        del GRADIENT_LOSSES["own_square"]
    with pytest.raises(ModelFileError, match="'own_square', which is not registered"):
        margrove.load(path)


def test_the_command_line_offers_it(log_cosh) -> None:
    offered = complete_parameter(None, None, "loss=")
    assert [item.value for item in offered] == [f"loss={name}" for name in GRADIENT_LOSSES]
    (found,) = complete_parameter(None, None, "loss=log_c")
    assert found.value == "loss=log_cosh"
    assert found.help == GRADIENT_LOSSES["log_cosh"].summary
    assert complete_parameter(None, None, "max_iter") == []
    model = make_learner("boosting", "regression", parameters={"loss": "log_cosh", "max_iter": 2})
    assert isinstance(model.fit(X, Y)._loss, log_cosh)


def test_the_studio_offers_it(log_cosh) -> None:
    assert "log_cosh" in [choice.value for choice in gradient_losses(for_classes=False)()]
    assert "log_cosh" not in [choice.value for choice in gradient_losses(for_classes=True)()]


def test_tuning_takes_its_score(log_cosh) -> None:
    for name in loss_names(for_classes=False):
        if name == "quantile":
            continue  # its score has a parameter
        model = margrove.HistGradientBoostingRegressor(loss=name)
        task = SimpleNamespace(last=model, is_classifier=False)
        assert tuned_boosting._default_score(task) == GRADIENT_LOSSES[name].scoring
    assert GRADIENT_LOSSES["log_cosh"].scoring == "neg_mean_absolute_error"


def test_the_documentation_lists_it(log_cosh, monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs/extensions")
    page = importlib.import_module("loss_table").with_table(
        (ROOT / "docs/gradient-boosting.md").read_text()
    )
    for name, loss in GRADIENT_LOSSES.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f'| `"{name}"`')]
        assert loss.summary in row
        assert all(f"`{own}`" in row for own in parameters_of(loss))
    assert "`sharpness`" in page


def test_every_loss_says_what_it_is() -> None:
    for name, loss in GRADIENT_LOSSES.items():
        assert loss.name == name
        assert loss.summary
        assert is_registered(loss)
        assert gradient_loss_of(name, **parameters_of(loss)) == loss
    for for_classes in (False, True):
        first, *others = loss_names(for_classes=for_classes)
        assert GRADIENT_LOSSES[first].is_usual
        assert not any(GRADIENT_LOSSES[name].is_usual for name in others)


@pytest.mark.parametrize("name", ["log_cosh", *GRADIENT_LOSSES])
def test_derivatives_are_those_of_the_values(name, log_cosh) -> None:
    loss, step = GRADIENT_LOSSES[name], 1e-6
    y = np.array([1.0, 0.0, 1.0, 1.0]) if loss.for_classes else np.array([1.0, 0.3, 2.5, 4.0])
    raw = np.array([[0.3, -0.7, 1.9, -1.2]])
    loss = loss.for_round(y, raw, None)
    gradient, hessian, unused = (np.empty((1, 4)) for _ in range(3))
    below, above = np.empty((2, 4))
    loss.derive(y, raw - step, None, unused, unused.copy(), below)
    loss.derive(y, raw + step, None, unused, unused.copy(), above)
    loss.derive(y, raw, None, gradient, hessian)
    assert gradient[0] == pytest.approx((above - below) / (2 * step), abs=1e-6)
    assert (hessian >= 0.0).all()


def test_the_machine_code_of_each_loss_is_cached_under_its_own_name() -> None:
    regions = [loss.region_of_rows for loss in LOSS_CLASSES if hasattr(loss, "region_of_rows")]
    assert len({(region.__module__, region.__qualname__) for region in regions}) == len(regions) > 7
    assert all(region.__module__.startswith(losses.__name__) for region in regions)


def test_names_are_taken_once(log_cosh) -> None:
    with pytest.raises(ValueError, match="A loss named 'log_cosh' exists already"):
        margrove.register_gradient_loss("log_cosh", lambda y, raw: 0.0, lambda y, raw: 0.0,
                                        lambda y, raw: 1.0)  # fmt: skip
    taken = type("Taken", (log_cosh,), {"__module__": "elsewhere"})
    with pytest.raises(ValueError, match="A loss named 'log_cosh' exists already"):
        registered_loss(taken)

    class NoFields:
        name = "no_fields"

    with pytest.raises(TypeError, match="NoFields must be a frozen dataclass"):
        registered_loss(NoFields)
