"""Slices: interrupts, time budgets, cancelling, callbacks and step listeners."""

from __future__ import annotations

import importlib
import sys
import threading
import time

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from tests.interrupts import (
    interrupt_after,
    lines_until_interrupt,
    run_with_signals,
    steady_clock,
)

from margrove import KernelPerceptron, Perceptron, Progress, watch
from margrove._runtime import slices
from margrove.datasets import load_iris, make_xor
from margrove.exceptions import ConvergenceWarning, FitCancelled, InterruptedFitWarning

HAS_CALLBACKS = hasattr(Perceptron, "set_callbacks")
CLASSES = [Perceptron, KernelPerceptron]
FILES = {
    Perceptron: ("_runtime.slices", "margin.solvers.perceptron.perceptron"),
    KernelPerceptron: ("_runtime.slices", "margin.solvers.perceptron.kernel_perceptron"),
}


def endless(cls, **changes):
    """A fit that would take hours, and its data."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (3000, 2)).astype(float)  # equal points of both classes
    return cls(**{"max_iter": 10**9, "tol": None} | changes), X, rng.integers(0, 2, 3000)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupts_are_obeyed_and_leave_the_old_model(cls, n_jobs) -> None:
    model, X, y = endless(cls, n_jobs=n_jobs)
    model.set_params(max_iter=2).fit(X, y)
    before = model.decision_function(X[:50])
    model.set_params(max_iter=10**9)
    at_first = threading.active_count()
    for n_slices in (1, 2, 5):
        with pytest.raises(KeyboardInterrupt), interrupt_after(n_slices):
            model.fit(X, y)
        assert np.array_equal(model.decision_function(X[:50]), before)
        assert threading.active_count() < at_first + 9


@pytest.mark.parametrize("cls", CLASSES)
def test_an_interrupt_can_keep_what_was_learnt(cls) -> None:
    model, X, y = endless(cls, on_interrupt="keep", n_jobs=2)
    with (
        pytest.warns(InterruptedFitWarning, match=r"interrupted after \d+ epochs"),
        interrupt_after(4),
    ):
        model.fit(X, y)
    assert model.mistakes_ > 0
    assert np.isfinite(model.decision_function(X)).all()
    if cls is KernelPerceptron:
        scratch = model.kernel_(X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
        signs = 2 * y - 1
        K = model.kernel_(model.support_vectors_)
        norm = np.sqrt(model.dual_coef_[0] @ K @ model.dual_coef_[0] + model.intercept_[0] ** 2)
        assert model.margin_ == pytest.approx((signs * scratch[:, 0]).min() / norm, rel=1e-6)


ENDLESS = """
import numpy as np, margrove
from sklearn.tree import DecisionTreeClassifier as PeerTree

