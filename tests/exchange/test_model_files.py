"""Models in files, and back."""

from __future__ import annotations

import io
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted
from tests.exchange.golden_files import (
    GOLDEN,
    architecture,
    few_rows,
    golden_answers,
    path_of,
)
from tests.exchange.zoo import NUMBERS, THREE, TWO, ZOO, X, answers

import margrove
from margrove._files import FORMAT_VERSION, pack, unpack
from margrove.ensemble.gradient.losses import GRADIENT_LOSSES
from margrove.exceptions import ModelFileError, UnsavableModelError
from margrove.exchange.model_file.files import inspect_file, load, save
from margrove.exchange.model_file.kinds import kinds
from margrove.exchange.model_file.values import LEFT_OUT


def saved(model: Any) -> bytes:
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


def loaded(data: bytes) -> Any:
    return load(io.BytesIO(data))


def in_full(values: np.ndarray) -> Any:
    """All there is in an array, also signs of zeros."""
    return repr(values.tolist()) if values.dtype == object else pickle.dumps(values)


def assert_same_answers(model: Any, other: Any, X: Any) -> None:
    expected, found = dict(answers(model, X)), dict(answers(other, X))
    assert list(expected) == list(found)
    for name, values in expected.items():
        assert values.dtype == found[name].dtype, name
        assert values.shape == found[name].shape, name
        assert in_full(values) == in_full(found[name]), name


def parameters_of(model: Any) -> str:
    """All parameters but those that are left out, in words."""
    given = {
        name: value
        for name, value in model.get_params(deep=True).items()
        if name.split("__")[-1] not in LEFT_OUT
    }
    return re.sub(" at 0x[0-9a-f]+", "", repr(given))


@pytest.mark.parametrize("name", ZOO)
def test_a_loaded_model_is_the_saved_one(name) -> None:
    specimen = ZOO[name]
    model = specimen.fitted()
    data = saved(model)
    other = loaded(data)
    assert type(other) is type(model)
    assert_same_answers(model, other, specimen.X)
    assert saved(other) == data
    assert parameters_of(other) == parameters_of(model)
    assert not hasattr(model, "feature_names_in_") or np.array_equal(
        other.feature_names_in_, model.feature_names_in_
    )


@pytest.mark.parametrize("name", ZOO)
def test_models_that_are_not_fitted(name) -> None:
    specimen = ZOO[name]
    other = loaded(saved(specimen.estimator))
    assert parameters_of(other) == parameters_of(specimen.estimator)
    assert not inspect_file(io.BytesIO(saved(other))).is_fitted
    with pytest.raises(margrove.exceptions.NotFittedError):
        check_is_fitted(other)


