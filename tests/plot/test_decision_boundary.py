"""The picture shows what the model decides: contours, colours, places and counts."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from margrove import (
    SVC,
    SVR,
    KernelPerceptron,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    PolynomialMap,
    kernels,
)
from margrove.datasets import load_iris, make_moons
from margrove.exceptions import InvalidDataError, NotFittedError
from margrove.facts import describe
from margrove.plot import decision_boundary
from margrove.plot.drawing.canvas import class_style, tint

mpl.use("Agg")

IRIS, SPECIES = load_iris(return_X_y=True)
MOONS, SIDES = make_moons(80, noise=0.25, random_state=1, return_X_y=True)
SIDES = np.where(SIDES == 1, "right", "left")
TARGETS = np.sin(2 * MOONS[:, 0]) + MOONS[:, 1]


def drawn(model, X, y=None, *, resolution=40, **settings):
    """The axes of a figure that no window knows of."""
    ax = Figure().subplots()
    assert decision_boundary(model, X, y, ax=ax, resolution=resolution, **settings).ax is ax
    return ax


def parts(ax, gid):
    return [artist for artist in ax.collections if artist.get_gid() == gid]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def along(lines):
    """All points of contour lines."""
    return np.vstack([path.vertices for path in lines.get_paths() if len(path.vertices)])


class Counting:
    """Counts calls of the public methods that an estimator predicts with."""

    def __init__(self, monkeypatch, cls) -> None:
        self.calls: list[str] = []
        for name in ("predict", "decision_function"):
            if hasattr(cls, name):
                monkeypatch.setattr(cls, name, self._counted(name, getattr(cls, name)))

    def _counted(self, name, method):
        def call(model, X):
            self.calls.append(name)
            return method(model, X)

        return call


# -- two classes ---------------------------------------------------------------------------------


def test_boundary_and_margins_are_contours_of_f() -> None:
    model = SVC(C=2.0).fit(MOONS, SIDES)
    ax = drawn(model, MOONS, SIDES, resolution=150)
    (boundary,), (margins,) = parts(ax, "boundary"), parts(ax, "margins")
    assert boundary.levels.tolist() == [0.0]
    assert margins.levels.tolist() == [-1.0, 1.0]
    assert np.abs(model.decision_function(along(boundary))).max() < 0.02
    off = np.abs(model.decision_function(along(margins))) - 1.0
    assert np.abs(off).max() < 0.02
    assert {style[1] is not None for style in margins.get_linestyle()} == {True}  # dashed
    assert {style[1] is None for style in boundary.get_linestyle()} == {True}


def test_regions_have_the_pale_colours_of_the_classes() -> None:
    model = SVC(kernel="linear").fit([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]], list("aabb"))
    ax = drawn(model, [[0.0, 0.0], [2.0, 1.0]], ["a", "b"])
    (regions,) = parts(ax, "regions")
    assert np.allclose(regions.get_facecolor(), [to_rgba(tint(0)), to_rgba(tint(1))])
    low, high = (path.get_extents() for path in regions.get_paths())
    assert low.x1 == pytest.approx(1.0, abs=1e-6)
    assert high.x0 == pytest.approx(1.0, abs=1e-6)


def test_data_differ_by_colour_and_by_marker() -> None:
    ax = drawn(SVC().fit(MOONS, SIDES), MOONS, SIDES)
    first, second = parts(ax, "data")
    assert np.array_equal(first.get_offsets(), MOONS[SIDES == "left"])
    assert np.array_equal(second.get_offsets(), MOONS[SIDES == "right"])
    assert np.allclose(first.get_facecolor()[0], to_rgba(class_style(0)["color"]))
    shapes = [part.get_paths()[0].vertices for part in (first, second)]
    assert shapes[0].shape != shapes[1].shape


def test_the_first_classes_all_look_different() -> None:
    looks = {tuple(class_style(code).values()) for code in range(56)}
    assert len(looks) == 56


def test_support_vectors_are_marked_by_kind_and_counted() -> None:
    model = SVC(C=2.0).fit(MOONS, SIDES)
    ax = drawn(model, MOONS, SIDES)
    kinds = [kind for kind in describe(model).kinds if kind.count]
    assert len(kinds) == 3
    for part, kind in zip(parts(ax, "support"), kinds, strict=True):
        places = {tuple(place) for place in part.get_offsets()}
        assert places == {tuple(row) for row in MOONS[kind.rows]}
    assert texts(ax) == [
        "left",
        "right",
        "boundary, f = 0",
        "margins, f = ±1",
        *(f"{kind.name} ({kind.count})" for kind in kinds),
    ]


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_a_linear_machine_shows_its_margins_and_support_vectors(multi_class) -> None:
    model = LinearSVC(loss="hinge", C=2.0, multi_class=multi_class).fit(MOONS, SIDES)
    ax = drawn(model, MOONS, SIDES)
    (boundary,), (margins,) = parts(ax, "boundary"), parts(ax, "margins")
    assert np.abs(model.decision_function(along(boundary))).max() < 1e-9
    off = np.abs(model.decision_function(along(margins))) - 1.0
    assert np.abs(off).max() < 1e-9
    marked = {tuple(place) for part in parts(ax, "support") for place in part.get_offsets()}
    assert marked == {tuple(row) for row in MOONS[model.certificate_.support]}
    assert 0 < len(marked) < len(MOONS)


def test_a_linear_machine_is_told_its_support_vectors_by_the_data_of_its_fit_alone() -> None:
    fitted = LinearSVC(loss="hinge").fit(MOONS, SIDES)
    model = pickle.loads(pickle.dumps(fitted))
    again = drawn(model, MOONS, SIDES)
    marked = {tuple(place) for part in parts(again, "support") for place in part.get_offsets()}
    near = MOONS[np.abs(fitted.decision_function(MOONS)) < 0.99]
    assert {tuple(row) for row in near} <= marked
    assert parts(again, "margins")
    other = drawn(model, MOONS + 1.0, SIDES)
    assert not parts(other, "support")
    assert parts(other, "margins")


def test_a_linear_regression_is_a_map_of_values() -> None:
    ax = drawn(LinearSVR(epsilon=0.1).fit(MOONS, TARGETS), MOONS, TARGETS)
    assert parts(ax, "regions")
    assert any(text.startswith("outside the tube") for text in texts(ax))


def test_parts_can_be_left_out() -> None:
    model = SVC().fit(MOONS, SIDES)
    ax = drawn(model, MOONS, SIDES, margins=False, support=False, legend=False)
    assert not parts(ax, "margins")
    assert not parts(ax, "support")
    assert ax.get_legend() is None
    assert parts(ax, "boundary")
    assert not parts(drawn(model, MOONS, margins=False), "margins")


def test_without_y_regions_are_explained_by_patches() -> None:
    ax = drawn(SVC().fit(MOONS, SIDES), MOONS, support=False, margins=False)
    assert texts(ax) == ["left", "right", "boundary, f = 0"]
    (data,) = parts(ax, "data")
    assert len(data.get_offsets()) == len(MOONS)


def test_levels_that_f_never_reaches_are_not_drawn() -> None:
    model = SVC(kernel="linear", C=1e-3).fit(MOONS, SIDES)  # |f| < 1 everywhere
    ax = drawn(model, MOONS, SIDES)
    assert not parts(ax, "margins")
    assert not any("margins" in text for text in texts(ax))


def test_limits_hold_all_data() -> None:
    ax = drawn(SVC().fit(MOONS, SIDES), MOONS, SIDES)
    for (low, high), column in zip((ax.get_xlim(), ax.get_ylim()), MOONS.T, strict=True):
        assert low < column.min()
        assert high > column.max()


def test_a_constant_feature_is_given_some_width() -> None:
    X = np.column_stack([MOONS[:, 0], np.full(len(MOONS), 3.0)])
    ax = drawn(SVC().fit(X, SIDES), X, SIDES)
    assert ax.get_ylim()[0] < 3.0 < ax.get_ylim()[1]


def test_other_rows_than_those_of_fit() -> None:
    """Support vectors are where they were in training; without y or with other rows."""
    model = SVC().fit(MOONS, SIDES)
    ax = drawn(model, MOONS[:5] + 10.0, SIDES[:5])
    marked = np.vstack([part.get_offsets() for part in parts(ax, "support")])
    assert {tuple(p) for p in marked} == {tuple(v) for v in model.support_vectors_}
    assert ax.get_xlim()[0] < marked[:, 0].min()


def test_a_pickled_model_is_told_its_kinds_by_the_data() -> None:
    model = pickle.loads(pickle.dumps(SVC(C=2.0).fit(MOONS, SIDES)))
    told = texts(drawn(model, MOONS, SIDES))
    assert any(text.startswith("inside the margin") for text in told)
    untold = f"support vectors ({len(model.support_)})"
    assert untold in texts(drawn(model, MOONS))
    assert untold in texts(drawn(model, MOONS + 1.0, SIDES))


def test_weights_unknown_to_a_pickled_model_spoil_no_kinds() -> None:
    weight = np.where(np.arange(len(MOONS)) % 2, 0.1, 1.0)
    model = SVC(C=5.0).fit(MOONS, SIDES, sample_weight=weight)
    assert any(text.startswith("inside the margin") for text in texts(drawn(model, MOONS, SIDES)))
    forgetful = pickle.loads(pickle.dumps(model))
    assert f"support vectors ({len(model.support_)})" in texts(drawn(forgetful, MOONS, SIDES))


# -- other models --------------------------------------------------------------------------------


def test_several_classes() -> None:
    X = IRIS[:, 2:]
    model = SVC().fit(X, SPECIES)
    ax = drawn(model, X, SPECIES, resolution=30)
    (regions,) = parts(ax, "regions")
    x, y = np.linspace(*ax.get_xlim(), 30), np.linspace(*ax.get_ylim(), 30)
    grid = np.column_stack([np.tile(x, 30), np.repeat(y, 30)])
    assert np.array_equal(regions.get_array().ravel(), model.predict(grid))
    assert len(parts(ax, "boundary")) == 2
    assert not parts(ax, "margins")
    assert len(parts(ax, "data")) == 3
    assert texts(ax)[:4] == ["0", "1", "2", "boundaries"]
    kinds = [kind for kind in describe(model).kinds if kind.count]
    assert texts(ax)[4:] == [f"{kind.name} ({kind.count})" for kind in kinds]


@pytest.mark.parametrize("model", [SVR(C=10.0, epsilon=0.3), NuSVR(C=10.0, nu=0.2)])
def test_regression(model) -> None:
    figure = Figure()
    ax = figure.subplots()
    decision_boundary(model.fit(MOONS, TARGETS), MOONS, TARGETS, ax=ax, resolution=20)
    (regions,), (data,) = parts(ax, "regions"), parts(ax, "data")
    assert regions.levels[0] <= TARGETS.min()
    assert regions.levels[-1] >= TARGETS.max()
    assert np.array_equal(data.get_array(), TARGETS)
    assert data.norm is regions.norm  # one scale of colours
    assert [axes.get_ylabel() for axes in figure.axes[1:]] == ["prediction"]
    kinds = [kind for kind in describe(model).kinds if kind.count]
    assert texts(ax) == [f"{kind.name} ({kind.count})" for kind in kinds]
    assert not parts(ax, "boundary")


def test_a_constant_regression() -> None:
    model = SVR().fit(MOONS, np.ones(len(MOONS)))
    (regions,) = parts(drawn(model, MOONS), "regions")
    assert regions.levels[0] < 1.0 < regions.levels[-1]


def test_one_class() -> None:
    model = OneClassSVM(nu=0.2).fit(MOONS)
    ax = drawn(model, MOONS, resolution=100)
    (boundary,) = parts(ax, "boundary")
    assert np.abs(model.decision_function(along(boundary))).max() < 0.05
    assert not parts(ax, "margins")
    assert texts(ax)[:3] == ["outside", "inside", "boundary, f = 0"]
    assert any(text.startswith("outside the region (") for text in texts(ax))
    coloured = drawn(model, MOONS, SIDES)
    assert texts(coloured)[:2] == ["outside", "inside"]
    assert texts(coloured)[2:4] == ["left", "right"]


def test_perceptron_margins_go_through_the_nearest_rows() -> None:
    X, y = IRIS[:100, [0, 2]], SPECIES[:100]
    model = Perceptron().fit(X, y)
    assert model.separated_
    (margins,) = parts(drawn(model, X, y), "margins")
    level = np.abs(model.decision_function(X)).min()
    assert margins.levels == pytest.approx([-level, level])
    assert not parts(drawn(model, X, y), "support")


def test_kernel_perceptron() -> None:
    model = KernelPerceptron(gamma=2.0).fit(MOONS, SIDES)
    ax = drawn(model, MOONS, SIDES)
    assert f"support vectors ({len(model.support_)})" in texts(ax)


@pytest.mark.parametrize("model", [NuSVC(nu=0.2), DecisionTreeClassifier(), LogisticRegression()])
@pytest.mark.parametrize("y", [SIDES, (SIDES == "left"), (SIDES == "left") * 2.0])
def test_any_classifier_and_any_labels(model, y) -> None:
    ax = drawn(model.fit(MOONS, y), MOONS, y)
    assert len(parts(ax, "data")) == 2
    assert parts(ax, "boundary")
    assert texts(ax)[:2] == [str(label) for label in np.unique(y).tolist()]


def test_an_heir_is_drawn_like_its_parent() -> None:
    class Own(SVC):
        """A subclass."""

    ax = drawn(Own().fit(MOONS, SIDES), MOONS, SIDES)
    assert parts(ax, "margins")
    marked = sum(len(part.get_offsets()) for part in parts(ax, "support"))
    assert marked == len(SVC().fit(MOONS, SIDES).support_)


class Always(ClassifierMixin, BaseEstimator):
    """Predicts one class of three."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[1])


