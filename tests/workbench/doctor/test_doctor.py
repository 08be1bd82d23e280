"""Each finding is made for a table that has the problem, and not for a similar one."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import margrove
from margrove._data import code_table
from margrove.exceptions import InvalidDataError
from margrove.workbench.doctor.checks import labels as label_checks
from margrove.workbench.doctor.checks.column_copies import copies_of, relabellings_of
from margrove.workbench.doctor.checks.leaks import how_column_tells_class, how_column_tells_number
from margrove.workbench.doctor.checks.rows import ceiling_of, groups_of_rows
from margrove.workbench.doctor.column_figures import figures_of
from margrove.workbench.doctor.diagnosis import doctor
from margrove.workbench.doctor.examined_target import examined_target
from margrove.workbench.doctor.findings import KINDS, SEVERITIES, Finding, as_options, named, share

N = 200


def table(**columns):
    """A table of four columns without problems, with given columns added."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.standard_normal(N) for j in range(4)})
    for name, values in columns.items():
        frame[name] = values
    return frame


def classes(n_classes=2):
    return np.random.default_rng(1).permutation(np.arange(N) % n_classes)


def numbers():
    return np.random.default_rng(2).standard_normal(N)


def kinds_of(X, y=None, estimator=None, **settings):
    return {found.kind for found in doctor(X, y, estimator, estimate=False, **settings).findings}


def one(kind, X, y=None, estimator=None, **settings):
    """The only finding of a kind."""
    (found,) = doctor(X, y, estimator, estimate=False, **settings).of_kind(kind)
    return found


def labels(n, seed=3):
    return np.random.default_rng(seed).choice([f"l{k}" for k in range(n)], N)


def with_gaps(values, n_gaps, seed=4):
    out = np.array(values, dtype=float)
    out[np.random.default_rng(seed).choice(len(out), n_gaps, replace=False)] = np.nan
    return out


@pytest.mark.parametrize("y", [None, classes(), classes(3), numbers()], ids=str)
def test_a_healthy_table_has_no_findings(y) -> None:
    found = doctor(table(), y, estimate=False)
    assert found.findings == ()
    assert found.healthy
    assert found.verdict == "nothing found"
    assert found.estimates == ()


SPIKE = np.arange(N) == 7
SAME_BUT_FEW = np.where(np.arange(N) < 30, 1.0, 0.0)

