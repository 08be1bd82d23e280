"""Makes docs/migration.md: `python docs/migration_page.py`.

What differs is read from the signatures and from the list of scikit-learn's tests that we do not
intend to pass; only why it differs is written here, and an entry that is missing is an error.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

import sklearn

import margrove
import margrove.tune
from margrove.exchange.scikit_learn.replacements import PUBLIC_HOMES, original

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.sklearn_suite.differences import DIFFERENCES  # noqa: E402

ABSENT = "-"
EVERY = "every learner"

# (parameter, scikit-learn's default, ours): what it is for.
WHY = {
    ("margin", ABSENT, "0.0"): "a row is a mistake if y f(x) <= margin: the margin perceptron",
    ("average", ABSENT, "False"): "predict with the average of all iterates",
    ("max_time", ABSENT, "None"): "seconds after which `fit` keeps what it has, with a warning",
    ("on_interrupt", ABSENT, "'raise'"): '`"keep"` keeps what was learnt at Ctrl-C; `"raise"` '
    "leaves the estimator as it was",
    ("probability", "'deprecated'", "False"): "not deprecated: probabilities always agree with "
    "`predict`, at a cost that is measured",
    ("cache_size", "200", "None"): "None takes 40 % of the memory that is free",
    ("verbose", "False", "0"): "a number, as elsewhere; a progress bar on standard error, nothing "
    "on standard output",
    ("verbose", ABSENT, "0"): "a progress bar on standard error",
    ("random_state", "None", "0"): "fits are repeatable unless asked otherwise; it seeds the folds "
    'of `probability=True` and `solver="sgd"`',
    ("multi_class", ABSENT, "'ovo'"): '`"ovr"` makes one machine for each class against the rest; '
    '`"ovo"` is scikit-learn\'s way',
    ("solver", ABSENT, "'auto'"): 'solvers of the same problem by name; `"auto"` picks',
    ("fit_intercept", ABSENT, "True"): "False leaves out the bias",
    ("warm_start", ABSENT, "False"): "go on from the last solution, or from the rounds that are "
    "there",
    ("n_jobs", ABSENT, "None"): "threads; None is all permitted cores, and the result does not "
    "depend on it",
    ("intercept_scaling", "1", "None"): "None is an intercept that is not penalised, as in `SVC`; "
    "1.0 is scikit-learn's",
    ("intercept_scaling", "1.0", "None"): "None is an intercept that is not penalised, as in "
    "`SVR`; 1.0 is scikit-learn's",
    ("max_iter", "1000", "10000"): "a limit that is hardly ever reached; `tol` decides",
    ("split", ABSENT, "'binary'"): '`"multiway"` has a branch for each value of a category: ID3 '
    "and C4.5",
    ("categorical_features", ABSENT, "'from_dtype'"): "labels are split as such; by default "
    "columns of strings and categories",
    ("oblique_learner", ABSENT, "'svm'"): 'the linear machine of `splitter="oblique"`',
    ("significance", ABSENT, "None"): "do not split where chance does as well: a test in each node",
    ("max_error", ABSENT, "None"): "do not split a node whose training error is at most this",
    ("early_stopping", ABSENT, "False"): "stop on rows held out",
    ("validation_fraction", ABSENT, "0.1"): "the share of rows held out for `early_stopping`",
    ("max_bins", ABSENT, "None"): "merge neighbouring values of numbers; None merges nothing, as "
    "scikit-learn",
    ("algorithm", ABSENT, "'samme'"): 'six algorithms; `"samme"` is scikit-learn\'s only one',
    ("resample", ABSENT, "False"): "give members samples drawn by the weights instead of the "
    "weights",
    ("resample", ABSENT, "True"): "give members samples drawn by the weights, as scikit-learn "
    "always does",
    ("n_iter_no_change", ABSENT, "20"): "rounds without improvement before early stopping ends "
    "boosting",
    ("cv", ABSENT, "5"): 'folds of `early_stopping="cv"`',
    ("max_samples", "None", "1.0"): "1.0 is all rows, or all of the weight: the same number of "
    "rows where there are no weights",
    ("voting", ABSENT, "'soft'"): '`"hard"` counts votes; `"soft"` averages probabilities, as '
    "scikit-learn",
    ("keep_samples", ABSENT, "False"): "keep the targets in the leaves, for `predict_quantiles`",
    ("subsample", ABSENT, "1.0"): "draw a share of the rows for each tree",
    ("growth", ABSENT, "'leaf'"): '`"level"` grows level by level; `"leaf"` is scikit-learn\'s way',
}

# Methods of scikit-learn's that are not here: what to use instead.
INSTEAD: dict[tuple[str, str], str] = {}

REASONS = {
    "private": "Ask for a private attribute, object or function of scikit-learn's.",
    "their text": "Assert a message that names scikit-learn's engines, or of which only that there "
    "is an error is documented.",
    "their draw": "Assert numbers that follow from scikit-learn's stream of random numbers.",
    "their limit": "Assert that something is refused which rightly works here.",
    "our law": "Assert what this page says is otherwise.",
}


def pairs() -> dict[str, tuple[type, type]]:
    """Classes of the same name: theirs and ours."""
    found = {name: (original(name), getattr(margrove, name)) for name in PUBLIC_HOMES}
    search = importlib.import_module("sklearn.model_selection").GridSearchCV
    return found | {"GridSearchCV": (search, margrove.tune.GridSearchCV)}


def learners() -> list[str]:
    return list(PUBLIC_HOMES)


def defaults_of(cls: type) -> dict[str, str]:
    found = inspect.signature(cls.__init__).parameters
    return {name: _written(one.default) for name, one in found.items() if name != "self"}


def _written(default: object) -> str:
    return "required" if default is inspect.Parameter.empty else repr(default)


def differing_parameters() -> dict[tuple[str, str, str], list[str]]:
    """The estimators that have each difference: parameter, scikit-learn's default, ours."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for name, (theirs, ours) in pairs().items():
        before, after = defaults_of(theirs), defaults_of(ours)
        for parameter in (*after, *(p for p in before if p not in after)):
            pair = before.get(parameter, ABSENT), after.get(parameter, ABSENT)
            if pair[0] != pair[1]:
                found.setdefault((parameter, *pair), []).append(name)
    return found