def test_a_class_that_is_never_predicted() -> None:
    ax = drawn(Always().fit(IRIS, SPECIES), IRIS, SPECIES)
    assert not parts(ax, "boundary")


def test_features_that_must_not_be_negative() -> None:
    X = np.abs(MOONS)
    ax = drawn(SVC(kernel="chi2").fit(X, SIDES), X, SIDES)
    assert ax.get_xlim()[0] >= 0.0


@pytest.mark.parametrize(
    ("model", "y", "method"),
    [
        (SVC(), SIDES, "decision_function"),
        (SVC(), np.arange(len(MOONS)) % 3, "predict"),
        (SVR(), TARGETS, "predict"),
        (OneClassSVM(), None, "decision_function"),
        (Perceptron(max_iter=5, tol=None), SIDES, "decision_function"),
    ],
)
def test_the_grid_is_predicted_once(monkeypatch, model, y, method) -> None:
    model.fit(MOONS, y)
    counted = Counting(monkeypatch, type(model))
    drawn(model, MOONS, y)
    assert counted.calls == [method]


# -- which plane ---------------------------------------------------------------------------------


def test_more_features_are_fixed_at_their_medians() -> None:
    model = SVC(kernel="linear").fit(IRIS[:100], SPECIES[:100])
    ax = drawn(model, IRIS[:100], SPECIES[:100], features=(2, 0))
    medians = np.median(IRIS[:100], axis=0)
    (boundary,) = parts(ax, "boundary")
    rows = np.tile(medians, (len(along(boundary)), 1))
    rows[:, [2, 0]] = along(boundary)
    assert model.decision_function(rows) == pytest.approx(0.0, abs=1e-6)
    assert ax.get_title() == f"feature 1 = {medians[1]:.4g}, feature 3 = {medians[3]:.4g} (medians)"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 2", "feature 0")
    first, _ = parts(ax, "data")
    assert np.array_equal(first.get_offsets(), IRIS[:50][:, [2, 0]])