rng = np.random.default_rng(0)
X, two, many = rng.normal(size=(4000, 20)), rng.integers(0, 2, 4000), rng.integers(0, 20, 4000)
endless = [
    (margrove.Perceptron(max_iter=10**9, tol=None), two),
    (margrove.KernelPerceptron(kernel="linear", max_iter=10**9, tol=None, n_jobs=2), two),
    (margrove.SVC(kernel="linear", C=1e6, tol=1e-12, probability=True), two),
    (margrove.LinearSVC(C=1e8, loss="hinge", solver="cd", tol=1e-14, max_iter=10**9), many),
    (margrove.RandomForestClassifier(10**5, n_jobs=2), two),
    (margrove.AdaBoostClassifier(n_estimators=10**6), two),
    (margrove.HistGradientBoostingClassifier(max_iter=10**6, early_stopping=False, n_jobs=2), two),
    (margrove.BaggingClassifier(PeerTree(), 10**5, n_jobs=2), two),
]
for model, y in endless:
    slices = []

    def press(progress):
        slices.append(progress)
        if len(slices) == 3:
            print("now", flush=True)

    try:
        with margrove.watch(on_progress=press):
            model.fit(X, y)
    except KeyboardInterrupt:
        unchanged = not hasattr(model, "classes_")
        print(type(model).__name__, "unchanged" if unchanged else "changed", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_signals_are_heard_while_kernels_run() -> None:
    """Ctrl-C in another process, whose fits would take for ever."""
    done = run_with_signals(ENDLESS)
    assert done.stderr == ""
    names = [
        "Perceptron", "KernelPerceptron", "SVC", "LinearSVC", "RandomForestClassifier",
        "AdaBoostClassifier", "HistGradientBoostingClassifier", "BaggingClassifier",
    ]  # fmt: skip
    assert done.stdout.splitlines() == [f"{name} unchanged" for name in names]
    assert done.returncode == 0


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("n_slices", [1, 4])
def test_a_time_budget_keeps_what_was_learnt(cls, n_slices) -> None:
    model, X, y = endless(cls, max_time=n_slices * slices.SLICE_SECONDS)
    seen: list[Progress] = []
    told = r"used up max_time=0\.\d+ s after \d+ of 1000000000"
    with (
        steady_clock(),
        watch(on_progress=seen.append),
        pytest.warns(ConvergenceWarning, match=told),
    ):
        model.fit(X, y)
    assert len(seen) == n_slices
    assert seen[-1].seconds == model.max_time
    assert model.mistakes_ == seen[-1].figures["mistakes"] > 0


def test_budgets_use_a_clock_that_does_not_jump(monkeypatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.0)
    model, X, y = endless(Perceptron, max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)


@pytest.mark.parametrize("cls", CLASSES)
def test_another_thread_can_cancel(cls) -> None:
    model, X, y = endless(cls)
    begun, stop = threading.Event(), threading.Event()
    other = threading.Thread(target=lambda: begun.wait() and stop.set())
    other.start()
    listening = watch(cancel=stop, on_progress=lambda progress: begun.set())
    with listening, pytest.raises(FitCancelled, match="as it was before"):
        model.fit(X, y)
    other.join()
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("cls", CLASSES)
def test_progress_is_reported_and_can_end_the_fit(cls) -> None:
    model, X, y = endless(cls)
    seen: list[Progress] = []

    def enough(progress):
        seen.append(progress)
        return progress.done >= 5

    with watch(on_progress=enough):
        model.fit(X, y)
    assert seen[-1].done >= 5
    assert seen[-1].learner == cls.__name__
    assert seen[-1].unit == "epoch"
    assert seen[-1].figures["mistakes"] == model.mistakes_
    assert [p.done for p in seen] == sorted(p.done for p in seen)


@pytest.mark.parametrize("cls", CLASSES)
def test_where_slices_end_changes_nothing(cls, monkeypatch) -> None:
    X, y = load_iris(return_X_y=True)
    usual = cls(max_iter=6, tol=None).fit(X, y)
    for work in (1, 700, 10**12):
        monkeypatch.setattr(slices, "_FIRST_SLICE_WORK", work)
        monkeypatch.setattr(slices, "_work_of_next_slice", lambda work, done, seconds: work)
        again = cls(max_iter=6, tol=None).fit(X, y)
        assert np.array_equal(usual.decision_function(X), again.decision_function(X))
        assert again.mistakes_ == usual.mistakes_


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("capacity", [1, 13, 4096])
def test_listening_changes_no_bit_and_misses_no_step(cls, capacity, monkeypatch) -> None:
    X, y = load_iris(return_X_y=True)
    silent = cls(max_iter=6, tol=None).fit(X, y)
    monkeypatch.setattr(slices, "_STEP_CAPACITY", max(capacity, 3))
    steps = []
    with watch(on_step=steps.append):
        heard = cls(max_iter=6, tol=None).fit(X, y)
    assert np.array_equal(silent.decision_function(X), heard.decision_function(X))
    assert sum(step.step for step in steps) == heard.mistakes_
    assert [step.epoch for step in steps] == sorted(step.epoch for step in steps)
    assert {step.problem for step in steps} == {0, 1, 2}


@pytest.mark.parametrize("cls", CLASSES)
def test_two_classes_are_problem_zero(cls) -> None:
    X, y = make_xor(60, return_X_y=True)
    steps = []
    with watch(on_step=steps.append):
        cls(max_iter=2, tol=None).fit(X, y)
    assert {step.problem for step in steps} == {0}


def test_more_classes_than_the_buffer_has_room_for(monkeypatch) -> None:
    monkeypatch.setattr(slices, "_STEP_CAPACITY", 2)
    X, y = load_iris(return_X_y=True)
    steps = []
    with watch(on_step=steps.append):
        model = Perceptron(max_iter=2, tol=None).fit(X, y)
    assert len(steps) == model.mistakes_


def test_watchers_are_checked_at_once() -> None:
    for wrong in ({"on_step": 5}, {"on_progress": "x"}, {"cancel": True}):
        with pytest.raises(TypeError, match=next(iter(wrong))), watch(**wrong):
            pass


def test_watchers_nest() -> None:
    X, y = load_iris(return_X_y=True)
    outer, inner, stop = [], [], threading.Event()
    with watch(on_step=outer.append), watch(on_step=inner.append, on_progress=lambda p: None):
        Perceptron(max_iter=2, tol=None).fit(X, y)
    assert outer == inner != []
    stop.set()
    with watch(cancel=stop), watch(on_progress=lambda p: None), pytest.raises(FitCancelled):
        Perceptron().fit(X, y)


def test_what_a_listener_fits_is_not_reported_to_it() -> None:
    X, y = load_iris(return_X_y=True)
    model = Perceptron(max_iter=3, tol=None)
    calls = []

    def curious(progress):
        calls.append(progress)
        clone(model).fit(X, y)

    with watch(on_progress=curious):
        model.fit(X, y)
    assert 0 < len(calls) <= 10


@pytest.mark.parametrize("moment", ["visit", "apply"])
def test_a_kept_interrupt_never_keeps_half_a_block(moment, monkeypatch) -> None:
    model, X, y = endless(KernelPerceptron, on_interrupt="keep")
    solver = importlib.import_module("margrove.margin.solvers.perceptron.kernel_perceptron")
    name = {"visit": "_visit_block", "apply": "_apply"}[moment]
    owner = solver if moment == "visit" else solver.KernelPerceptronProcess
    original, calls = getattr(owner, name), []

    def interrupted(*arguments):
        original(*arguments)
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.warns(InterruptedFitWarning):
        model.fit(X, y)
    assert model.alpha_.sum() == pytest.approx(model.mistakes_)
    assert model.intercept_[0] == pytest.approx(model.dual_coef_.sum())


def test_errors_of_callbacks_pass_through_and_change_nothing() -> None:
    X, y = load_iris(return_X_y=True)
    model = Perceptron().fit(X, y)
    before = model.coef_.copy()

    def broken(progress):
        raise LookupError("mine")

    with watch(on_progress=broken), pytest.raises(LookupError, match="mine"):
        model.fit(X[::2], y[::2])
    assert np.array_equal(model.coef_, before)


def test_fitting_the_same_estimator_from_its_own_callback_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    model = Perceptron()
    with watch(on_progress=lambda p: model.fit(X, y)), pytest.raises(RuntimeError, match="clone"):
        model.fit(X, y)
    model.fit(X, y)  # and afterwards all is well


def test_a_callback_that_meddles_with_the_model_does_no_harm() -> None:
    X, y = load_iris(return_X_y=True)
    expected = Perceptron(max_iter=4, tol=None).fit(X, y).coef_
    model = Perceptron(max_iter=4, tol=None)

    def meddle(progress):
        model.coef_ = "nonsense"
        model.set_params(max_iter=99)

    with watch(on_progress=meddle):
        model.fit(X, y)
    assert np.array_equal(model.coef_, expected)


def test_the_progress_bar_goes_to_standard_error(capsys) -> None:
    X, y = load_iris(return_X_y=True)
    Perceptron(verbose=1).fit(X, y)
    with watch(progress_bar=True):
        KernelPerceptron(max_iter=3, tol=None).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Perceptron, epochs" in err
    assert "mistakes" in err


def test_nothing_is_printed_otherwise(capsys) -> None:
    X, y = load_iris(return_X_y=True)
    Perceptron().fit(X, y).predict(X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(
    not HAS_CALLBACKS, reason=f"scikit-learn {sklearn.__version__} has no callbacks"
)
class TestScikitLearnCallbacks:
    class Recorder:
        def __init__(self, stop_after=10**9):
            self.events = []
            self.stop_after = stop_after

        def setup(self, estimator, context):
            self.events.append("setup")

        def teardown(self, estimator, context):
            self.events.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            self.events.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
            self.events.append(f"end {context.task_name}")
            assert len(fitted_estimator.predict(X)) == len(X)
            return self.events.count("end epoch") >= self.stop_after

    def test_each_epoch_is_a_task_with_a_usable_model(self) -> None:
        X, y = load_iris(return_X_y=True)
        recorder = self.Recorder()
        Perceptron(max_iter=4, tol=None).set_callbacks(recorder).fit(X, y)
        assert recorder.events[:2] == ["setup", "begin fit"]
        assert recorder.events[-2:] == ["end fit", "teardown"]
        assert recorder.events.count("begin epoch") == recorder.events.count("end epoch") == 4

    def test_a_callback_can_stop_the_fit(self) -> None:
        X, y = load_iris(return_X_y=True)
        recorder = self.Recorder(stop_after=2)
        model = Perceptron(max_iter=50, tol=None).set_callbacks(recorder).fit(X, y)
        assert model.n_iter_ == 2

    def test_scikit_learns_progress_bar_runs(self) -> None:
        from sklearn.callback import ProgressBar
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        X, y = load_iris(return_X_y=True)
        model = make_pipeline(StandardScaler(), Perceptron(max_iter=3, tol=None))
        assert model.set_callbacks(ProgressBar()).fit(X, y).score(X, y) > 0.5

    def test_a_round_cut_short_by_the_clock_is_ended(self) -> None:
        model, X, y = endless(Perceptron, max_time=0.2)
        recorder = self.Recorder()
        with steady_clock(), pytest.warns(ConvergenceWarning, match="max_time"):
            model.set_callbacks(recorder).fit(X, y)
        assert recorder.events.count("begin epoch") == recorder.events.count("end epoch") > 0
        assert recorder.events[-2:] == ["end fit", "teardown"]

    def test_results_are_the_same_with_and_without(self) -> None:
        X, y = load_iris(return_X_y=True)
        plain = Perceptron(max_iter=4, tol=None).fit(X, y)
        watched = Perceptron(max_iter=4, tol=None).set_callbacks(self.Recorder()).fit(X, y)
        assert np.array_equal(plain.coef_, watched.coef_)


@pytest.mark.parametrize("cls", CLASSES)
def test_an_interrupt_at_any_line_leaves_the_old_model(cls) -> None:
    X, y = load_iris(return_X_y=True)
    model = cls(max_iter=2, tol=None).fit(X, y)
    files = {sys.modules[f"margrove.{name}"].__file__ for name in FILES[cls]}
    before = {name: id(value) for name, value in vars(model).items()}
    n_lines = len(lines_until_interrupt(clone(model).fit, X[::2], y[::2], files=files))
    assert n_lines > 100
    for moment in range(0, n_lines, 3):
        lines = lines_until_interrupt(model.fit, X[::2], y[::2], files=files, moment=moment)
        assert len(lines) == moment
        assert {name: id(value) for name, value in vars(model).items()} == before