TRIGGERS = {
    "duplicated_names": (
        (pd.DataFrame(table().to_numpy(), columns=["a", "b", "b", "c"]), classes()),
        (pd.DataFrame(table().to_numpy(), columns=["a", "b", "B", "c"]), classes()),
    ),
    "empty_column": ((table(z=np.nan), classes()), (table(z=with_gaps(numbers(), 99)), classes())),
    "constant_column": ((table(z=3.0), classes()), (table(z=3.0 + SAME_BUT_FEW), classes())),
    "nearly_constant_column": (
        (table(z=SPIKE * 1.0), classes()),
        (table(z=SAME_BUT_FEW), classes()),
    ),
    "duplicated_columns": (
        (table(z=table()["x1"]), classes()),
        (table(z=table()["x1"].where(~SPIKE, 0.5)), classes()),
    ),
    "equivalent_columns": (
        (table(z=32.0 - 1.8 * table()["x1"]), classes()),
        (table(z=(32.0 - 1.8 * table()["x1"]).where(~SPIKE, 0.5)), classes()),
    ),
    "id_column": (
        (table(z=np.arange(N)), classes()),
        (table(z=np.arange(N) // 2 * 3 % 101), classes()),
    ),
    "unscaled_columns": (
        (table(z=numbers() * 300), classes()),
        (table(z=numbers() * 3), classes()),
    ),
    "missing_values": ((table(z=with_gaps(numbers(), 1)), classes()), (table(), classes())),
    "telling_gaps": (
        (table(z=np.where((classes() == 1) & (np.arange(N) % 3 > 0), np.nan, 1.5)), classes()),
        (table(z=with_gaps(numbers(), 60)), classes()),
    ),
    "infinite_values": (
        (table(z=np.where(SPIKE, -np.inf, numbers())), classes()),
        (table(z=np.where(SPIKE, -4.0, numbers())), classes()),
    ),
    "huge_values": (
        (table(z=numbers() * 1e200), classes()),
        (table(z=numbers() * 1e20), classes()),
    ),
    "many_categories": ((table(z=labels(90)), classes()), (table(z=labels(20)), classes())),
    "rare_categories": (
        (table(z=[f"u{min(i, 9)}" for i in range(N)]), classes()),
        (table(z=[f"u{i % 10}" for i in range(N)]), classes()),
    ),
    "similar_categories": (
        (table(z=["Male", "male "] * 100), classes()),
        (table(z=["male", "female"] * 100), classes()),
    ),
    "gaps_as_text": (
        (table(z=["a", "b", "?", "c"] * 50), classes()),
        (table(z=["a", "b", "!", "c"] * 50), classes()),
    ),
    "numbers_as_text": (
        (table(z=["1.5", "-2", "3e4", "7"] * 50), classes()),
        (table(z=["1.5", "-2", "3e4", "7 km"] * 50), classes()),
    ),
    "dates": (
        (table(z=["2020-01-31", "2021-2-1"] * 100), classes()),
        (table(z=["2020-01-31", "soon"] * 100), classes()),
    ),
    "mixed_types": (
        (table(z=np.array([1, "a"] * 100, dtype=object)), classes()),
        (table(z=np.array([1, 2.5] * 100, dtype=object)), classes()),
    ),
    "unusable_column": (
        (table(z=[[1, 2]] * N), classes()),
        (table(z=["[1, 2]", "[1, 3]"] * 100), classes()),
    ),
    "few_rows": ((table()[:15], classes()[:15]), (table()[:30], classes()[:30])),
    "no_data": ((table()[:0], []), (table()[:30], classes()[:30])),
    "duplicated_rows": (
        (pd.concat([table()[:190], table()[:10]]), np.r_[classes()[:190], classes()[:10]]),
        (pd.concat([table()[:199], table()[:1]]), np.r_[classes()[:199], classes()[:1]]),
    ),
    "contradicting_rows": (
        (pd.concat([table()[:190], table()[:10]]), np.r_[classes()[:190], 1 - classes()[:10]]),
        (pd.concat([table()[:190], 2 * table()[:10]]), np.r_[classes()[:190], 1 - classes()[:10]]),
    ),
    "empty_rows": (
        (table().mask(np.repeat(SPIKE[:, None], 4, axis=1)), classes()),
        (table().mask(np.repeat(SPIKE[:, None], 4, axis=1)).assign(x3=1.0 + numbers()), classes()),
    ),
    "leak": (
        (table(z=classes() * 2.0 + np.abs(numbers()) / 5), classes()),
        (table(z=classes() * 1.0 + np.abs(numbers())), classes()),
    ),
    "missing_targets": (
        (table(), with_gaps(classes(), 3)),
        (table(), classes().astype(float)),
    ),
    "unusable_target": (
        (table(), np.array([1, "a"] * 100, dtype=object)),
        (table(), np.array(["1", "a"] * 100, dtype=object)),
    ),
    "single_class": ((table(), ["yes"] * N), (table(), ["yes", "no"] * 100)),
    "constant_target": ((table(), np.full(N, 1.5)), (table(), 1.5 + 0.1 * numbers())),
    "imbalanced_classes": (
        (table(), np.where(np.arange(N) < 12, "a", "b")),
        (table(), np.where(np.arange(N) < 50, "a", "b")),
    ),
    "small_classes": (
        (table(), np.where(np.arange(N) < 4, "a", "b")),
        (table(), np.where(np.arange(N) < 5, "a", "b")),
    ),
    "many_classes": (
        (table(), [f"c{i % 25}" for i in range(N)]),
        (table(), [f"c{i % 19}" for i in range(N)]),
    ),
    "heavy_tails": ((table(), np.exp(3 * numbers())), (table(), np.exp(0.3 * numbers()))),
    "few_target_values": (
        (table(), np.round(numbers()) / 2 + 0.25),
        (table(), np.round(numbers(), 1)),
    ),
    "text_columns": (
        (table(z=labels(3)), classes(), margrove.SVC()),
        (table(z=labels(3)), classes(), margrove.RandomForestClassifier()),
    ),
    "preparation_fails": (
        (table(z=labels(3)), classes(), make_pipeline(StandardScaler(), margrove.SVC())),
        (table(), classes(), make_pipeline(StandardScaler(), margrove.SVC())),
    ),
}


PYTHON = re.compile(
    r"sklearn|pandas|polars|Scaler|Encoder|Imputer|GroupKFold|Transformed|task=|scoring=|astype|"
    r"str\.|na_values|\w='"
)


@pytest.mark.parametrize("kind", TRIGGERS)
def test_commands_are_not_told_of_python(kind) -> None:
    found = doctor(*TRIGGERS[kind][0], estimate=False).for_commands()
    for finding in found.of_kind(kind):
        assert not PYTHON.search(finding.way_out), finding.way_out
        assert finding.way_out.endswith((".", ")"))
    assert [SEVERITIES.index(finding.severity) for finding in found.findings] == sorted(
        SEVERITIES.index(finding.severity) for finding in found.findings
    )


def test_what_commands_do_by_themselves_is_a_notice_to_them() -> None:
    diagnosis = doctor(table(constant=1.0), classes(), estimate=False)
    assert diagnosis.of_kind("constant_column")[0].severity == "warning"
    (finding,) = diagnosis.for_commands().of_kind("constant_column")
    assert finding.severity == "notice"
    assert "automatically" in finding.way_out
    assert diagnosis.for_commands().healthy
    assert not diagnosis.healthy


def test_names_become_options_that_can_be_copied() -> None:
    assert as_options("--ignore", ["a b", "it's"]) == "--ignore 'a b' --ignore 'it'\"'\"'s'"
    assert as_options("--ignore", list("abcd")) == "--ignore a --ignore b --ignore c ..."
    assert as_options("--type", ["\x1b[31m"], "=number") == "--type COLUMN=number"
    assert as_options("--type", ["x" * 100], "=number") == "--type COLUMN=number"


def test_how_many_labels_the_commands_tell_apart() -> None:
    assert margrove.TablePreparation().max_categories == label_checks._KEPT_LABELS


@pytest.mark.parametrize(("n_rare", "is_told"), [(24, True), (40, True), (42, False)])
def test_accuracy_says_little_where_one_class_has_most_rows(n_rare, is_told) -> None:
    target = np.where(np.arange(N) < n_rare, "rare", "usual")
    found = doctor(table(), target, estimate=False).of_kind("imbalanced_classes")
    assert bool(found) == is_told
    if found:
        assert found[0].severity == "notice"
        assert f"right in {100 * (N - n_rare) / N:.0f} % of the rows" in found[0].message
        assert "balanced_accuracy" in found[0].way_out
        assert "roc_auc" in found[0].way_out


def test_every_kind_has_its_case() -> None:
    assert set(TRIGGERS) == set(KINDS)


@pytest.mark.parametrize("kind", TRIGGERS)
def test_what_should_be_found_is_found(kind) -> None:
    arguments, similar = TRIGGERS[kind]
    diagnosis = doctor(*arguments, estimate=False)
    assert kind in {found.kind for found in diagnosis.findings}
    assert kind not in kinds_of(*similar)
    for found in diagnosis.findings:
        assert found.message.endswith((".", "'"))
        assert found.way_out.endswith((".", ")"))
        assert "nan" not in str(found).lower().replace("nan payload", "")
        assert found.message in " ".join(str(diagnosis).split())


def test_severities_come_in_order() -> None:
    X = table(z=3.0, copy=table()["x1"], many=1000 * numbers(), leak=classes())
    found = doctor(X, classes(), estimate=False)
    order = [
        ("critical", "warning", "notice").index(finding.severity) for finding in found.findings
    ]
    assert order == sorted(order)
    assert not found.healthy
    assert len(set(order)) == 3
    assert repr(found) == f"<Diagnosis of 200 x 8: {found.verdict}>"


def test_the_frame_and_json_hold_the_findings() -> None:
    found = doctor(table(z=3.0), classes(), estimate=False)
    frame = found.frame()
    assert frame["kind"].tolist() == ["constant_column"]
    assert frame["columns"].tolist() == [("z",)]
    document = json.loads(json.dumps(found.as_dict()))
    assert document["findings"][0]["columns"] == ["z"]
    assert document["task"] == "classification"
    assert doctor(table(), estimate=False).frame().empty


# -- what a finding says --


def test_names_and_shares_for_sentences() -> None:
    assert named(["a"]) == "Column 'a'"
    assert named([3, 5]) == "Columns 3 and 5"
    assert named(["a", "b", "c", "d", "e"]) == "Columns 'a', 'b', 'c' and 2 others"
    assert named(["a\x1b[31m"]) == "Column 'a\\x1b[31m'"
    assert len(named(["x" * 1000])) < 60
    assert share(1, 3) == "33 %"
    assert share(1, 10_000) == "0.01 %"
    assert share(9_999, 10_000) == "99.99 %"
    assert share(1, 10**9) == "less than 0.001 %"
    assert share(0, 5) == "0 %"
    assert share(0, 0) == "0 %"


def test_kinds_and_severities_are_closed() -> None:
    with pytest.raises(ValueError, match="no finding of kind 'nonsense'"):
        Finding("nonsense", "notice", "", "")
    with pytest.raises(ValueError, match="severity='bad'"):
        Finding("leak", "bad", "", "")


def test_the_ceiling_on_accuracy() -> None:
    """Groups of 3 (2 + 1) and 2 (1 + 1) and 1 rows: at best 2 + 1 + 1 of 6 right."""
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [2.0]])
    target = examined_target(["a", "a", "b", "a", "b", "a"], 6, None)
    ceiling = ceiling_of(groups_of_rows(code_table(X)), target)
    assert ceiling.score == pytest.approx(4 / 6)
    assert ceiling.rows.tolist() == [0, 1, 2, 3, 4]