@pytest.mark.parametrize(
    ("at", "row", "said"),
    [
        (7, IRIS[7], "(as in row 7)"),
        (-1, IRIS[99], "(as in row 99)"),
        (np.int64(3), IRIS[3], "(as in row 3)"),
        ([5.0, 3.0, 2.0, 0.5], [5.0, 3.0, 2.0, 0.5], "(as given)"),
    ],
)
def test_other_features_can_be_fixed(at, row, said) -> None:
    model = SVC(kernel="linear").fit(IRIS[:100], SPECIES[:100])
    ax = drawn(model, IRIS[:100], features=(0, 2), at=at)
    (boundary,) = parts(ax, "boundary")
    rows = np.tile(row, (len(along(boundary)), 1))
    rows[:, [0, 2]] = along(boundary)
    assert model.decision_function(rows) == pytest.approx(0.0, abs=1e-6)
    assert ax.get_title().endswith(said)


def test_many_other_features_are_only_counted() -> None:
    X = np.column_stack([MOONS, np.random.default_rng(0).normal(size=(len(MOONS), 6))])
    model = SVC().fit(X, SIDES)
    assert drawn(model, X).get_title() == "the other 6 features at their medians"
    assert drawn(model, X, at=4).get_title() == "the other 6 features as in row 4"
    assert drawn(model, X, at=X[0]).get_title() == "the other 6 features fixed as given"


