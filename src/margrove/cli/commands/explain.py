"""margrove explain"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from margrove.cli.options import shows_results
from margrove.cli.screen import Screen
from margrove.cli.table_requests import TableRequest

if TYPE_CHECKING:
    from margrove.cli.models import OpenedModel

__all__ = ["command"]

_MAX_RULES = 64
_MAX_ROWS = 5_000


@click.command("explain")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--data", help="Built-in data set instead of FILE.")
@click.option(
    "--row",
    type=click.IntRange(min=0),
    help="Explain the prediction for this row of FILE; the first row is 0.",
)
@click.option("--top", default=15, type=click.IntRange(1, 1000), show_default=True)
@shows_results
def command(
    model: Path | None,
    file: Path | None,
    data: str | None,
    row: int | None,
    top: int,
    screen: Screen,
) -> None:
    """Show what a model has learnt: importances, rules or weights, and the reasons of a prediction.

    With a FILE that has the target, features are also ranked by how much worse the model gets when
    a column is shuffled.
    """
    from margrove.cli.models import open_model

    if file is not None and data is not None:
        raise click.UsageError("Give either a FILE or --data, not both.")
    opened = open_model(model, screen)
    if row is not None and model is not None and file is None and data is None:
        raise click.UsageError("--row needs a FILE, or --data, that has the row.")
    is_given = file is not None or data is not None or model is None
    frame = TableRequest(file, data).raw(screen, opened.types).frame if is_given else None
    if row is not None and frame is not None and row >= frame.height:
        raise click.UsageError(
            f"--row must be below {frame.height}, the number of rows. Got {row}."
        )
    found: dict[str, Any] = {"model": opened.name, "about": opened.about}
    found |= _outline(opened, screen)
    found |= _importances(opened, top, screen)
    found |= _weights(opened, top, screen)
    found |= _rules(opened, screen)
    if frame is not None and opened.target in frame.columns:
        found |= _shuffled(opened, frame, top, screen)
    if frame is not None and row is not None:
        found |= _one_row(opened, frame, row, top, screen)
    screen.json(found)


def _outline(opened: OpenedModel, screen: Screen) -> dict[str, Any]:
    from margrove.facts import describe, is_described

    last = opened.last_step
    kind = type(last).__name__
    goal = f" predicts {opened.target}" if opened.target else ""
    screen.say(f"{opened.name}: {kind}{goal}.", style="bold")
    score = opened.score
    if score is not None:
        screen.say(
            f"When it was fitted: {score['name']} {score['value']:.4g} on {score['rows']:,} rows "
            f"that it had not seen (95 % interval {score['low']:.4g} .. {score['high']:.4g})."
        )
    if not is_described(last):
        return {"estimator": kind}
    facts = describe(last)
    for line in _figures(facts):
        screen.say(line)
    return {"estimator": kind}


def _figures(facts: Any) -> list[str]:
    """A sentence with the main figures of a model."""
    names = {
        "n_leaves": "leaves", "depth": "levels deep", "n_members": "trees",
        "n_support": "support vectors", "n_rounds": "rounds", "mistakes": "mistakes",
    }  # fmt: skip
    parts = [
        f"{getattr(facts, name):,} {words}"
        for name, words in names.items()
        if isinstance(getattr(facts, name, None), int) and getattr(facts, name)
    ]
    return [f"It has {', '.join(parts)}."] if parts else []


def _importances(opened: OpenedModel, top: int, screen: Screen) -> dict[str, Any]:
    from margrove.facts import ranked_importances

    try:
        found = ranked_importances(opened.last_step, top, opened.feature_names)
    except (TypeError, ValueError, AttributeError):  # not every family measures importances
        return {}
    rows = [(name, f"{value:.4g}") for name, value in zip(found.names, found.values, strict=True)]
    screen.table("Importances", ("feature", found.measure), rows)
    return {"importances": dict(zip(found.names, found.values.tolist(), strict=True))}


def _weights(opened: OpenedModel, top: int, screen: Screen) -> dict[str, Any]:
    from margrove.facts import strongest_features

    if not hasattr(opened.last_step, "coef_"):
        return {}
    machines = strongest_features(opened.last_step, top, opened.feature_names)
    for machine in machines[:10]:
        rows = [(feature.name, f"{feature.weight:+.4g}") for feature in machine.features]
        screen.table(f"Weights: {machine.machine}", ("feature", "weight"), rows)
    if len(machines) > 10:
        screen.say(f"and {len(machines) - 10} more machines; see --json.")
    return {
        "weights": {
            machine.machine: {feature.name: feature.weight for feature in machine.features}
            for machine in machines
        }
    }


def _rules(opened: OpenedModel, screen: Screen) -> dict[str, Any]:
    from margrove.grove import DecisionTreeClassifier, DecisionTreeRegressor
    from margrove.grove.read import rules

    if not isinstance(opened.last_step, (DecisionTreeClassifier, DecisionTreeRegressor)):
        return {}
    found = [rule.text for rule in rules(opened.last_step)]
    screen.say("Rules", style="bold")
    for rule in found[:_MAX_RULES]:
        screen.say(f"  {rule}")
    if len(found) > _MAX_RULES:
        screen.say(f"  and {len(found) - _MAX_RULES} more rules; see --json.")
    return {"rules": found}


def _shuffled(opened: OpenedModel, frame: Any, top: int, screen: Screen) -> dict[str, Any]:
    """Permutation importances of the columns, on at most a few thousand rows."""
    from margrove.facts import ranked_importances
    from margrove.grove.explain import permutation_importances
    from margrove.tables import RawTable, task_of_table
    from margrove.workbench.workflow import digest_of

    task = task_of_table(RawTable(frame, opened.name, ()), opened.target, task=opened.task)
    X, y = task.X, task.y
    if opened.about.get("answers_digest") == digest_of(y):
        screen.note("The model was trained on these rows: other rows would say more.")
    if task.n_rows > _MAX_ROWS:
        import numpy as np

        rows = np.sort(np.random.default_rng(0).permutation(task.n_rows)[:_MAX_ROWS])
        X, y = X[rows], y[rows]
    wanted = [name for name in opened.model.feature_names_in_ if name in X.columns]
    with screen.progress("Shuffling columns"):
        measured = permutation_importances(opened.model, X.select(wanted), y, n_repeats=5)
    found = ranked_importances(measured, top)
    score = "accuracy" if opened.is_classifier else "r2"
    places = {name: j for j, name in enumerate(measured.feature_names)}
    table = [
        (name, f"{value:.4g}", f"{measured.spread[places[name]]:.2g}")
        for name, value in zip(found.names, found.values, strict=True)
    ]
    screen.table(
        f"Loss of {score} when a column is shuffled ({len(y):,} rows)",
        ("column", found.measure, "± standard deviation"),
        table,
    )
    return {"shuffled": dict(zip(found.names, found.values.tolist(), strict=True))}


def _one_row(opened: OpenedModel, frame: Any, row: int, top: int, screen: Screen) -> dict[str, Any]:
    """The contribution of each feature to one prediction."""
    import numpy as np

    one = frame[row : row + 1]
    label = opened.model.predict(one)[0]
    answer = str(label)
    in_words = answer if opened.is_classifier else f"{label:.6g}"
    screen.say(f"Row {row}: {in_words}", style="bold")
    added = _added(opened, one, answer)
    if added is None:
        screen.say("Single predictions of this family cannot be explained.")
        return {"row": row, "answer": answer}
    names, values = added
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    rows = [(names[j], f"{values[j]:+.4g}") for j in order if values[j] != 0]
    title = (
        f"Contributions for (+) and against (-) {in_words}"
        if opened.is_classifier
        else "Contributions that raise (+) or lower (-) the prediction"
    )
    screen.table(title, ("feature", "adds"), rows)
    return {
        "row": row,
        "answer": answer,
        "added": {names[j]: float(values[j]) for j in order.tolist()},
    }


def _added(opened: OpenedModel, one: Any, answer: str) -> tuple[list[str], Any] | None:
    """Shapley values of trees, or weights times values of linear machines; None for others."""
    import numpy as np

    from margrove.grove.explain import shap_values

    last, prepared = opened.last_step, opened.prepared(one)
    classes = [str(label) for label in getattr(last, "classes_", ())]
    try:
        found = shap_values(last, prepared)
    except (TypeError, ValueError):
        if not hasattr(last, "coef_"):
            return None
        weights = last.coef_.toarray() if hasattr(last.coef_, "toarray") else last.coef_
        dense = prepared.toarray()[0] if hasattr(prepared, "toarray") else np.asarray(prepared)[0]
        weights = np.atleast_2d(weights)
        single = len(weights) == 1
        names = opened.feature_names or [f"x{j}" for j in range(weights.shape[1])]
        if len(classes) == 2 and single:
            sign = 1.0 if answer == classes[1] else -1.0
            return names, sign * weights[0] * dense
        return names, weights[0 if single else classes.index(answer)] * dense
    values = found.values[0]
    if values.ndim == 2:
        return list(found.feature_names), values[:, classes.index(answer)]
    sign = -1.0 if len(classes) == 2 and answer == classes[0] else 1.0
    return list(found.feature_names), sign * values
