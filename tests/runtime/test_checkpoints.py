"""Checkpoints: what is interrupted and resumed is what would have been without the interruption."""

from __future__ import annotations

import dataclasses
import signal
import sys
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.interrupts import run_with_signals, steady_clock

from margrove import (
    SVC,
    SVR,
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    KernelPerceptron,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    RandomForestClassifier,
    RandomForestRegressor,
    _files,
    watch,
)
from margrove._files import read_archive, write_archive
from margrove._runtime import slices
from margrove._runtime.checkpoints import checkpoint
from margrove._runtime.checkpoints.fingerprints import fingerprint
from margrove.datasets import load_iris
from margrove.ensemble.forest import grower as forest_grower
from margrove.exceptions import (
    CheckpointError,
    CheckpointWarning,
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
    ModelFileError,
)
from margrove.margin.solvers.dual import many_problems as many


def classes(n=120, d=5, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(2)
    return X, (np.abs(X[:, 0] + 0.7 * rng.normal(size=n)) * 1.2).astype(int) % k


def numbers(n=120, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(2)
    return X, X[:, 0] - X[:, 1] ** 2 + 0.3 * rng.normal(size=n)


TWO, THREE, REAL = classes(k=2), classes(), numbers()
SPARSE = sp.csr_array(np.where(np.abs(THREE[0]) > 1, THREE[0], 0.0)), THREE[1]
MANY = SPARSE[0], np.arange(120) % 20
WEIGHT = np.random.default_rng(5).integers(0, 3, 120).astype(float)


@pytest.fixture(autouse=True)
def short_slices(monkeypatch):
    """Slices of few elementary steps, however fast the machine is."""
    monkeypatch.setattr(slices, "_FIRST_SLICE_WORK", 5000)
    monkeypatch.setattr(slices, "_work_of_next_slice", lambda work, done, seconds: work)
    for home in (forest_grower, many):
        monkeypatch.setattr(home, "SLICE_SECONDS", 0.0)


class Stop(Exception):  # noqa: N818
    """What tests interrupt fits with, in place of a signal."""


def stop_after(count):
    """A listener that lets so many slices pass."""
    left = [count]

    def hear(progress):
        left[0] -= 1
        if left[0] <= 0:
            raise Stop

    return hear


def quietly(fit, *given, **options):
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, DataWarning):  # tiny models of tiny data
            warnings.simplefilter("ignore", kind)
        return fit(*given, **options)


def slices_of(model, data, **options):
    seen = []
    with watch(on_progress=lambda progress: seen.append(progress.done)):
        quietly(model.fit, *data, **options)
    return len(seen)


def fit_in_sessions(model, data, path, lengths, **options):
    """Sessions of so many slices each, and a last one to the end."""
    for length in lengths:
        try:
            with checkpoint(path, resume=True), watch(on_progress=stop_after(length)):
                quietly(model.fit, *data, **options)
            return model
        except Stop:
            pass
    with checkpoint(path, resume=True):
        quietly(model.fit, *data, **options)
    return model


NOT_LEARNT = {"_committed", "n_jobs"}
NOT_KEPT = {"_record"}  # references of members to their data


def differences(a, b, where="model", seen=None, ignored=frozenset()):
    """Where two objects differ in a bit, as text; nothing if they do not."""
    seen = set() if seen is None else seen
    if a is b or (id(a), id(b)) in seen:
        return ""
    seen.add((id(a), id(b)))
    if type(a) is not type(b):
        return f"{where}: {type(a)} and {type(b)}"
    if isinstance(a, np.ndarray) and a.dtype != object:
        same = a.dtype == b.dtype and a.shape == b.shape
        same = same and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        return "" if same else where
    if sp.issparse(a):
        return differences([a.data, a.indices, a.indptr], [b.data, b.indices, b.indptr], where)
    if isinstance(a, dict):
        if (set(a) ^ set(b)) - NOT_KEPT - ignored:
            return f"{where}: {set(a) ^ set(b)}"
        names = (set(a) & set(b)) - NOT_LEARNT - ignored
        found = (differences(a[key], b[key], f"{where}[{key!r}]", seen, ignored) for key in names)
    elif isinstance(a, list | tuple | np.ndarray):
        if len(a) != len(b):
            return f"{where}: {len(a)} and {len(b)} entries"
        found = (
            differences(x, y, f"{where}[{k}]", seen, ignored)
            for k, (x, y) in enumerate(zip(a, b, strict=True))
        )
    elif isinstance(a, float):
        return "" if a == b or (np.isnan(a) and np.isnan(b)) else f"{where}: {a} and {b}"
    elif callable(a) or not hasattr(a, "__dict__"):
        return "" if callable(a) or a == b else f"{where}: {a} and {b}"
    elif dataclasses.is_dataclass(a):
        names = [own.name for own in dataclasses.fields(a)]
        found = (
            differences(getattr(a, n), getattr(b, n), f"{where}.{n}", seen, ignored) for n in names
        )
    else:
        found = [differences(vars(a), vars(b), where, seen, ignored)]
    return next((text for text in found if text), "")


def assert_same(whole, resumed):
    assert not differences(whole, resumed)


def points(rng, n_slices, count):
    """Where to interrupt: the first and the last slice, and some in between."""
    return [1, max(1, n_slices - 1), *rng.integers(1, n_slices + 1, count - 2).tolist()]


FORESTS = {
    "classes": (
        RandomForestClassifier(9, max_samples=0.3, oob_score=True, random_state=1, n_jobs=1),
        THREE,
    ),
    "numbers": (RandomForestRegressor(9, oob_score=True, random_state=1, n_jobs=2), REAL),
    "without bootstrap": (ExtraTreesClassifier(9, random_state=1, ccp_alpha=0.01), TWO),
    "extra": (ExtraTreesRegressor(9, random_state=1, max_leaf_nodes=8, n_jobs=2), REAL),
}
ADABOOST = {
    "stumps": (AdaBoostClassifier(n_estimators=25), THREE),
    "two classes": (AdaBoostClassifier(n_estimators=25, early_stopping=True), TWO),
    "trees": (AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8), THREE),
    "deep": (AdaBoostClassifier(DecisionTreeClassifier(max_depth=6), n_estimators=5), TWO),
    "real": (AdaBoostClassifier(algorithm="real", n_estimators=8), THREE),
    "logit": (AdaBoostClassifier(algorithm="logit", n_estimators=6), THREE),
    "estimators": (AdaBoostClassifier(Perceptron(max_iter=5), n_estimators=4), TWO),
    "cv": (AdaBoostClassifier(n_estimators=6, early_stopping="cv", cv=2), TWO),
    "numbers": (AdaBoostRegressor(n_estimators=8, random_state=3), REAL),
    "without samples": (AdaBoostRegressor(n_estimators=8, resample=False, loss="square"), REAL),
}
BOOSTING = {
    "classes": (HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=5), THREE),
    "early stopping": (
        HistGradientBoostingClassifier(
            max_iter=40, early_stopping=True, n_iter_no_change=2, random_state=1
        ),
        TWO,
    ),
    "training loss": (
        HistGradientBoostingRegressor(
            max_iter=12, early_stopping=True, validation_fraction=None, subsample=0.6
        ),
        REAL,
    ),
    "medians": (
        HistGradientBoostingRegressor(
            loss="absolute_error", max_iter=8, max_features=0.5, random_state=2, subsample=0.5
        ),
        REAL,
    ),
    "classic classes": (GradientBoostingClassifier(n_estimators=6, subsample=0.7), THREE),
    "classic huber": (GradientBoostingRegressor(n_estimators=8, loss="huber"), REAL),
    "classic early": (
        GradientBoostingClassifier(n_estimators=30, n_iter_no_change=2, random_state=1),
        TWO,
    ),
    "classic trees": (
        GradientBoostingRegressor(n_estimators=5, max_features=2, random_state=4),
        REAL,
    ),
}
OTHERS = {
    "bagging": (BaggingClassifier(n_estimators=7, max_features=0.7, random_state=2), THREE),
    "bagging numbers": (BaggingRegressor(n_estimators=7, oob_score=True, n_jobs=2), REAL),
    "bagging lines": (BaggingClassifier(LinearSVC(), n_estimators=3), TWO),
}