@pytest.mark.parametrize(
    "name",
    ["SVC with probabilities", "tree of categories", "random forest", "bagging of machines",
     "AdaBoost", "AdaBoost of trees", "boosting by histograms", "boosting", "pipeline of a table",
     "LinearSVC", "perceptron of three, averaged"],
)  # fmt: skip
def test_a_loaded_model_can_be_cloned_and_fitted_again(name) -> None:
    specimen = ZOO[name]
    other = loaded(saved(specimen.fitted()))
    assert saved(clone(other)) == saved(specimen.estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert saved(other.fit(specimen.X, specimen.y)) == saved(specimen.fitted())


@pytest.mark.parametrize("name", [name for name in ZOO if name.endswith("of a stream")])
def test_a_stream_goes_on_after_loading(name) -> None:
    specimen = ZOO[name]
    model = specimen.fitted()
    other = loaded(saved(model))
    for own in (model, other):
        own.partial_fit(specimen.X[:15], specimen.y[:15])
    assert saved(model) == saved(other)


@pytest.mark.parametrize("name", ["boosting", "boosting by histograms", "AdaBoost",
                                  "random forest", "bagging", "SVC"])  # fmt: skip
def test_a_warm_start_goes_on_after_loading(name) -> None:
    specimen = ZOO[name]
    size = "max_iter" if name == "boosting by histograms" else "n_estimators"
    more = {} if name == "SVC" else {size: 6}
    model = specimen.fitted(warm_start=True)
    other = loaded(saved(model))
    for own in (model, other):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own.set_params(**more).fit(specimen.X, specimen.y)
    assert_same_answers(model, other, specimen.X)


@pytest.mark.parametrize(
    ("name", "where"),
    [("SVC", ""), ("tree of classes", ""), ("random forest", ""), ("bagging", ""),
     ("AdaBoost of trees", ""), ("boosting by histograms", ""), ("boosting", ""),
     ("LinearSVC", ""), ("perceptron", ""), ("pipeline", "svc__")],
)  # fmt: skip
def test_bytes_depend_on_the_model_alone(name, where) -> None:
    specimen = ZOO[name]
    first, second = (saved(specimen.fitted(**{f"{where}n_jobs": n})) for n in (1, 2))
    assert first == second
    assert first == saved(specimen.fitted(**{f"{where}n_jobs": 1}))


def test_bytes_do_not_depend_on_hashes() -> None:
    code = (
        "import io, hashlib\nfrom sklearn.feature_extraction.text import TfidfVectorizer\n"
        "from sklearn.preprocessing import OneHotEncoder\n"
        "from margrove.exchange.model_file.files import save\n"
        "labels = [[word] for word in 'ab bc cd de ef'.split()]\n"
        "digest = hashlib.sha256()\n"
        "for model in (TfidfVectorizer(stop_words=['a', 'b']).fit(sum(labels, [])),\n"
        "              OneHotEncoder().fit(labels)):\n"
        "    file = io.BytesIO(); save(model, file); digest.update(file.getvalue())\n"
    )
    here: dict[str, Any] = {}
    exec(code, here)
    elsewhere = subprocess.run(
        [sys.executable, "-c", code + "print(digest.hexdigest())"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "7"},
    )
    assert elsewhere.stdout.strip() == here["digest"].hexdigest()


def test_asking_a_model_does_not_change_its_file() -> None:
    for name in ("SVC", "boosting by histograms", "AdaBoost", "random forest", "tree of classes"):
        specimen = ZOO[name]
        model = specimen.fitted()
        before = saved(model)
        list(answers(model, specimen.X))
        if name == "SVC":
            model.certificate_  # noqa: B018
        assert saved(model) == before


def test_training_data_stay_behind() -> None:
    for estimator, y in ((margrove.LinearSVC(), THREE), (margrove.SVC(), TWO)):
        model = loaded(saved(estimator.fit(X, y)))
        assert "_record" not in vars(model)
        with pytest.raises(AttributeError, match=r"margrove\.certificate"):
            model.certificate_  # noqa: B018
        assert margrove.certificate(model, X, y) is not None


def test_every_estimator_is_in_the_table_and_in_the_zoo() -> None:
    public = {
        name
        for name in margrove.__all__
        if isinstance(getattr(margrove, name), type) and hasattr(getattr(margrove, name), "fit")
    }
    assert public <= set(kinds())
    in_zoo: set[str] = set()
    for specimen in ZOO.values():
        in_zoo |= {type(own).__name__ for own in (specimen.estimator,)}
    assert public <= in_zoo


# -- what is refused --


class Mine(margrove.SVC):
    """A class of a user's own."""


def own_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A @ B.T


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (margrove.SVC(kernel=own_kernel), r"SVC\.kernel is the function own_kernel"),
        (margrove.SVC(kernel=margrove.kernels.CallableKernel(own_kernel)), "of your own"),
        (margrove.RandomForestClassifier(random_state=np.random.RandomState(0)), "RandomState"),
        (margrove.RandomForestClassifier(random_state=np.random.default_rng(0)), "Generator"),
        (
            margrove.BaggingClassifier(LogisticRegression()),
            r"BaggingClassifier\.estimator is a skl",
        ),
        (margrove.AdaBoostClassifier(LogisticRegression()), "LogisticRegression"),
        (margrove.BaggingClassifier(Mine()), "Mine"),
        (make_pipeline(FunctionTransformer(np.log1p), margrove.SVC()), r"steps\[0\]\[1\]\.func"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "LogisticRegression"),
        (margrove.RandomForestClassifier(oob_score=own_kernel), "function own_kernel"),
        (Mine(), "it is a Mine"),
        (LogisticRegression(), "it is a LogisticRegression"),
        (margrove.SVC, r"SVC is a class. Save an instance of it: SVC\(\)"),
        ({"a": 1}, "it is a dict"),
        (None, "it is a NoneType"),
    ],
)
def test_what_is_not_ours_is_refused_before_anything_is_written(model, message, tmp_path) -> None:
    path = tmp_path / "a.margrove"
    path.write_bytes(b"old")
    with pytest.raises(UnsavableModelError, match=message):
        save(model, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.margrove"]


def test_own_code_is_refused() -> None:
    own_square = margrove.GradientLoss.of_functions(
        lambda y, raw: (y - raw) ** 2, lambda y, raw: 2.0 * (raw - y), lambda y, raw: 2.0
    )
    model = margrove.HistGradientBoostingRegressor(loss=own_square, max_iter=1)
    with pytest.raises(UnsavableModelError, match=r"of your own.*register_gradient_loss"):
        saved(model)


def test_searches_are_refused_with_a_hint() -> None:
    search = GridSearchCV(margrove.LinearSVR(), {"C": [1.0, 2.0]}, cv=2).fit(X, NUMBERS)
    with pytest.raises(UnsavableModelError, match="Save its best_estimator_"):
        saved(search)
    assert search.best_params_["C"] == loaded(saved(search.best_estimator_)).C


def test_what_a_user_has_added_is_named() -> None:
    model = margrove.SVC().fit(X, TWO)
    model.note = "mine"
    with pytest.raises(UnsavableModelError, match=r"SVC\.note is an attribute .* del model\.note"):
        saved(model)


def test_a_model_that_was_altered_is_not_saved() -> None:
    model = margrove.SVC().fit(X, TWO)
    model.dual_coef_ = model.dual_coef_[:, 1:]
    with pytest.raises(UnsavableModelError, match="not as a fit leaves it"):
        saved(model)
    model = margrove.LinearSVC().fit(X, THREE)
    del model.intercept_
    with pytest.raises(UnsavableModelError, match="lacks 'intercept_'"):
        saved(model)


def test_callbacks_are_left_behind() -> None:
    model = margrove.SVC().fit(X, TWO)
    before = saved(model)
    model._skl_callbacks = [object()]
    assert saved(model) == before


# -- files --


def test_paths(tmp_path) -> None:
    model = margrove.LinearSVR().fit(X, NUMBERS)
    for path in (tmp_path / "a.margrove", str(tmp_path / "b")):
        save(model, path)
        assert np.array_equal(load(path).predict(X), model.predict(X))
    assert sorted(os.listdir(tmp_path)) == ["a.margrove", "b"]
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_what_is_no_file() -> None:
    model = margrove.SVC()
    for wrong in (3, None, b"name"):
        with pytest.raises(TypeError, match="file must be a path or a file object"):
            save(model, wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="file must be a path or a file object"):
            load(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="mode 'wb'"):
        save(model, io.StringIO())  # type: ignore[arg-type]
    with pytest.raises(UnsavableModelError, match=r"save\(model, file\)"):
        save("name", model)


@pytest.mark.parametrize(
    "labels",
    [
        [True, False],
        [1.0, 2.0],
        np.array(["a", "b"], object),
        np.array([3, 4], np.uint8),
        ["ä", "日本"],
    ],
)
def test_labels_of_any_kind(labels) -> None:
    y = np.asarray(labels)[(X[:, 0] > 0).astype(int)]
    for estimator in (margrove.LinearSVC(), margrove.DecisionTreeClassifier(max_depth=2)):
        model = estimator.fit(X, y)
        other = loaded(saved(model))
        assert other.classes_.dtype == model.classes_.dtype
        assert other.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    "model",
    [
        margrove.HistGradientBoostingRegressor(interaction_cst=[{0, 1}, frozenset({2})]),
        margrove.DecisionTreeRegressor(monotonic_cst={"a": 1}, categorical_features=np.array([1])),
        margrove.DecisionTreeClassifier(class_weight=[{0: 1.0, 1: np.float64(2)}, {0: 1, 1: 1}]),
        margrove.SVC(C=np.float32(0.5), class_weight={"is": 2.0, "no": 1.0}),
        margrove.SVC(kernel=margrove.kernels.RBF(sigma=2.0)),
        margrove.HistGradientBoostingRegressor(loss=GRADIENT_LOSSES["tweedie"]),
        margrove.BaggingRegressor(margrove.AdaBoostRegressor(margrove.SVR(C=7))),
    ],
)
def test_parameters_of_any_kind(model) -> None:
    assert parameters_of(loaded(saved(model))) == parameters_of(model)