def test_the_ceiling_on_explained_variance() -> None:
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    y = np.array([0.5, 1.5, 7.0, 7.0])
    ceiling = ceiling_of(groups_of_rows(code_table(X)), examined_target(y, 4, "regression"))
    assert ceiling.score == pytest.approx(1 - 0.5 / np.sum((y - 4.0) ** 2))
    assert ceiling.rows.tolist() == [0, 1]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_groups_of_rows_are_those_of_equal_content(as_sparse) -> None:
    X = np.random.default_rng(0).integers(0, 3, (200, 3)).astype(float)
    X[0, 0], X[1, 0] = 0.0, -0.0
    given = sp.csr_matrix(X) if as_sparse else X
    groups = groups_of_rows(code_table(given))
    expected = [tuple(row + 0.0) for row in X]
    for i in range(0, 200, 7):
        same = [expected[k] == expected[i] for k in range(200)]
        assert np.array_equal(groups == groups[i], same)


def test_rows_keep_the_numbers_they_were_given() -> None:
    X = np.array(table())
    X[[5, 9], :] = np.nan
    assert one("empty_rows", X, classes()).rows == (5, 9)


# -- figures of columns --


@pytest.mark.parametrize("as_sparse", [False, True])
def test_figures_are_those_of_a_loop(as_sparse) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (60, 12)).astype(float) * rng.integers(0, 2, (60, 12))
    X[:, 3] = rng.random(60)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[rng.random(X.shape) < 0.03] = np.inf
    X[:, 4], X[:, 5], X[:, 6] = np.nan, 0.0, 1e300
    figures = figures_of(code_table(sp.csr_matrix(X) if as_sparse else X))
    for j in range(X.shape[1]):
        finite = X[:, j][np.isfinite(X[:, j])]
        assert figures.missing[j] == np.isnan(X[:, j]).sum()
        assert figures.infinite[j] == np.isinf(X[:, j]).sum()
        counts = np.unique(finite, return_counts=True)[1]
        assert figures.distinct[j] == len(counts)
        assert figures.commonest[j] == (counts.max() if len(finite) else 0)
        if len(finite):
            assert (figures.low[j], figures.high[j]) == (finite.min(), finite.max())
            assert figures.mean[j] == pytest.approx(finite.mean(), rel=1e-12, abs=1e-12)
            spread = 0.0 if j == 6 else finite.std()
            assert figures.std[j] == pytest.approx(spread, abs=1e-12)
            assert figures.is_whole[j] == bool(np.all(finite == np.floor(finite)))
        else:
            assert np.isnan(figures.low[j])


