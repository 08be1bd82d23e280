"""Model files for commands; without one, an example is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from margrove.cli.table_requests import EXAMPLE, TableRequest

if TYPE_CHECKING:
    from margrove.cli.screen import Screen

__all__ = ["OpenedModel", "open_model"]


@dataclass(frozen=True)
class OpenedModel:
    """A model, and the information that its file has about it."""

    model: Any
    about: dict[str, Any]
    name: str

    @property
    def target(self) -> str | None:
        return _text(self.about.get("target"))

    @property
    def id_column(self) -> str | None:
        return _text(self.about.get("id_column"))

    @property
    def score(self) -> dict[str, Any] | None:
        """The test score of the model, if the file has all of it."""
        found = self.about.get("score")
        if not isinstance(found, dict) or not isinstance(found.get("name"), str):
            return None
        numbers = [found.get(key) for key in ("value", "low", "high", "rows")]
        return found if all(isinstance(value, (int, float)) for value in numbers) else None

    @property
    def task(self) -> Literal["classification", "regression"]:
        return "classification" if self.is_classifier else "regression"

    @property
    def is_classifier(self) -> bool:
        from sklearn.base import is_classifier

        return bool(is_classifier(self.model))

    @property
    def types(self) -> dict[str, str] | None:
        """The types of the columns of raw tables, for `read_table`."""
        from margrove.workbench.tables import types_of_model

        return types_of_model(self.inner) or None

    @property
    def inner(self) -> Any:
        """The model without a calibration around it."""
        calibrated = getattr(self.model, "calibrated_classifiers_", None)
        return calibrated[0].estimator if calibrated else self.model

    @property
    def last_step(self) -> Any:
        return self.inner[-1] if hasattr(self.inner, "steps") else self.inner

    def prepared(self, X: Any) -> Any:
        """A raw table after the steps before the last one."""
        return self.inner[:-1].transform(X) if hasattr(self.inner, "steps") else X

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features of the last step."""
        if hasattr(self.inner, "steps"):
            return [str(name) for name in self.inner[:-1].get_feature_names_out()]
        names = getattr(self.inner, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]


def _text(value: Any) -> str | None:
    """The value if it is text: a model file can contain anything here."""
    return value if isinstance(value, str) else None


def open_model(path: Path | None, screen: Screen) -> OpenedModel:
    """Load a model file, without running any code of it; without one, fit an example."""
    from margrove.exchange.model_file import load_with_about

    if path is None:
        return _example(screen)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise click.UsageError(f"{path} {what}. `margrove fit` makes model files.")
    model, about = load_with_about(path)
    if not hasattr(model, "predict"):
        raise click.UsageError(f"{path} contains a {type(model).__name__}, which cannot predict.")
    return OpenedModel(model, about, path.name)


def _example(screen: Screen) -> OpenedModel:
    from margrove.workbench.workflow import fit_learner, provenance

    screen.note(f"No model file is given: a forest of the built-in {EXAMPLE} is used.")
    task = TableRequest(data=EXAMPLE).read(screen)
    fitted = fit_learner(task, "forest", screen, test_size=0.0)
    return OpenedModel(fitted.model, provenance(fitted, task, 0), f"forest of {EXAMPLE}")