def methods_of(cls: type) -> set[str]:
    """Public methods; what metadata routing makes is not counted."""
    names = {name for name in dir(cls) if name[0] != "_" and callable(getattr(cls, name))}
    return {name for name in names if not re.fullmatch(r"set_\w+_request", name)}


def missing_methods() -> list[tuple[str, str]]:
    return sorted(
        (method, name)
        for name, (theirs, ours) in pairs().items()
        for method in methods_of(theirs) - methods_of(ours)
    )


def parameter_table() -> str:
    rows = ["| parameter | of | scikit-learn | margrove | what for |", "|---|---|---|---|---|"]
    for (parameter, theirs, ours), names in differing_parameters().items():
        of = EVERY if names == learners() else ", ".join(f"`{name}`" for name in names)
        cells = [f"`{parameter}`", of, _code(theirs), _code(ours), WHY[parameter, theirs, ours]]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _code(default: str) -> str:
    return default if default == ABSENT else f"`{default}`"


def method_table() -> str:
    missing = missing_methods()
    if not missing:
        return "All methods of scikit-learn's estimators are here."
    rows = ["| method | of | instead |", "|---|---|---|"]
    rows += [f"| `{method}` | `{name}` | {INSTEAD[method, name]} |" for method, name in missing]
    return "\n".join(rows)


def test_tables() -> str:
    parts = []
    for reason, meaning in REASONS.items():
        own = [one for one in DIFFERENCES if one.reason == reason and one.is_current]
        if own:
            rows = [f"| `{_short(one.tests)}` | {one.sentence} |" for one in own]
            table = "\n".join(["| tests | |", "|---|---|", *rows])
            parts.append(f"### {reason.capitalize()}\n\n{meaning}\n\n{table}")
    return "\n\n".join(parts)


def _short(pattern: str) -> str:
    module, _, test = pattern.partition("::")
    return f"{module.rpartition('.')[2]}::{test}".replace("|", "\\|")


def page() -> str:
    filled = {
        "version": ".".join(sklearn.__version__.split(".")[:2]),
        "parameters": parameter_table(),
        "methods": method_table(),
        "tests": test_tables(),
    }
    text = (HERE / "migration.md.template").read_text()
    for name, value in filled.items():
        text = text.replace(f"{{{{ {name} }}}}", value)
    return text


if __name__ == "__main__":
    (HERE / "migration.md").write_text(page())