# -- copies of columns --


@pytest.mark.parametrize("as_sparse", [False, True])
def test_copies_are_found_among_many_columns(as_sparse) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (80, 300)).astype(float)
    X[:, 40] = X[:, 7]
    X[:, 211] = X[:, 7]
    X[:, 99] = 3.0 - 0.25 * X[:, 12]
    given = code_table(sp.csr_matrix(X) if as_sparse else X)
    equal, affine = copies_of(given, figures_of(given))
    assert equal == [[7, 40, 211]]
    assert affine == [[12, 99]]


def test_many_groups_of_copies_are_one_finding() -> None:
    X = np.random.default_rng(0).standard_normal((50, 5))
    found = one("duplicated_columns", np.hstack([X, X]))
    assert "5 groups of columns that are equal in all 50 rows" in found.message
    assert sorted(found.columns) == list(range(10))


def test_copies_with_gaps_agree_where_they_are_missing() -> None:
    gaps = with_gaps(numbers(), 20)
    assert "duplicated_columns" in kinds_of(table(a=gaps, b=gaps))
    other = with_gaps(numbers(), 20, seed=9)
    assert not {"duplicated_columns", "equivalent_columns"} & kinds_of(table(a=gaps, b=other))


def test_relabelled_columns() -> None:
    names = labels(5)
    codes = pd.Series(names).map({"l0": 7, "l1": 1, "l2": 4, "l3": 9, "l4": 2})
    found = one("equivalent_columns", table(a=names, b=codes))
    assert found.columns == ("a", "b")
    assert "names of their values" in found.message
    changed = codes.where(~SPIKE, (codes.iloc[7] + 1) if codes.iloc[7] == 1 else 1)
    assert "equivalent_columns" not in kinds_of(table(a=names, b=changed))
    given = code_table(table(a=names, b=codes))
    assert relabellings_of(given, figures_of(given)) == [[4, 5]]