def test_two_features_need_no_title() -> None:
    assert drawn(SVC().fit(MOONS, SIDES), MOONS, SIDES).get_title() == ""


# -- what X may be -------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_dataframes(library) -> None:
    frame, y = load_iris(return_X_y=True, as_frame=library)
    names = list(frame.columns)
    model = SVC().fit(frame, y)
    ax = drawn(model, frame, y, features=(names[2], names[3]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == (names[2], names[3])
    assert ax.get_title().startswith(f"{names[0]} = ")
    mixed = drawn(model, frame.to_numpy(), np.asarray(y), features=(2, names[3]))
    assert np.array_equal(
        parts(mixed, "regions")[0].get_array(), parts(ax, "regions")[0].get_array()
    )


def test_a_dataframe_for_a_model_without_names() -> None:
    frame, y = load_iris(return_X_y=True, as_frame="pandas")
    ax = drawn(SVC().fit(frame.to_numpy(), y), frame, y, features=tuple(frame.columns[:2]))
    assert ax.get_xlabel() == frame.columns[0]


def test_columns_in_another_order() -> None:
    frame, y = load_iris(return_X_y=True, as_frame="pandas")
    with pytest.raises(InvalidDataError, match="same columns in the same order"):
        drawn(SVC().fit(frame, y), frame[frame.columns[::-1]], y)


def test_sparse_data_stay_sparse(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 20_000), density=1e-3, format="lil", rng=rng)
    X[:, 3], X[:, 7] = rng.normal(size=60), rng.normal(size=60)
    X = X.tocsr()
    y = (X[:, [3]].toarray().ravel() > 0).astype(int)
    model = SVC(kernel="linear").fit(X, y)
    seen = []
    decide = SVC.decision_function
    monkeypatch.setattr(
        SVC, "decision_function", lambda self, rows: seen.append(rows) or decide(self, rows)
    )
    ax = drawn(model, X, y, features=(3, 7), at=5, resolution=30)
    (rows,) = seen
    assert sp.issparse(rows)
    assert rows.shape == (900, 20_000)
    expected = X[[5]].toarray()[0]
    got = rows[[123]].toarray()[0]
    expected[[3, 7]] = got[[3, 7]]
    assert np.array_equal(got, expected)
    assert ax.get_title() == "the other 19998 features as in row 5"
    assert np.array_equal(parts(ax, "data")[1].get_offsets(), X[:, [3, 7]].toarray()[y == 1])
    assert (
        drawn(model, X, y, features=(3, 7), resolution=5).get_title().endswith("at their medians")
    )


def test_sparse_and_dense_pictures_agree() -> None:
    model = SVC().fit(sp.csr_array(IRIS), SPECIES)
    ax, same = drawn(model, sp.csr_array(IRIS), SPECIES), drawn(model, IRIS, SPECIES)
    assert np.array_equal(
        parts(ax, "regions")[0].get_array(), parts(same, "regions")[0].get_array()
    )


def test_lists() -> None:
    X = [[0, 0], [0, 2], [2, 0], [2, 2]]
    ax = drawn(SVC(kernel="linear", C=10).fit(X, list("aabb")), X, list("aabb"))
    assert texts(ax)[:2] == ["a", "b"]


# -- what cannot be drawn ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": (0, 4)}, "features has 4, but the columns are numbered from 0 to 3"),
        ({"features": (-1, 0)}, "features has -1"),
        ({"features": (0, "width")}, "fitted to columns without names"),
        ({"features": (1, 1)}, "two different columns"),
        ({"features": (0, 1, 2)}, r"two columns.*Got \(0, 1, 2\)"),
        ({"features": "01"}, "two columns"),
        ({"features": 3}, "two columns.*Got 3"),
        ({"features": (0, 1.5)}, "numbers or names of columns. Got 1.5"),
        ({"features": (True, 0)}, "Got True"),
        ({"at": 150}, "at=150 is not a row of X, which has 150. Use 0 to 149"),
        ({"at": [1.0, 2.0]}, "array of 4 finite values"),
        ({"at": [1.0, 2.0, np.nan, 0.0]}, "array of 4 finite values"),
        ({"at": "median"}, "or None for the medians. Got 'median'"),
        ({"resolution": 1}, "at least 2. Got 1"),
        ({"resolution": 20.0}, "at least 2. Got 20.0"),
        ({"resolution": True}, "at least 2. Got True"),
    ],
)
def test_errors_say_what_was_got_and_the_way_out(settings, message) -> None:
    model = SVC().fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match=message):
        drawn(model, IRIS, SPECIES, **settings)