def test_many_threads_save_to_one_place(tmp_path) -> None:
    model, path = margrove.LinearSVR().fit(X, NUMBERS), tmp_path / "a"
    threads = [threading.Thread(target=save, args=(model, path)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() == saved(model)
    assert os.listdir(tmp_path) == ["a"]


def test_a_deep_tree() -> None:
    y = 2.0 ** np.arange(900)
    model = margrove.DecisionTreeRegressor().fit(np.arange(900.0)[:, None], y)
    assert model.get_depth() > 400
    assert np.array_equal(loaded(saved(model)).predict(np.arange(900.0)[:, None]), y)


# -- looking at files --


def test_inspecting(tmp_path) -> None:
    path = tmp_path / "a.margrove"
    save(ZOO["SVC with class weights"].fitted(), path)
    found = inspect_file(path)
    assert (found.kind, found.format_version, found.is_fitted) == ("SVC", FORMAT_VERSION, True)
    assert found.classes == ("no", "yes")
    assert found.feature_names is None
    assert found.parameters["C"] == 1.0
    assert "n_jobs" not in found.parameters
    vectors = next(own for own in found.fields if own.name == "support_vectors_")
    assert vectors.content.startswith("float64 (")
    assert vectors.n_bytes % 24 == 0
    assert any("rows of the training data" in remark for remark in found.remarks)
    assert "Note: support vectors are rows of the training data" in str(found)
    with pytest.raises(AttributeError):
        found.kind = "other"  # type: ignore[misc]


def test_inspecting_a_pipeline() -> None:
    found = inspect_file(io.BytesIO(saved(ZOO["pipeline of a table"].fitted())))
    assert found.kind == "Pipeline"
    assert found.feature_names == ("height", "colour", "weight")
    assert found.classes == ("no", "yes")
    assert found.parameters["steps"] == [
        ("columntransformer", "ColumnTransformer"),
        ("linearsvc", "LinearSVC"),
    ]
    assert not found.remarks
    nested = inspect_file(io.BytesIO(saved(ZOO["bagging of machines"].fitted())))
    assert any("rows of the training data" in remark for remark in nested.remarks)


def test_inspecting_what_is_no_model() -> None:
    for kind, values in (("SVC", {}), ("checkpoint", {"parameters": {}, "fitted": {}})):
        with pytest.raises(ModelFileError, match="not a model"):
            inspect_file(io.BytesIO(b"".join(pack(kind, values))))


# -- golden files --


def has_kernel_machine(model: Any) -> bool:
    """Whether the model is a kernel machine, or has one inside."""
    saved_model = pickle.dumps(model)
    return b"margrove.margin.svm" in saved_model or b"margrove.select.machines" in saved_model


def has_machine(model: Any) -> bool:
    """The same for kernel machines, linear ones and perceptrons."""
    return has_kernel_machine(model) or b"margrove.margin" in pickle.dumps(model)


@pytest.mark.parametrize("name", ZOO)
def test_golden_files_of_all_versions_load_and_answer_as_they_did(name) -> None:
    # Trees, forests and boosting answer the same bits on every processor. Other models do not: the
    # order of sums depends on the processor, and so does how BLAS rounds kernel values, which are
    # float32 for float32 rows.
    close = {"rtol": 1e-6} if name.endswith("float32") else {"rtol": 1e-12, "atol": 1e-14}
    for version in range(1, FORMAT_VERSION + 1):
        path = path_of(name, version)
        written_on, expected = golden_answers(path)
        model = load(path)
        found = dict(answers(model, few_rows(ZOO[name])))
        assert list(found) == list(expected)
        is_same_processor = written_on == architecture()
        is_exact = not has_machine(model) or (is_same_processor and not has_kernel_machine(model))
        for method, values in found.items():
            if is_exact or values.dtype.kind != "f":
                assert in_full(values) == in_full(expected[method]), method
            else:
                np.testing.assert_allclose(values, expected[method], **close)


def test_golden_files_are_small_and_all_known() -> None:
    files = [path for path in GOLDEN.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 600_000
    known = {path_of(name, version) for name in ZOO for version in range(1, FORMAT_VERSION + 1)}
    assert {path for path in files if path.suffix == ".margrove"} == known


def test_files_hold_the_kind_under_its_own_name() -> None:
    kind, values = unpack(saved(margrove.SVC()))
    assert kind == "SVC"
    assert list(values) == ["parameters", "fitted"]