# -- leaks --


def leak_in(values, y, **settings):
    target = examined_target(y, len(y), None)
    tell = how_column_tells_class if target.task == "classification" else how_column_tells_number
    return tell(np.asarray(values, float), target, **settings)


def test_how_a_column_tells_the_class() -> None:
    y = classes(3)
    assert leak_in(7 - y, y)[0] == "critical"
    severity, how = leak_in(y * 3 + np.arange(N) % 3, y)
    assert (severity, "9 values" in how) == ("warning", True)
    assert "2 thresholds" in leak_in(np.abs(numbers()) / 9 + y, y)[1]
    assert "one threshold" in leak_in(np.abs(numbers()) / 9 + classes(), classes())[1]
    assert leak_in(numbers(), y) is None
    assert leak_in(np.where(y == 0, np.nan, y), y)[0] == "critical"  # a gap is a value, too


def test_a_column_that_is_nearly_always_right() -> None:
    y = np.arange(5000) % 2
    wrong = y.copy()
    wrong[:3] = 1 - wrong[:3]
    assert "99.9 %" in leak_in(wrong, y)[1]
    wrong[:50] = 1 - y[:50]
    assert leak_in(wrong, y) is None


def test_chance_is_no_leak() -> None:
    """Any one of 200 random columns separates three rows from three with probability 0.1."""
    rng = np.random.default_rng(0)
    assert "leak" not in kinds_of(rng.standard_normal((6, 200)), [0, 0, 0, 1, 1, 1])
    assert "leak" not in kinds_of(rng.standard_normal((100, 50)), np.arange(100) == 0)


def test_how_a_column_tells_a_number() -> None:
    y = numbers()
    assert leak_in(y, y) == ("critical", "is the target")
    assert "up to units" in leak_in(2.54 * y + 1, y)[1]
    assert "same order" in leak_in(np.exp(2 * y), y)[1]
    assert "opposite order" in leak_in(-np.exp(2 * y), y)[1]
    assert leak_in(y + 0.1 * np.random.default_rng(0).standard_normal(N), y) is None
    few = np.array([0.5, 2.5, 1.5])[classes(3)]
    assert "3 values goes" in leak_in(np.array([1.0, 2.0, 0.0])[classes(3)], few)[1]


def test_leaks_into_numbers_are_found_in_a_table() -> None:
    y = numbers()
    assert one("leak", table(z=y * 9 / 5 + 32), y).columns == ("z",)
    assert one("leak", table(z=np.exp(y)), y).columns == ("z",)
    assert one("leak", table(z=with_gaps(y, 30)), y).columns == ("z",)
    assert "leak" not in kinds_of(table(z=y + numbers()[::-1]), y)


def test_leaks_in_sparse_tables() -> None:
    X = sp.random(N, 40, 0.2, random_state=0, format="lil")
    X[:, 11] = 4.0 * classes()[:, None]
    assert one("leak", X.tocsr(), classes()).columns == (11,)


def test_leaks_as_labels() -> None:
    assert one("leak", table(z=np.where(classes() == 1, "won", "lost")), classes()).columns == (
        "z",
    )


def test_gaps_that_tell_a_number() -> None:
    y = numbers()
    gaps = np.where((y > 0) & (np.arange(N) % 3 > 0), np.nan, 1.0 + numbers()[::-1])
    assert "mean is" in one("telling_gaps", table(z=gaps), y).message


# -- what matters to whom --