def test_an_unknown_name_lists_the_columns() -> None:
    frame, y = load_iris(return_X_y=True, as_frame="pandas")
    message = f"'height', but the columns are {frame.columns[0]!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        drawn(SVC().fit(frame, y), frame, features=("height", 0))


def test_one_feature() -> None:
    with pytest.raises(InvalidDataError, match=r"the model has 1\. Draw its curve"):
        drawn(SVC().fit(MOONS[:, :1], SIDES), MOONS[:, :1], SIDES)


def test_a_precomputed_kernel() -> None:
    K = kernels.RBF()(MOONS)
    with pytest.raises(InvalidDataError, match="Gram matrix without features"):
        drawn(SVC(kernel="precomputed").fit(K, SIDES), K, SIDES)


def test_wrong_x_and_y() -> None:
    model = SVC().fit(IRIS, SPECIES)
    with pytest.raises(InvalidDataError, match="X has 2 features, but SVC was fitted to 4"):
        drawn(model, IRIS[:, :2])
    with pytest.raises(InvalidDataError, match="one label for each of the 150 rows"):
        drawn(model, IRIS, SPECIES[:10])
    with pytest.raises(InvalidDataError, match="y has 'x' at row 0, which is not among"):
        drawn(model, IRIS, ["x"] * 150)
    with pytest.raises(NotFittedError):
        drawn(SVC(), IRIS)


@pytest.mark.parametrize("model", [PolynomialMap(), KMeans(2, n_init=1)])
def test_models_that_decide_nothing(model) -> None:
    with pytest.raises(TypeError, match=r"and outlier detectors\. Got"):
        drawn(model.fit(MOONS), MOONS)


def test_axes_of_another_kind() -> None:
    model = SVC().fit(MOONS, SIDES)
    with pytest.raises(TypeError, match=r"Got ndarray; of several axes, pass one"):
        decision_boundary(model, MOONS, ax=Figure().subplots(1, 2))


def test_without_axes_a_figure_is_made() -> None:
    import matplotlib.pyplot as plt

    ax = decision_boundary(SVC().fit(MOONS, SIDES), MOONS, SIDES, resolution=10)
    try:
        assert ax.figure is plt.gcf()
    finally:
        plt.close(ax.figure)


def test_without_matplotlib(monkeypatch) -> None:
    model = SVC().fit(MOONS, SIDES)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(ImportError, match=r'pip install "margrove\[plot\]"'):
        decision_boundary(model, MOONS, SIDES)


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, margrove.plot; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