def with_seed(model):
    """Models are shared between tests; what they draw must be the same each time."""
    model = clone(model)
    if "random_state" in model.get_params() and model.random_state is None:
        model.set_params(random_state=0)
    return model


def check_interruptions(case, path, count, **options):
    model, data = case
    whole = with_seed(model)
    n_slices = slices_of(whole, data, **options)
    assert n_slices > 1  # else nothing was interrupted
    rng = np.random.default_rng(n_slices)
    for length in points(rng, n_slices, count):
        path.unlink(missing_ok=True)
        resumed = fit_in_sessions(with_seed(model), data, path, [length], **options)
        assert_same(whole, resumed)
    path.unlink(missing_ok=True)
    lengths = rng.integers(1, max(2, n_slices // 3), 12).tolist()
    assert_same(whole, fit_in_sessions(with_seed(model), data, path, lengths, **options))


@pytest.mark.parametrize("name", FORESTS)
def test_forests(name, tmp_path) -> None:
    check_interruptions(FORESTS[name], tmp_path / "fit.margrove", 5)


@pytest.mark.parametrize("name", ADABOOST)
def test_adaboost(name, tmp_path) -> None:
    check_interruptions(ADABOOST[name], tmp_path / "fit.margrove", 3)


@pytest.mark.parametrize("name", BOOSTING)
def test_gradient_boosting(name, tmp_path) -> None:
    check_interruptions(BOOSTING[name], tmp_path / "fit.margrove", 3)


@pytest.mark.parametrize("name", OTHERS)
def test_other_learners(name, tmp_path) -> None:
    check_interruptions(OTHERS[name], tmp_path / "fit.margrove", 4)


# What slices leave behind and the next ones do not read.
SCRATCH = {"_order", "_goal", "_buffer", "_gathered", "_batch", "_exact", "_measured_at",
           "_primal", "primal", "dual", "violation"}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_restored_processes_are_alike_inside(name, tmp_path, monkeypatch) -> None:
    """Not only where they end: all that a process has is what it would have had."""
    (model, data), path = OTHERS[name], tmp_path / "fit.margrove"
    usual, processes = slices._drive, []

    def drive(process, *given):
        if slices.is_checkpointed():  # else it is part of another
            processes.append(process)
        if len(processes) == 2:
            raise Stop
        return usual(process, *given)

    n_slices = slices_of(with_seed(model), data)
    monkeypatch.setattr(slices, "_drive", drive)
    for length in {max(1, n_slices // 3), max(1, 3 * n_slices // 4), max(1, n_slices - 1)}:
        path.unlink(missing_ok=True)
        processes.clear()
        with pytest.raises(Stop), checkpoint(path), watch(on_progress=stop_after(length)):
            quietly(with_seed(model).fit, *data)
        with pytest.raises(Stop), checkpoint(path, resume=True):
            quietly(with_seed(model).fit, *data)
        first, second = processes
        assert first is not second
        assert first.rounds == second.rounds
        assert not differences(vars(first), vars(second), ignored=SCRATCH)


@pytest.mark.parametrize(
    "case", [FORESTS["classes"], ADABOOST["stumps"], BOOSTING["classes"]], ids=lambda c: str(c[0])
)
def test_weighted_rows_at_twenty_places(case, tmp_path) -> None:
    check_interruptions(case, tmp_path / "fit.margrove", 20, sample_weight=WEIGHT)


SVMS = {
    "pairs": (SVC(C=10.0, max_iter=-1), THREE),
    "probabilities": (SVC(probability=True), TWO),
    "nu": (NuSVC(nu=0.3), TWO),
    "regression": (SVR(), REAL),
    "nu regression": (NuSVR(), REAL),
    "region": (OneClassSVM(nu=0.2), REAL),
    "hull": (SVC(solver="hull"), TWO),
    "dual coordinates": (SVC(fit_intercept=False, tol=1e-6), TWO),
    "subgradients": (SVC(solver="sgd", fit_intercept=False), TWO),
}


@pytest.mark.parametrize("name", SVMS)
def test_kernel_machines_end_within_their_tolerance(name, tmp_path, monkeypatch) -> None:
    from margrove.margin.solvers.dual.smo import SmoRule

    monkeypatch.setattr(SmoRule, "budget", lambda rule, n: 10**6)
    model, data = SVMS[name]
    whole = with_seed(model)
    n_slices = slices_of(whole, data)
    path = tmp_path / "fit.margrove"
    for length in points(np.random.default_rng(1), n_slices, 20 if name == "pairs" else 3):
        path.unlink(missing_ok=True)
        resumed = fit_in_sessions(with_seed(model), data, path, [length, 1, 1])
        decisions = [own.decision_function(data[0]) for own in (whole, resumed)
                     if hasattr(own, "decision_function")]  # fmt: skip
        decisions = decisions or [own.predict(data[0]) for own in (whole, resumed)]
        assert np.abs(decisions[0] - decisions[1]).max() < 0.02
        assert resumed.fit_status_ == 0
        assert resumed.certificate_.converged if hasattr(resumed.certificate_, "converged") else 1


def test_large_kernel_machines_go_on_from_their_coefficients(tmp_path, monkeypatch) -> None:
    """Blocks are smaller than the problem, so that there is something to interrupt."""
    from margrove.margin.svm import support_vector_machine as home

    small = dataclasses.make_dataclass(
        "Small", [("block", int, 16)], bases=(home.SmoRule,), frozen=True
    )
    monkeypatch.setattr(home, "SmoRule", small)
    X, y = classes(200, 3, 2)
    whole = SVC(C=5.0).fit(X, y)
    path = tmp_path / "fit.margrove"
    n_slices = slices_of(SVC(C=5.0), (X, y))
    assert n_slices > 10
    for length in np.linspace(1, n_slices, 20).astype(int).tolist():
        path.unlink(missing_ok=True)
        try:
            with checkpoint(path), watch(on_progress=stop_after(length)):
                SVC(C=5.0).fit(X, y)
        except Stop:
            pass
        with checkpoint(path, resume=True):
            resumed = SVC(C=5.0).fit(X, y)
        difference = np.abs(whole.decision_function(X) - resumed.decision_function(X)).max()
        assert difference < 0.02
        assert resumed.fit_status_ == 0


def test_threads_may_differ(tmp_path) -> None:
    cases = [FORESTS["classes"], ADABOOST["trees"], BOOSTING["classes"], OTHERS["bagging"]]
    for k, (model, data) in enumerate(cases):
        path = tmp_path / f"{k}.margrove"
        whole = quietly(with_seed(model).fit, *data)
        with pytest.raises(Stop), checkpoint(path), watch(on_progress=stop_after(2)):
            quietly(with_seed(model).set_params(n_jobs=1).fit, *data)
        with checkpoint(path, resume=True):
            resumed = quietly(with_seed(model).set_params(n_jobs=2).fit, *data)
        assert_same(whole, resumed)


@pytest.mark.parametrize("name", ["max_time", "cancel", "callback", "keep"])
def test_every_way_to_end_early_is_a_way_to_go_on(name, tmp_path) -> None:
    path, data = tmp_path / "fit.margrove", THREE
    whole = RandomForestClassifier(12, random_state=1).fit(*data)
    forest = RandomForestClassifier(12, random_state=1)
    event = threading.Event()

    def after_three(progress):
        if progress.done == 3 and name == "cancel":
            event.set()
        if progress.done == 3 and name == "keep":
            raise KeyboardInterrupt
        return progress.done == 3 and name == "callback"

    listening = watch(cancel=event, on_progress=after_three)
    if name == "max_time":
        with checkpoint(path), pytest.warns(ConvergenceWarning, match="max_time"):
            forest.set_params(max_time=1e-9).fit(*data)
        forest.set_params(max_time=None)
    elif name == "cancel":
        with checkpoint(path), listening, pytest.raises(FitCancelled):
            forest.fit(*data)
    elif name == "keep":
        with checkpoint(path), listening, pytest.warns(InterruptedFitWarning):
            forest.set_params(on_interrupt="keep").fit(*data)
        forest.set_params(on_interrupt="raise")
    else:
        with checkpoint(path), listening:
            forest.fit(*data)
    if name != "cancel":
        assert 1 <= len(forest) < 12
    with checkpoint(path, resume=True):
        forest.fit(*data)
    assert_same(whole, forest)


def pressing_ctrl_c(times, patch):
    """Forests that end their fourth tree with so many interrupts, handled as Python does."""
    usual = forest_grower.ForestGrower.advance

    def advance(process, work):
        done = usual(process, work)
        if process.rounds == 4:
            for _ in range(times):
                signal.getsignal(signal.SIGINT)(signal.SIGINT, None)
        return done

    patch.setattr(forest_grower.ForestGrower, "advance", advance)


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_by_ctrl_c_loses_nothing(times, tmp_path) -> None:
    """The first one waits for the end of the slice, the second one does not."""
    path, model = tmp_path / "fit.margrove", RandomForestClassifier(10, random_state=0, n_jobs=1)
    whole, handler = clone(model).fit(*THREE), signal.default_int_handler
    before = signal.signal(signal.SIGINT, handler)  # in the background Ctrl-C is ignored
    try:
        with pytest.MonkeyPatch.context() as patch:
            pressing_ctrl_c(times, patch)
            with pytest.raises(KeyboardInterrupt), checkpoint(path, every=None, every_rounds=1):
                model.fit(*THREE)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert read_archive(path)[1]["drives"][0]["rounds"] == (4 if times == 1 else 3)
    with checkpoint(path, resume=True):
        assert_same(whole, model.fit(*THREE))


SLOWLY = """
import sys, threading
from margrove import RandomForestClassifier, watch
from margrove._runtime.checkpoints import checkpoint
from margrove.datasets import load_iris

def wait_at_seven(progress):
    if progress.done == 7:
        print("now", flush=True)
        threading.Event().wait()

X, y = load_iris(return_X_y=True)
try:
    with checkpoint(sys.argv[1], every_rounds=1), watch(on_progress=wait_at_seven):
        RandomForestClassifier(20, random_state=2).fit(X, y)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_was_ended_is_resumed(number, tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    done = run_with_signals(SLOWLY, path, number=number)
    is_killed = number == signal.SIGKILL
    assert (done.returncode, done.stdout) == ((-number, "") if is_killed else (0, "interrupted\n"))
    entry = read_archive(path)[1]["drives"][0]
    assert (entry["rounds"], entry["finished"]) == (7, False)
    X, y = load_iris(return_X_y=True)
    whole = RandomForestClassifier(20, random_state=2).fit(X, y)
    with checkpoint(path, resume=True):
        resumed = RandomForestClassifier(20, random_state=2).fit(X, y)
    assert_same(whole, resumed)


def interrupted(path, model, *data, slices=2, **options):
    with pytest.raises(Stop), checkpoint(path), watch(on_progress=stop_after(slices)):
        model.fit(*data, **options)


def test_something_else_is_not_resumed(tmp_path) -> None:
    path, (X, y) = tmp_path / "fit.margrove", THREE
    interrupted(path, RandomForestClassifier(9, random_state=1), X, y)
    before = path.read_bytes()
    forest = RandomForestClassifier(9, random_state=1)
    altered = X.copy()
    altered[7, 2] += 1e-9
    cases = [
        (ExtraTreesClassifier(9, random_state=1), (X, y), "of RandomForestClassifier, and this"),
        (forest.set_params(max_depth=3), (X, y), "max_depth was None and is 3"),
        (forest.set_params(n_estimators=8), (X, y), "n_estimators was 9 and is 8"),
        (forest.set_params(random_state=2), (X, y), "random_state was 1 and is 2"),
        (forest, (altered, y), "X has changed"),
        (forest, (X, np.roll(y, 1)), "y has changed"),
        (forest, (X, y, WEIGHT), "sample_weight has changed"),
        (forest, (X[:-1], y[:-1]), "X and y have changed"),
    ]
    for model, data, message in cases:
        fresh = clone(model)
        if fresh.get_params()["max_depth"] == 3 and "max_depth" not in message:
            fresh.set_params(max_depth=None)
        if "n_estimators" not in message:
            fresh.set_params(n_estimators=9)
        if "random_state" not in message:
            fresh.set_params(random_state=1)
        with pytest.raises(CheckpointError, match=message), checkpoint(path, resume=True):
            fresh.fit(*data)
        assert path.read_bytes() == before
        assert not hasattr(fresh, "trees_")
    with checkpoint(path, resume=True):
        RandomForestClassifier(9, random_state=1, n_jobs=2, verbose=0, max_time=1e6).fit(X, y)


@pytest.mark.parametrize(
    ("model", "more", "data"),
    [
        (RandomForestClassifier(5, random_state=0), {"n_estimators": 9}, THREE),
        (BaggingRegressor(n_estimators=4, random_state=0), {"n_estimators": 7}, REAL),
        (AdaBoostClassifier(n_estimators=5), {"n_estimators": 9}, THREE),
        (HistGradientBoostingRegressor(max_iter=4), {"max_iter": 9}, REAL),
        (GradientBoostingClassifier(n_estimators=3, random_state=0), {"n_estimators": 6}, THREE),
    ],
    ids=lambda own: type(own).__name__,
)
def test_more_rounds_may_be_asked_for(model, more, data, tmp_path) -> None:
    model = with_seed(model)
    path, whole = tmp_path / "fit.margrove", with_seed(model).set_params(**more).fit(*data)
    with checkpoint(path):
        model.fit(*data)
    with checkpoint(path, resume=True):
        assert_same(whole, model.set_params(**more).fit(*data))


def test_a_limit_that_says_more_than_when_to_end_stays(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    with checkpoint(path):
        AdaBoostRegressor(n_estimators=4, random_state=0).fit(*REAL)
    with (
        pytest.raises(CheckpointError, match="n_estimators was 4 and is 6"),
        checkpoint(path, resume=True),
    ):
        AdaBoostRegressor(n_estimators=6, random_state=0).fit(*REAL)


def test_validation_rows_and_warm_starts_belong_to_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(slices, "_FIRST_SLICE_WORK", 500)  # a round of stumps
    path, (X, y), (V, v) = tmp_path / "fit.margrove", TWO, classes(50, k=2, seed=9)
    model = HistGradientBoostingClassifier(max_iter=9, n_iter_no_change=3)
    given = {"X_val": V, "y_val": v}
    whole = with_seed(model).fit(X, y, **given)
    interrupted(path, with_seed(model), X, y, **given)
    with pytest.raises(CheckpointError, match="X_val has changed"), checkpoint(path, resume=True):
        with_seed(model).fit(X, y, X_val=-V, y_val=v)
    with checkpoint(path, resume=True):
        assert_same(whole, with_seed(model).fit(X, y, **given))

    for given_model, name in (
        (RandomForestClassifier(4, max_samples=0.1, oob_score=True), "n_estimators"),
        (GradientBoostingClassifier(n_estimators=4, subsample=0.5), "n_estimators"),
        (HistGradientBoostingClassifier(max_iter=4), "max_iter"),
        (AdaBoostClassifier(n_estimators=4), "n_estimators"),
        (AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4), "n_estimators"),
        (BaggingClassifier(n_estimators=4), "n_estimators"),
    ):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.margrove"
        model = with_seed(given_model).set_params(warm_start=True)
        models = [quietly(with_seed(model).fit, X, y).set_params(**{name: 9}) for _ in range(3)]
        models[0].fit(X, y)
        interrupted(path, models[1], X, y)
        with checkpoint(path, resume=True):
            assert_same(models[0], models[2].fit(X, y))
        with (
            pytest.raises(CheckpointError, match="starts from another model"),
            checkpoint(path, resume=True),
        ):
            with_seed(model).set_params(**{name: 9}).fit(X, y)


def test_seeds_that_were_drawn_at_random_are_kept(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    interrupted(path, RandomForestClassifier(9), *THREE, slices=3)
    models = []
    for _ in range(2):
        with checkpoint(tmp_path / "other.margrove", resume_from=path):
            models.append(RandomForestClassifier(9).fit(*THREE))
        (tmp_path / "other.margrove").unlink()
    assert_same(*models)
    seed = models[0].sampled_.seed
    assert differences(models[0], RandomForestClassifier(9).fit(*THREE))
    assert_same(models[0].trees_, RandomForestClassifier(9, random_state=seed).fit(*THREE).trees_)


def test_generators_go_on_where_they_were(tmp_path) -> None:
    path = tmp_path / "fit.margrove"

    def forest():
        return RandomForestClassifier(9, random_state=np.random.RandomState(3))

    whole = forest().fit(*THREE)
    interrupted(path, forest(), *THREE)
    with checkpoint(path, resume=True):
        assert_same(whole.trees_, forest().fit(*THREE).trees_)
    with (
        pytest.raises(CheckpointError, match="random_state was RandomState"),
        checkpoint(path, resume=True),
    ):
        RandomForestClassifier(9, random_state=np.random.RandomState(4)).fit(*THREE)


def test_a_finished_checkpoint_returns_at_once(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    with checkpoint(path):
        whole = RandomForestClassifier(9, random_state=0).fit(*THREE)
    rounds = []
    with checkpoint(path, resume_from=path), watch(on_progress=rounds.append):
        again = RandomForestClassifier(9, random_state=0).fit(*THREE)
    assert rounds == []
    assert_same(whole, again)
    with checkpoint(path):  # it may be replaced
        RandomForestClassifier(5, random_state=0).fit(*THREE)


def test_unfinished_work_and_foreign_files_are_not_overwritten(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    interrupted(path, RandomForestClassifier(9, random_state=0), *THREE)
    with pytest.raises(CheckpointError, match=r"not finished.*resume=True"), checkpoint(path):
        pass
    path.write_text("my thesis")
    with pytest.raises(CheckpointError, match="not a checkpoint"), checkpoint(path):
        pass
    assert path.read_text() == "my thesis"
    write_archive(path, "RandomForestClassifier", {})
    for options in ({}, {"resume": True}):
        with pytest.raises(CheckpointError, match="checkpoint"), checkpoint(path, **options):
            pass


def test_damaged_and_hostile_files(tmp_path) -> None:
    path, model = tmp_path / "fit.margrove", RandomForestClassifier(9, random_state=0)
    interrupted(path, model, *THREE, slices=4)
    data = bytearray(path.read_bytes())
    for broken in (data[:-9], data[:40], data[: len(data) // 2] + b"x" + data[len(data) // 2 :]):
        path.write_bytes(broken)
        with pytest.raises(ModelFileError), checkpoint(path, resume=True):
            pass
    path.write_bytes(data)
    _, values = read_archive(path)

    def resume(change):
        kind, altered = "checkpoint", read_archive(path)[1]
        change(altered["drives"][0]["state"])
        other = tmp_path / "hostile.margrove"
        write_archive(other, kind, altered)
        with (
            pytest.raises(CheckpointError, match=r"not valid.*altered"),
            checkpoint(tmp_path / "new.margrove", resume_from=other),
        ):
            model.fit(*THREE)
        assert not (tmp_path / "new.margrove").exists()

    def far_child(state):
        nodes = state["trees"][0]["nodes"]
        nodes[1] = (nodes[1] & ~0xFFFFFFFF) | 2**31

    resume(far_child)
    resume(lambda state: state["trees"][0].update(nodes=state["trees"][0]["nodes"][:-2]))
    resume(lambda state: state["trees"][0].update(weight=None))
    resume(lambda state: state["trees"][0].update(weight=np.ones(3, np.complex64).real))
    resume(lambda state: state["numbers"].__setitem__(0, 5))
    resume(lambda state: state["numbers"].__setitem__(-1, 10**12))
    resume(lambda state: state["numbers"].__setitem__(0, "0"))
    resume(lambda state: state.update(n_shown=10**6))
    resume(lambda state: state.pop("halved"))
    resume(lambda state: state.clear())
    values["drives"][0]["finished"] = "yes"
    write_archive(path, "checkpoint", values)
    with (
        pytest.raises(CheckpointError, match="fields are not those"),
        checkpoint(path, resume=True),
    ):
        pass


@pytest.mark.parametrize(
    ("model", "data", "changes"),
    [
        (AdaBoostClassifier(n_estimators=9), THREE, [
            lambda s: s["stumps"]["feature"].__setitem__(0, 99),
            lambda s: s["stumps"]["code"].__setitem__(0, 10**9),
            lambda s: s["stumps"]["classes"].__setitem__((0, 0), -1),
            lambda s: s.update(outcome="splendid"),
        ]),
        (HistGradientBoostingClassifier(max_iter=9), THREE, [
            lambda s: s.update(raw=s["raw"][:, :5].copy()),
            lambda s: s["raw"].__setitem__((0, 0), np.nan),
            lambda s: s.update(trees=[[{}, {}, {}]]),
            lambda s: s.update(trees=[[]]),
            lambda s: s.update(losses=[0.0] * 99),
        ]),
        (BaggingClassifier(n_estimators=9, random_state=0), TWO, [
            lambda s: s["members"][0]["fitted"].update(n_features_in_=3),
            lambda s: s["members"].__setitem__(0, {}),
            lambda s: s.update(n_handed_over=77),
        ]),
    ],
    ids=lambda own: type(own).__name__ if hasattr(own, "fit") else "",
)  # fmt: skip
def test_states_that_were_made_up(model, data, changes, tmp_path) -> None:
    path, hostile = tmp_path / "fit.margrove", tmp_path / "hostile.margrove"
    interrupted(path, with_seed(model), *data)
    for change in changes:
        _, values = read_archive(path)
        change(values["drives"][0]["state"])
        write_archive(hostile, "checkpoint", values)
        with (
            pytest.raises(CheckpointError, match="not valid"),
            checkpoint(tmp_path / "new.margrove", resume_from=hostile),
        ):
            with_seed(model).fit(*data)


def test_versions(tmp_path, monkeypatch) -> None:
    path = tmp_path / "fit.margrove"
    interrupted(path, RandomForestClassifier(9, random_state=0), *THREE)
    monkeypatch.setattr("margrove._runtime.checkpoints.records.__version__", "99.0")
    with pytest.raises(CheckpointError, match=r"and this is 99\.0"), checkpoint(path, resume=True):
        pass


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"every": 0}, ValueError, "every must be"),
        ({"every": True}, ValueError, "every must be"),
        ({"every": "30"}, ValueError, "every must be"),
        ({"every": float("nan")}, ValueError, "every must be"),
        ({"every_rounds": 0}, ValueError, "every_rounds must be"),
        ({"every_rounds": 1.5}, ValueError, "every_rounds must be"),
        ({"resume": "fit.margrove"}, TypeError, "resume must be True or False"),
        ({"resume_from": 3}, TypeError, "resume_from must be the name"),
        ({"resume_from": "nowhere.margrove"}, FileNotFoundError, "resume=True"),
        ({"resume": True, "resume_from": "x"}, ValueError, "either resume or resume_from"),
        ({"path": None}, TypeError, "path must be the name"),
        ({"path": "no/such/folder/x"}, FileNotFoundError, "no folder"),
        ({"path": "."}, IsADirectoryError, "is a folder"),
        ({"others": "warn"}, ValueError, "others must be 'raise' or 'fit'"),
    ],
    ids=str,
)
def test_arguments(options, error, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message), checkpoint(**{"path": "x.margrove"} | options):
        pass
    assert list(tmp_path.iterdir()) == []


def in_a_thread(fit):
    thread = threading.Thread(target=fit, args=THREE)
    thread.start()
    thread.join()


def test_a_block_without_fits_leaves_no_file(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    with pytest.warns(CheckpointWarning, match="Nothing was saved"), checkpoint(path):
        in_a_thread(RandomForestClassifier(3).fit)
    with pytest.raises(ValueError, match="n_jobs"), checkpoint(path):
        RandomForestClassifier(n_jobs=0).fit(*THREE)
    assert list(tmp_path.iterdir()) == []


def test_streams_are_not_kept(tmp_path) -> None:
    """Every batch would be: the model itself is what has been learnt."""
    path = tmp_path / "fit.margrove"
    for model in (Perceptron(), KernelPerceptron(), LinearSVC()):
        with pytest.warns(CheckpointWarning, match="partial_fit"), checkpoint(path):
            model.partial_fit(*THREE, classes=[0, 1, 2])
        assert not path.exists()


def test_a_fit_that_fails_at_once_leaves_no_file(tmp_path, monkeypatch) -> None:
    def fail(process, work):
        raise ValueError("overflow")

    path = tmp_path / "fit.margrove"
    monkeypatch.setattr(forest_grower.ForestGrower, "advance", fail)
    with pytest.raises(ValueError, match="overflow"), checkpoint(path):
        RandomForestClassifier(3).fit(*TWO)
    assert not path.exists()


def test_files_are_written_every_so_often(tmp_path, monkeypatch) -> None:
    path, times = tmp_path / "fit.margrove", []
    usual = _files.write_archive
    monkeypatch.setattr(
        _files, "write_archive", lambda *given: (times.append(given), usual(*given))
    )
    with checkpoint(path, every_rounds=3):
        RandomForestClassifier(10, random_state=0).fit(*THREE)
    assert len(times) == 4  # after 3, 6 and 9 trees, and at the end
    times.clear()
    with checkpoint(path, every=1e-9):
        RandomForestClassifier(9, random_state=0, n_jobs=1).fit(*THREE)
    assert len(times) > 3
    times.clear()
    with checkpoint(path, every=None):
        RandomForestClassifier(9, random_state=0, n_jobs=1).fit(*THREE)
    assert len(times) == 1


def test_a_full_disk_does_not_end_the_fit(tmp_path, monkeypatch) -> None:
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files, "write_archive", full)
    with (
        pytest.warns(CheckpointWarning, match=r"could not be written.*No space"),
        checkpoint(tmp_path / "fit.margrove", every_rounds=2),
    ):
        forest = RandomForestClassifier(5, random_state=0).fit(*THREE)
    assert len(forest) == 5


def test_what_cannot_be_kept_is_said(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    for model in (
        BaggingClassifier(svm.SVC(), n_estimators=2, random_state=0),
        AdaBoostClassifier(LogisticRegression(), n_estimators=2),
        DecisionTreeClassifier(),
    ):
        with pytest.warns(CheckpointWarning, match="not saved"), checkpoint(path):
            model.fit(*TWO)
        assert not path.exists()


FITTED_ANEW = {
    "perceptron": (Perceptron(), THREE),
    "kernel perceptron": (KernelPerceptron(), THREE),
    "linear": (LinearSVC(), THREE),
    "linear regression": (LinearSVR(), REAL),
}


@pytest.mark.parametrize("name", FITTED_ANEW)
def test_small_solvers_are_refused_before_anything_is_fitted(name, tmp_path) -> None:
    path, (model, data) = tmp_path / "fit.margrove", FITTED_ANEW[name]
    model = clone(model)
    message = rf"{type(model).__name__} has no checkpoints.*exist for forests.*others='fit'"
    with pytest.raises(CheckpointError, match=message), checkpoint(path):
        model.fit(*data)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "dual_coef_")
    assert not path.exists()
    with pytest.raises(CheckpointError, match=message), checkpoint(path):
        make_pipeline(StandardScaler(), model).fit(*data)


def test_small_solvers_are_fitted_beside_what_is_kept(tmp_path) -> None:
    path, forest = tmp_path / "fit.margrove", RandomForestClassifier(5, random_state=0)
    for resume in (False, True):
        with checkpoint(path, others="fit", resume=resume):
            line = LinearSVC().fit(*TWO)
            forest.fit(*TWO)
        assert np.array_equal(line.coef_, LinearSVC().fit(*TWO).coef_)
        assert [own["learner"] for own in read_archive(path)[1]["drives"]] == [
            "RandomForestClassifier"
        ]


def test_checkpoints_of_learners_that_were_kept_once_name_the_way_out(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    with checkpoint(path):
        RandomForestClassifier(3, random_state=0).fit(*TWO)
    _, values = read_archive(path)
    values["drives"][0]["learner"] = "LinearSVC"
    write_archive(path, "checkpoint", values | {"version": "0.1"})
    message = r"it is a checkpoint of LinearSVC, which has no .* Remove the file.*partial_fit"
    with pytest.raises(CheckpointError, match=message), checkpoint(path, resume=True):
        LinearSVC().fit(*TWO)


def test_fits_inside_fits_and_pipelines(tmp_path) -> None:
    """Every fit of a block has its place in the order, and is passed through when it was done."""
    path, (X, y) = tmp_path / "fit.margrove", TWO

    def search():
        steps = make_pipeline(StandardScaler(), RandomForestClassifier(6, random_state=0))
        grid = {"randomforestclassifier__max_depth": [1, 3]}
        return GridSearchCV(steps, grid, cv=2)

    whole, slices = search().fit(X, y), []
    with checkpoint(path), pytest.raises(Stop), watch(on_progress=stop_after(27)):
        search().fit(X, y)
    entries = read_archive(path)[1]["drives"]
    assert [own["finished"] for own in entries[:-1]] == [True] * (len(entries) - 1)
    assert len(entries) > 2
    with checkpoint(path, resume=True), watch(on_progress=slices.append):
        resumed = search().fit(X, y)
    total = slices_of(search(), (X, y))
    assert len(slices) < total - 10
    assert resumed.cv_results_["mean_test_score"].tolist() == (
        whole.cv_results_["mean_test_score"].tolist()
    )
    assert_same(whole.best_estimator_[-1], resumed.best_estimator_[-1])


def test_a_second_interruption_keeps_what_is_to_come(tmp_path) -> None:
    """Fits that were done, but not yet come to again, stay in the file."""
    path = tmp_path / "fit.margrove"

    def fit_all():
        return [
            RandomForestClassifier(4, random_state=seed).fit(*THREE).trees_ for seed in range(3)
        ]

    with checkpoint(path):
        whole = fit_all()
    with checkpoint(path, resume=True):
        RandomForestClassifier(4, random_state=0).fit(*THREE)
    assert len(read_archive(path)[1]["drives"]) == 3
    slices = []
    with checkpoint(path, resume=True), watch(on_progress=slices.append):
        assert_same(whole, fit_all())
    assert slices == []


def test_listeners_hear_of_what_is_new(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    everything, first, second = [], [], []
    with watch(on_step=everything.append):
        AdaBoostClassifier(n_estimators=9).fit(*THREE)
    with pytest.raises(Stop), checkpoint(path), watch(
        on_step=first.append, on_progress=stop_after(4)
    ):  # fmt: skip
        AdaBoostClassifier(n_estimators=9).fit(*THREE)
    with checkpoint(path, resume=True), watch(on_step=second.append):
        AdaBoostClassifier(n_estimators=9).fit(*THREE)
    assert first + second == everything
    assert first
    assert second


def test_budgets_count_from_the_last_start(tmp_path) -> None:
    path = tmp_path / "fit.margrove"
    model, seen = HistGradientBoostingClassifier(max_iter=10**6, max_time=0.1), []
    for _ in range(2):
        with (
            steady_clock(),
            checkpoint(path, resume=True),
            watch(on_progress=lambda progress: seen.append(progress.seconds)),
            pytest.warns(ConvergenceWarning, match="max_time"),
        ):
            model.fit(*THREE)
    assert seen == [0.05, 0.1] * 2


def test_no_state_is_asked_for_without_a_checkpoint(monkeypatch) -> None:
    monkeypatch.setattr(forest_grower.ForestGrower, "state", lambda self: 1 / 0)
    RandomForestClassifier(3, random_state=0).fit(*THREE)


def test_fingerprints_tell_contents_apart() -> None:
    X = np.arange(12.0).reshape(4, 3)
    same = [X, X.tolist(), np.asfortranarray(X), X.astype(int), X[::-1][::-1], X.astype(">f8")]
    assert len({fingerprint(own) for own in same}) == 1
    others = [X, X.T, X.reshape(3, 4), X.astype(np.float32), X + 1e-12, X[:3], sp.csr_array(X),
              np.where(X == 5, np.nan, X), X.astype(str), X.astype(object), None]  # fmt: skip
    assert len({fingerprint(own) for own in others}) == len(others)
    rows = sp.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert fingerprint(rows) == fingerprint(sp.csr_matrix([[0.0, 3.0], [3.0, 0.0]]))
    assert fingerprint([2**60]) != fingerprint([2**60 + 1])
    assert fingerprint(["a", "b"]) == fingerprint(np.array(["a", "b"]))
    assert fingerprint({"a": 1, "b": X}) == fingerprint({"b": X.copy(), "a": 1})


def test_fingerprints_of_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    assert fingerprint(frame) == fingerprint(frame.copy())
    changed = [
        frame.rename(columns={"a": "c"}),
        frame.assign(b=["x", "z"]),
        frame.assign(b=frame["b"].astype("category")),
        frame.iloc[::-1],
    ]
    assert len({fingerprint(own) for own in [frame, *changed]}) == 5