def test_scales_matter_to_machines_not_to_trees() -> None:
    X = table(z=1e4 * numbers())
    assert one("unscaled_columns", X, classes()).severity == "notice"
    assert one("unscaled_columns", X, classes(), margrove.SVC()).severity == "warning"
    assert "SVC" in one("unscaled_columns", X, classes(), margrove.SVC()).message
    for model in (
        margrove.RandomForestClassifier(),
        margrove.HistGradientBoostingClassifier(),
        margrove.AdaBoostClassifier(),
        margrove.BaggingClassifier(margrove.DecisionTreeClassifier()),
    ):
        assert "unscaled_columns" not in kinds_of(X, classes(), model)
    assert "unscaled_columns" in kinds_of(X, classes(), margrove.BaggingClassifier(margrove.SVC()))


def test_a_scaler_in_a_pipeline_is_looked_through() -> None:
    X = table(z=1e4 * numbers())
    good = make_pipeline(StandardScaler(), margrove.SVC())
    useless = make_pipeline(FunctionTransformer(), margrove.SVC())
    assert "unscaled_columns" not in kinds_of(X, classes(), good)
    assert "unscaled_columns" in kinds_of(X, classes(), useless)
    search = GridSearchCV(good, {"svc__C": [1, 10]})
    assert "unscaled_columns" not in kinds_of(X, classes(), search)


def test_gaps_matter_to_those_who_refuse_them() -> None:
    X = table(z=with_gaps(numbers(), 9))
    assert one("missing_values", X, classes(), margrove.SVC()).severity == "critical"
    assert one("missing_values", X, classes(), margrove.DecisionTreeClassifier()).severity == (
        "notice"
    )
    filled = make_pipeline(SimpleImputer(), StandardScaler(), margrove.SVC())
    assert kinds_of(X, classes(), filled) == set()


def test_labels_matter_to_those_who_refuse_them() -> None:
    X = table(z=labels(3))
    for model in (margrove.GradientBoostingClassifier(), margrove.Perceptron()):
        assert one("text_columns", X, classes(), model).severity == "critical"
    for model in (margrove.AdaBoostClassifier(), margrove.BaggingClassifier()):
        assert "text_columns" not in kinds_of(X, classes(), model)
        model.fit(X, classes())


def test_numbers_that_are_meant_as_categories() -> None:
    z = pd.Series(["1", "2"] * 100)
    assert "numbers_as_text" in kinds_of(table(z=z), classes())
    assert "numbers_as_text" not in kinds_of(table(z=z.astype("category")), classes())


def test_labels_that_a_pipeline_encodes() -> None:
    X = table(z=labels(3))
    encoder = ColumnTransformer([("z", OneHotEncoder(), ["z"])], remainder="passthrough")
    assert kinds_of(X, classes(), make_pipeline(encoder, margrove.SVC())) == set()


def test_leaks_are_looked_for_before_the_pipeline() -> None:
    model = make_pipeline(StandardScaler(), PCA(2), margrove.SVC())
    assert one("leak", table(z=classes()), classes(), model).columns == ("z",)


def test_estimators_of_others() -> None:
    from sklearn.linear_model import Ridge

    assert "unscaled_columns" in kinds_of(table(z=1e4 * numbers()), numbers(), Ridge())

    class Stranger:
        def fit(self, X, y):
            return self

    assert kinds_of(table(z=with_gaps(numbers(), 9)), classes(), Stranger()) == {"missing_values"}


# -- the task --


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b"] * 100, "classification"),
        ([True, False] * 100, "classification"),
        (np.arange(N) % 20, "classification"),
        ((np.arange(N) % 2) + 1.0, "classification"),
        (np.arange(N), "regression"),
        (numbers(), "regression"),
        (pd.Series(["a", "b"] * 100, dtype="category"), "classification"),
        (pl.Series(np.arange(N) % 3), "classification"),
        (np.array([b"a", b"b"] * 100), "classification"),
        (pd.DataFrame({"t": numbers()}), "regression"),
        (numbers()[:, None], "regression"),
    ],
    ids=str,
)
def test_the_task_is_told_by_the_target(y, task) -> None:
    assert doctor(table(), y, estimate=False).task == task


def test_the_estimator_and_the_caller_know_better() -> None:
    y = np.arange(N) % 3
    assert doctor(table(), y, margrove.SVR(), estimate=False).task == "regression"
    assert doctor(table(), y, task="regression", estimate=False).task == "regression"
    whole = np.arange(N)
    assert doctor(table(), whole, task="classification", estimate=False).task == "classification"
    assert "few_target_values" in kinds_of(table(), y, margrove.SVR())


# -- strange tables --

Y = np.arange(60) % 2
R = np.random.default_rng(0).random((60, 3))

STRANGE = {
    "all missing": np.full((60, 3), np.nan),
    "no columns": np.empty((60, 0)),
    "bytes": np.array([[b"a", b"b"]] * 60),
    "integer extremes": np.array([[2**63 - 1, -(2**63)]] * 30 + [[0, 1]] * 30),
    "unsigned extremes": np.array([[2**64 - 1, 0]] * 30 + [[0, 1]] * 30, dtype=np.uint64),
    "infinite": np.where(R < 0.1, np.inf, R),
    "numbers beyond floats": np.array([[10**400, -(10**400), 1]] * 60, dtype=object),
    "complex": np.ones((60, 2), complex),
    "void": np.zeros((60, 2), dtype="V4"),
    "dates": np.array([["2020-01-01", "NaT"]] * 60, dtype="datetime64[D]"),
    "records": np.zeros(60, dtype=[("a", float), ("b", "U3")]),
    "masked": np.ma.masked_array(R, R < 0.2),
    "nothing but None": [[None, None]] * 60,
    "rows of lists": [[1, "a", None]] * 60,
    "mapping": {"a": list(range(60)), "b": ["x"] * 60},
    "half precision": R.astype(np.float16),
    "long doubles": R.astype(np.longdouble) * np.longdouble("1e400"),
    "near overflow": R * 1.7e308 * np.where(Y == 1, 1, -1)[:, None],
    "denormal": R * 5e-324,
    "sparse": sp.random(60, 30, 0.1, format="coo", random_state=0),
    "sparse with gaps": sp.csr_matrix(np.where(R < 0.1, np.nan, np.where(R < 0.2, np.inf, 0.0))),
    "sparse without entries": sp.csr_matrix((60, 5)),
    "sparse flags": sp.csr_matrix(np.eye(60, dtype=bool)),
    "sparse columns of pandas": pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(np.eye(60))),
    "nested": pd.DataFrame({"a": [[1, 2]] * 60, "b": [{1: 2}] * 60, "c": [{1}] * 60}),
    "mixed": pd.DataFrame({"a": [1, "x", None] * 20, "b": [dt.date(2020, 1, 1), 3, "q"] * 20}),
    "many levels": pd.DataFrame(R, columns=pd.MultiIndex.from_tuples([("a", k) for k in "uvw"])),
    "pandas' own types": pd.DataFrame(
        {
            "a": pd.array([1, None] * 30, dtype="Int64"),
            "b": pd.array(["x", None] * 30, dtype="string"),
            "c": pd.array([True, None] * 30, dtype="boolean"),
            "d": pd.interval_range(0, 60),
            "e": pd.period_range("2020", periods=60),
            "f": pd.date_range("2020", periods=60, tz="UTC"),
        }
    ),
    "polars' own types": pl.DataFrame(
        {
            "a": [1, None] * 30,
            "b": [dt.date(2020, 1, 1)] * 60,
            "c": [[1]] * 60,
            "d": [dt.timedelta(1)] * 60,
            "e": [dt.time(1)] * 60,
            "f": [b"x"] * 60,
            "g": [decimal.Decimal("1.5")] * 60,
            "h": [{"u": 1}] * 60,
        }
    ),
    "arrow": pl.DataFrame({"a": [1.0, 2.0] * 30, "b": ["u", None] * 30}).to_arrow(),
    "lazy": pl.LazyFrame({"a": np.arange(60)}),
    "names with escapes": pd.DataFrame({"a\x1b[31m\n": range(60), "": Y, "x" * 500: Y}),
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("y", [Y, R[:, 0], None], ids=["classes", "numbers", "none"])
def test_strange_tables_are_looked_over(name, y) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = doctor(STRANGE[name], y, estimate=False)
    text = str(found)
    for word in (" nan", "nan ", "inf ", "\x1b", "None "):
        assert word not in text, text
    json.dumps(found.as_dict(), allow_nan=False)
    assert len(found.frame()) == len(found.findings)


@pytest.mark.parametrize(("n", "kind"), [(0, "no_data"), (1, "single_class")])
def test_tables_of_hardly_any_row(n, kind) -> None:
    assert kind in kinds_of(R[:n], Y[:n])
    assert doctor(R[:n], Y[:n]).notes == (
        "No estimates of cost: fewer than 20 rows have a target.",
    )


@pytest.mark.parametrize(
    ("y", "kinds"),
    [
        (np.full(60, np.nan), {"missing_targets"}),
        (np.where(Y == 1, np.inf, 1.5), {"unusable_target", "constant_target"}),
        ([None] * 60, {"missing_targets"}),
        (pd.date_range("2020", periods=60), {"unusable_target"}),
        (pd.Series([True, None] * 30, dtype="boolean"), {"missing_targets", "single_class"}),
    ],
    ids=["nan", "infinite", "none", "dates", "half missing"],
)
def test_strange_targets(y, kinds) -> None:
    assert kinds <= kinds_of(R, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1, 2], [3]], [0, 1], "row 0 has 2 cells and row 1 has 1"),
        (R[:, 0], Y, r"1 dimension.*reshape\(-1, 1\)"),
        (R[:, :, None], Y, "3 dimension"),
        ("abc", Y, "X is a str, not a table"),
        (None, Y, "X is a NoneType"),
        ({1, 2}, Y, "X is a set"),
        ([1, 2, 3], [0, 1, 0], "1 dimension"),
        ([{"a": 1}], [0], "list of dicts"),
        ({"a": [1, 2], "b": [1]}, [0, 1], "differ in length: 1, 2 rows"),
        ({"a": 5}, [0], "one of the columns is a int"),
        (sp.csr_matrix(np.eye(60, dtype=complex)), Y, "complex128"),
        (R, Y[:-1], "X has 60 rows and y has 59"),
        (R, "abc", "y is a str"),
        (R, 5, "y is a int"),
        (R, R, r"shape \(60, 3\)"),
        (R, pd.DataFrame(R), "y has 3 columns"),
        (R, [[1, 2]] * 60, "y contains values of type list"),
        (R, [{}] * 60, "y contains values of type dict"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_said_to_be_none(X, y, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        doctor(X, y, estimate=False)


def test_labels_are_no_numbers_to_predict() -> None:
    with pytest.raises(InvalidDataError, match="target contains labels"):
        doctor(R, ["a", "b"] * 30, margrove.SVR(), estimate=False)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"task": "clustering"}, ValueError, "task must be"),
        ({"folds": 1}, ValueError, "folds must be an integer of at least 2"),
        ({"folds": True}, ValueError, "folds"),
        ({"folds": 2.5}, ValueError, "folds"),
        ({"probe_seconds": 0}, ValueError, "estimate=False"),
        ({"probe_seconds": np.inf}, ValueError, "probe_seconds"),
        ({"probe_seconds": "1"}, ValueError, "probe_seconds"),
        ({"estimator": margrove.SVC}, TypeError, "Call the class"),
        ({"estimator": "svc"}, TypeError, "estimator must be an estimator"),
    ],
)
def test_wrong_arguments(settings, error, message) -> None:
    with pytest.raises(error, match=message):
        doctor(R, Y, **settings)


def test_many_columns() -> None:
    X = np.random.default_rng(0).standard_normal((100, 10_000))
    X[:, 5000] = X[:, 77]
    found = doctor(X, np.arange(100) % 2, estimate=False)
    assert {finding.kind for finding in found.findings} == {"few_rows", "duplicated_columns"}
    assert found.of_kind("duplicated_columns")[0].columns == (77, 5000)


def test_very_large_tables_are_sampled_but_infinity_is_not_overlooked() -> None:
    X = np.random.default_rng(0).standard_normal((300_000, 40)).astype(np.float32)
    X[123_456, 7] = np.inf
    found = doctor(X, np.arange(300_000) % 2, estimate=False)
    assert found.n_rows == 300_000
    assert found.n_examined < 300_000
    assert "rows, drawn at random" in found.notes[0]
    assert found.of_kind("infinite_values")[0].columns == (7,)


def test_integers_that_floats_cannot_tell_apart() -> None:
    whole = 2**60 + np.arange(N)
    assert "2**53" in one("huge_values", table(z=whole), classes()).message
    assert "2**53" in one("huge_values", whole[:, None], classes()).message
    assert "huge_values" not in kinds_of(table(z=2**50 + np.arange(N)), classes())


def test_nothing_is_changed() -> None:
    X = np.where(R < 0.1, np.inf, R)
    X[0, 0] = np.nan
    X.flags.writeable = False
    frame = table(z=labels(3))
    before = frame.copy()
    doctor(X, Y, estimate=False)
    doctor(frame, classes(), estimate=False)
    pd.testing.assert_frame_equal(frame, before)
